//! Tables with numbers for keys.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table whose keys are numbers that nobody else chooses, so that they need not be guarded against
/// those who would have them collide.
pub(super) type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<Spreading>>;

/// Spreads numbers that are close together.
#[derive(Default)]
pub(super) struct Spreading(u64);

impl Hasher for Spreading {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // By the golden ratio; tables look at both ends of the product.
        let product = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ (product >> 32);
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number.cast_unsigned());
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::BuildHasher;

    use super::*;

    /// A table takes the place of a key from the lower bits, and tells keys of one place apart by the
    /// upper seven.
    #[test]
    fn numbers_that_follow_one_another_are_spread_at_both_ends() {
        let hasher = BuildHasherDefault::<Spreading>::default();
        for step in [1, 8, 64, 4096] {
            let hashes = (1..=128_i64).map(|number| hasher.hash_one(number * step));
            let hashes: Vec<u64> = hashes.collect();
            let places: HashSet<u64> = hashes.iter().map(|hash| hash & 0xff).collect();
            let marks: HashSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
            assert!(places.len() > 80, "{step}: {} places", places.len());
            assert!(marks.len() > 48, "{step}: {} marks", marks.len());
        }
    }
}
