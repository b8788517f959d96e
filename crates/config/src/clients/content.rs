//! The content of a client's file, to compare it with what is expected.

use serde_json::{Map, Value};

use super::writer::ALLOWED;

/// How many keys lead to a difference that is shown.
const MAX_KEYS: usize = 3;

/// The list of the servers that are turned on.
pub(super) fn allowed(root: &mut Map<String, Value>) -> Option<&mut Value> {
    let [outer, inner] = ALLOWED;
    root.get_mut(outer)?.get_mut(inner)
}

/// The server called `name`, in an object or a list.
pub(super) fn server<'v>(
    root: &'v mut Map<String, Value>,
    holder: &str,
    name: &str,
) -> Option<&'v mut Value> {
    match root.get_mut(holder)? {
        Value::Array(servers) => servers.iter_mut().find(|server| is_called(server, name)),
        servers => servers.get_mut(name),
    }
}

/// Removes the server called `name`.
pub(super) fn without(root: &mut Map<String, Value>, holder: &str, name: &str) {
    match root.get_mut(holder) {
        Some(Value::Array(servers)) => servers.retain(|server| !is_called(server, name)),
        Some(Value::Object(servers)) => drop(servers.remove(name)),
        _ => {}
    }
}

fn is_called(server: &Value, name: &str) -> bool {
    server.get("name").and_then(Value::as_str) == Some(name)
}

/// The members, except for an empty holder of servers.
pub(super) fn servers_or_none(root: &Map<String, Value>, holder: &str) -> Map<String, Value> {
    let mut root = root.clone();
    let is_empty = match root.get(holder) {
        Some(Value::Array(servers)) => servers.is_empty(),
        Some(Value::Object(servers)) => servers.is_empty(),
        Some(value) => value.is_null(),
        None => false,
    };
    if is_empty {
        root.remove(holder);
    }
    let Value::Object(root) = sorted(Value::Object(root)) else {
        return Map::new();
    };
    root
}

/// The value with its lists of servers in the order of their names: an edit may move one.
fn sorted(mut value: Value) -> Value {
    let lists = value.as_object_mut().into_iter().flat_map(Map::values_mut);
    for list in lists.filter_map(Value::as_array_mut) {
        if list.iter().all(|element| element.get("name").is_some()) {
            list.sort_by_cached_key(|element| element.get("name").map(Value::to_string));
        }
    }
    value
}

/// The keys under which two objects differ.
pub(super) fn differences(before: &Map<String, Value>, after: &Map<String, Value>) -> Vec<String> {
    let mut found = Vec::new();
    let mut path = Vec::new();
    compare(before, after, &mut path, &mut found);
    found
}

fn compare<'v>(
    before: &'v Map<String, Value>,
    after: &'v Map<String, Value>,
    path: &mut Vec<&'v str>,
    found: &mut Vec<String>,
) {
    let added = after.keys().filter(|key| !before.contains_key(*key));
    for key in before.keys().chain(added) {
        path.push(key);
        match (before.get(key), after.get(key)) {
            (before, after) if before == after => {}
            (Some(Value::Object(before)), Some(Value::Object(after))) if path.len() < MAX_KEYS => {
                compare(before, after, path, found);
            }
            _ => found.push(path.join(".")),
        }
        path.pop();
    }
}
