//! Fair eviction: when a table is full, the principal with the most entries loses one, so that a
//! principal with many entries cannot evict those of others.

use std::collections::HashMap;

use plexus_mcp_core::Principal;

/// How much of a full table each principal has, counting the new entry of the newcomer. The entries have
/// a weight: 1, or their size.
pub(crate) struct PrincipalShares<'a> {
    held: HashMap<&'a Principal, usize>,
    newcomer: usize,
}

impl<'a> PrincipalShares<'a> {
    /// Adds up `entries`, each with its principal and its weight, and the entry of the newcomer.
    pub(crate) fn new(
        entries: impl Iterator<Item = (&'a Principal, usize)>,
        (newcomer, weight): (&'a Principal, usize),
    ) -> Self {
        let mut held = HashMap::from([(newcomer, weight)]);
        for (holder, weight) in entries {
            *held.entry(holder).or_default() += weight;
        }
        let newcomer = held.get(newcomer).copied().unwrap_or_default();
        Self { held, newcomer }
    }

    /// The weight of all entries of `principal`, if one of them may be evicted: if it has at least as
    /// much as the newcomer.
    pub(crate) fn of(&self, principal: &Principal) -> Option<usize> {
        let held = self.held.get(principal).copied().unwrap_or_default();
        (held >= self.newcomer).then_some(held)
    }
}
