use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The clock and the random number generator, which the driver supplies.
pub trait Ambient {
    /// Seconds since 1970.
    fn now(&self) -> u64;

    /// Fills `bytes` from a cryptographically secure generator.
    fn fill(&self, bytes: &mut [u8]);
}

/// 256 random bits in base64url, for values that must not be guessed.
pub(crate) fn random_token(ambient: &dyn Ambient) -> String {
    let mut bytes = [0; 32];
    ambient.fill(&mut bytes);
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    use super::Ambient;

    /// A clock that stands still, and a counter in place of random numbers.
    #[derive(Debug, Default)]
    pub(crate) struct FixedAmbient {
        pub(crate) now: u64,
        count: Cell<u8>,
    }

    impl FixedAmbient {
        pub(crate) fn at(now: u64) -> Self {
            Self {
                now,
                count: Cell::new(0),
            }
        }
    }

    impl Ambient for FixedAmbient {
        fn now(&self) -> u64 {
            self.now
        }

        fn fill(&self, bytes: &mut [u8]) {
            self.count.set(self.count.get() + 1);
            bytes.fill(self.count.get());
        }
    }
}
