//! The entries that were added to a service.

use std::collections::HashMap;

/// Entries by name, in the order in which they were added.
#[derive(Clone)]
pub(super) struct Registered<T> {
    order: Vec<String>,
    slots: HashMap<String, T>,
}

impl<T> Default for Registered<T> {
    fn default() -> Self {
        Self {
            order: Vec::new(),
            slots: HashMap::default(),
        }
    }
}

impl<T> Registered<T> {
    /// Adds an entry. An entry of the same name is replaced and keeps its place.
    pub(super) fn add(&mut self, name: String, slot: T) {
        if self.slots.insert(name.clone(), slot).is_none() {
            self.order.push(name);
        }
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.slots.remove(name);
        self.order.retain(|other| other != name);
    }

    pub(super) fn get(&self, name: &str) -> Option<&T> {
        self.slots.get(name)
    }

    pub(super) fn contains_key(&self, name: &str) -> bool {
        self.slots.contains_key(name)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        let slot = |name| Some((String::as_str(name), self.slots.get(name)?));
        self.order.iter().filter_map(slot)
    }

    pub(super) fn names(&self) -> &[String] {
        &self.order
    }
}
