//! Room where there is none: whoever holds the most makes it, so that nobody pushes others out by
//! holding much.

use std::collections::HashMap;

use plexus_service::Principal;

/// How much each principal holds of something that is full, counting what a newcomer is to have.
pub(crate) struct Shares<'a> {
    held: HashMap<&'a Principal, usize>,
    newcomer: usize,
}

impl<'a> Shares<'a> {
    /// The shares of `holders`, each named as often as it holds something.
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

    /// What `principal` holds, if it may be asked to make room: no less than the newcomer.
    pub(crate) fn of(&self, principal: &Principal) -> Option<usize> {
        let held = self.held.get(principal).copied().unwrap_or_default();
        (held >= self.newcomer).then_some(held)
    }
}
