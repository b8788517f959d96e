use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Time and chance, as whoever drives the rules has them.
pub trait Ambient {
    /// Seconds since 1970.
    fn now(&self) -> u64;

    /// Fills `bytes` with what nobody can guess.
    fn fill(&self, bytes: &mut [u8]);
}

/// A value of 256 bits that nobody can guess, as text.
pub(crate) fn unguessable(ambient: &dyn Ambient) -> String {
    let mut bytes = [0; 32];
    ambient.fill(&mut bytes);
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    use super::Ambient;

    /// A clock that stands still, and chance that counts.
    #[derive(Debug, Default)]
    pub(crate) struct Still {
        pub(crate) now: u64,
        count: Cell<u8>,
    }

    impl Still {
        pub(crate) fn at(now: u64) -> Self {
            Self {
                now,
                count: Cell::new(0),
            }
        }
    }

    impl Ambient for Still {
        fn now(&self) -> u64 {
            self.now
        }

        fn fill(&self, bytes: &mut [u8]) {
            self.count.set(self.count.get() + 1);
            bytes.fill(self.count.get());
        }
    }
}
