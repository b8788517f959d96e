//! Edits raw JSON, and keeps the original bytes if nothing changed.

use plexus_mcp_wire::{Object, Raw};

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

    pub(super) fn set(&mut self, key: &'static str, value: Raw) {
        self.object.set(key, value);
        self.is_changed = true;
    }

    pub(super) fn remove(&mut self, key: &str) -> Option<Raw> {
        let removed = self.object.remove(key);
        self.is_changed |= removed.is_some();
        removed
    }

    /// Applies `change` to the member `key`, if there is one.
    pub(super) fn map(&mut self, key: &str, change: impl FnOnce(&Raw) -> Raw) {
        if let Some(value) = self.object.get_mut(key) {
            self.is_changed |= replace(value, change);
        }
    }

    /// Applies `change` to every member.
    pub(super) fn map_all(&mut self, change: impl Fn(&Raw) -> Raw) {
        for value in self.object.values_mut() {
            self.is_changed |= replace(value, &change);
        }
    }
}

/// Applies `change` to `value`, and returns whether that changed it.
fn replace(value: &mut Raw, change: impl FnOnce(&Raw) -> Raw) -> bool {
    let changed = change(value);
    let differs = !is_same(value, &changed);
    if differs {
        *value = changed;
    }
    differs
}

/// `raw` after `edit`; the same bytes if `edit` changed nothing, or if `raw` is not an object.
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
        editing.object.to_raw()
    } else {
        raw.clone()
    }
}

/// `raw` with `edit` applied to each element, given its index; the same bytes if `edit` changed
/// nothing, or if `raw` is not an array.
pub(super) fn edited_items(raw: &Raw, edit: impl Fn(usize, &Raw) -> Raw) -> Raw {
    let Some(mut items) = items(raw) else {
        return raw.clone();
    };
    let mut is_changed = false;
    for (index, item) in items.iter_mut().enumerate() {
        is_changed |= replace(item, |item| edit(index, item));
    }
    if is_changed {
        to_raw(&items)
    } else {
        raw.clone()
    }
}

/// The elements of an array.
pub(super) fn items(raw: &Raw) -> Option<Vec<Raw>> {
    raw.elements().map(Iterator::collect)
}

/// Whether two values share the same bytes in memory: cheaper than comparing them.
fn is_same(one: &Raw, other: &Raw) -> bool {
    std::ptr::eq(one.as_bytes(), other.as_bytes())
}
