//! Editing raw JSON, and noticing when nothing was edited.

use plexus_wire::{Object, Raw};

use crate::messages::to_raw;

/// The members of an object while they are edited.
pub(super) struct Edit {
    object: Object,
    is_changed: bool,
}

impl Edit {
    pub(super) fn get(&self, key: &str) -> Option<&Raw> {
        self.object.get(key)
    }

    pub(super) fn set(&mut self, key: &str, value: Raw) {
        self.object.set(key, value);
        self.is_changed = true;
    }

    pub(super) fn remove(&mut self, key: &str) -> Option<Raw> {
        let removed = self.object.remove(key);
        self.is_changed |= removed.is_some();
        removed
    }

    /// Replaces the member `key`, if there is one, by what `change` makes of it.
    pub(super) fn map(&mut self, key: &str, change: impl FnOnce(&Raw) -> Raw) {
        if let Some(value) = self.object.get(key) {
            let changed = change(value);
            if !is_same(value, &changed) {
                self.set(key, changed);
            }
        }
    }

    /// Replaces every member by what `change` makes of it.
    pub(super) fn map_all(&mut self, change: impl Fn(&Raw) -> Raw) {
        let keys: Vec<String> = self.object.iter().map(|(key, _)| key.to_owned()).collect();
        for key in keys {
            self.map(&key, &change);
        }
    }
}

/// `raw` after `edit`; the same bytes if `edit` changed nothing, or if `raw` is no object.
pub(super) fn edited(raw: &Raw, edit: impl FnOnce(&mut Edit)) -> Raw {
    let Ok(object) = Object::parse(raw) else {
        return raw.clone();
    };
    let mut editing = Edit {
        object,
        is_changed: false,
    };
    edit(&mut editing);
    if editing.is_changed {
        editing.object.into_raw()
    } else {
        raw.clone()
    }
}

/// The elements of an array after `edit`, which is also told their indices; the same bytes if `edit`
/// changed nothing, or if `raw` is no array.
pub(super) fn edited_items(raw: &Raw, edit: impl Fn(usize, &Raw) -> Raw) -> Raw {
    let Some(items) = items(raw) else {
        return raw.clone();
    };
    let edited: Vec<Raw> = items
        .iter()
        .enumerate()
        .map(|(index, item)| edit(index, item))
        .collect();
    let is_changed = items
        .iter()
        .zip(&edited)
        .any(|(before, after)| !is_same(before, after));
    if is_changed {
        to_raw(&edited)
    } else {
        raw.clone()
    }
}

/// The elements of an array.
pub(super) fn items(raw: &Raw) -> Option<Vec<Raw>> {
    raw.elements().map(Iterator::collect)
}

/// Whether two values are the same bytes in the same place: cheaper to tell than that they are equal.
fn is_same(one: &Raw, other: &Raw) -> bool {
    std::ptr::eq(one.as_bytes(), other.as_bytes())
}
