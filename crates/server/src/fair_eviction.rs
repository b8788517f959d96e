//! Fair eviction: when a table is full, the principal with the most entries loses one, so that a
//! principal with many entries cannot evict those of others.

use std::collections::HashMap;

use plexus_mcp_core::Principal;

/// How many entries of a full table each principal has, counting the new entry of the newcomer.
pub(crate) struct PrincipalShares<'a> {
    held: HashMap<&'a Principal, usize>,
    newcomer: usize,
}

impl<'a> PrincipalShares<'a> {
    /// Counts `holders`, in which each principal occurs once per entry.
    pub(crate) fn new(
        holders: impl Iterator<Item = &'a Principal>,
        newcomer: &'a Principal,
    ) -> Self {
        let mut held = HashMap::from([(newcomer, 1)]);
        for holder in holders {
            *held.entry(holder).or_default() += 1;
        }
        let newcomer = held.get(newcomer).copied().unwrap_or_default();
        Self { held, newcomer }
    }

    /// The number of entries of `principal`, if one of them may be evicted: if it has at least as many
    /// as the newcomer.
    pub(crate) fn of(&self, principal: &Principal) -> Option<usize> {
        let held = self.held.get(principal).copied().unwrap_or_default();
        (held >= self.newcomer).then_some(held)
    }
}
