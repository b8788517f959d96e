//! Rankings of nodes.

use std::cmp::Ordering;

/// The position of a node in the index: the slots of the segments follow each other.
pub(in crate::context) type Slot = usize;

/// Nodes with their scores, the best first.
pub(in crate::context) type Ranking = Vec<(Slot, f32)>;

/// The best of some nodes, the best first. Ties are broken by `key`.
pub(super) fn best<K: Ord>(
    scored: impl IntoIterator<Item = (Slot, f32)>,
    limit: usize,
    key: impl Fn(Slot) -> K,
) -> Ranking {
    let order = |a: &(Slot, f32), b: &(Slot, f32)| -> Ordering {
        let by_score = b.1.total_cmp(&a.1);
        by_score.then_with(|| key(a.0).cmp(&key(b.0)))
    };
    let room = 4 * limit.max(1);
    let mut best = Ranking::with_capacity(room);
    let mut least = f32::NEG_INFINITY;
    for candidate in scored {
        if candidate.1 < least {
            continue;
        }
        best.push(candidate);
        if best.len() == room {
            let (_, &mut (_, last), _) = best.select_nth_unstable_by(limit, order);
            best.truncate(limit);
            least = last;
        }
    }
    best.sort_unstable_by(order);
    best.truncate(limit);
    best
}
