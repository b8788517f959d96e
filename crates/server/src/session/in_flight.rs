//! The requests of a session that are in flight.

use foldhash::{HashMap, HashMapExt};

use plexus_wire::Id;
use tokio_util::sync::CancellationToken;

/// Requests in flight, by the client's ids. Most sessions have one at a time, and of those with
/// none there are very many: a table is there only while there are several.
#[derive(Default)]
pub(super) struct InFlight {
    one: Option<(Id, CancellationToken)>,
    others: HashMap<Id, CancellationToken>,
}

impl InFlight {
    pub(super) fn len(&self) -> usize {
        usize::from(self.one.is_some()) + self.others.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn get(&self, id: &Id) -> Option<&CancellationToken> {
        match &self.one {
            Some((one, cancel)) if one == id => Some(cancel),
            _ if self.others.is_empty() => None,
            _ => self.others.get(id),
        }
    }

    /// Adds a request whose id is not in use.
    pub(super) fn insert(&mut self, id: Id, cancel: CancellationToken) {
        if self.one.is_none() {
            self.one = Some((id, cancel));
        } else {
            self.others.insert(id, cancel);
        }
    }

    pub(super) fn remove(&mut self, id: &Id) {
        if self.one.take_if(|(one, _)| one == id).is_some() || self.others.is_empty() {
            return;
        }
        self.others.remove(id);
        if self.others.is_empty() {
            self.others = HashMap::new();
        }
    }

    /// Takes all of them.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = CancellationToken> + use<> {
        let Self { one, others } = std::mem::take(self);
        one.map(|(_, cancel)| cancel)
            .into_iter()
            .chain(others.into_values())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_found_by_their_ids_in_whatever_order_they_end() {
        let ids: Vec<Id> = (1..=3_i64).map(Id::from).collect();
        for first in 0..3 {
            let mut calls = InFlight::default();
            let tokens: Vec<_> = ids.iter().map(|_| CancellationToken::new()).collect();
            for (id, token) in ids.iter().zip(&tokens) {
                assert!(calls.get(id).is_none());
                calls.insert(id.clone(), token.clone());
            }
            assert_eq!(calls.len(), 3);

            calls.remove(&ids[first]);
            assert!(calls.get(&ids[first]).is_none());
            assert_eq!(calls.len(), 2);
            for other in (0..3).filter(|other| *other != first) {
                calls.get(&ids[other]).unwrap().cancel();
                assert!(tokens[other].is_cancelled());
            }
            assert!(!tokens[first].is_cancelled());

            calls.insert(ids[first].clone(), tokens[first].clone());
            for cancel in calls.drain() {
                cancel.cancel();
            }
            assert!(tokens[first].is_cancelled());
            assert!(calls.is_empty());
        }
    }

    #[test]
    fn a_table_is_given_back_when_it_is_empty() {
        let mut calls = InFlight::default();
        for id in 1..=10_i64 {
            calls.insert(Id::from(id), CancellationToken::new());
        }
        for id in 1..=10_i64 {
            calls.remove(&Id::from(id));
        }
        assert!(calls.is_empty());
        assert_eq!(calls.others.capacity(), 0);
    }
}
