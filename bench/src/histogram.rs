//! A histogram of latencies, with an error below one per cent and in constant space.

/// The precision of a value, in bits; lower bits are rounded.
const PRECISION_BITS: u32 = 7;
const SLOTS_PER_POWER: usize = 1 << PRECISION_BITS;

/// Counts latencies, in nanoseconds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Histogram {
    pub(crate) fn record(&mut self, nanoseconds: u64) {
        let slot = slot(nanoseconds);
        if slot >= self.counts.len() {
            self.counts.resize(slot + 1, 0);
        }
        if let Some(count) = self.counts.get_mut(slot) {
            *count += 1;
        }
        self.total += 1;
    }

    /// The number of recorded values.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The value that this many of a thousand recorded values do not exceed; 0 if there are none.
    pub(crate) fn per_mille(&self, share: u64) -> u64 {
        let rank = (self.total * share).div_ceil(1000).max(1);
        let mut counted = 0;
        for (slot, count) in self.counts.iter().enumerate() {
            counted += count;
            if counted >= rank {
                return slot_value(slot);
            }
        }
        0
    }
}

/// Small values have a slot each. Each larger power of two has `SLOTS_PER_POWER` slots.
fn slot(value: u64) -> usize {
    let shift = value
        .checked_ilog2()
        .unwrap_or(0)
        .saturating_sub(PRECISION_BITS);
    let mantissa = usize::try_from(value >> shift).unwrap_or(usize::MAX);
    shift as usize * SLOTS_PER_POWER + mantissa
}

fn slot_value(slot: usize) -> u64 {
    if slot < 2 * SLOTS_PER_POWER {
        return slot as u64;
    }
    let shift = slot / SLOTS_PER_POWER - 1;
    let mantissa = (slot - shift * SLOTS_PER_POWER) as u64;
    (mantissa << shift) + (1 << shift) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_found_again_within_one_per_cent() {
        for value in (0..60).map(|power| (1_u64 << power) * 5 / 4) {
            let mut histogram = Histogram::default();
            histogram.record(value);
            let found = histogram.per_mille(500);
            assert!(found.abs_diff(value) * 100 <= value, "{value}: {found}");
        }
    }

    #[test]
    fn slots_are_ordered_and_none_is_shared_by_values_far_apart() {
        let mut last = 0;
        for value in 0..100_000 {
            let slot = slot(value);
            assert!(slot == last || slot == last + 1 || value == 0, "{value}");
            last = slot;
        }
    }

    #[test]
    fn quantiles_are_those_of_what_was_recorded() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.per_mille(500), 0);
        for value in 1..=1000 {
            histogram.record(value * 1000);
        }
        assert_eq!(histogram.total(), 1000);
        for (share, expected) in [(500, 500_000), (990, 990_000), (999, 999_000)] {
            let found = histogram.per_mille(share);
            assert!(
                found.abs_diff(expected) * 100 <= expected,
                "{share}: {found}"
            );
        }
    }
}
