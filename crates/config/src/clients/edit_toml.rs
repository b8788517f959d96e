//! Edits TOML in place. Comments, order and formatting of the rest stay.

use plexus_mcp_wire::Raw;
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value};

use super::writer::UNEDITABLE;
use crate::json;

/// Adds a table to the table under `holder`.
pub(super) fn add(
    text: &str,
    holder: &str,
    key: &str,
    value: &Raw,
) -> Result<String, &'static str> {
    let mut document = parse(text)?;
    let holder = document
        .entry(holder)
        .or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        })
        .as_table_like_mut()
        .ok_or(UNEDITABLE)?;
    let mut table = Table::new();
    for (member, value) in json::members(value).ok_or(UNEDITABLE)? {
        table.insert(&member, Item::Value(literal(&value).ok_or(UNEDITABLE)?));
    }
    holder.insert(key, Item::Table(table));
    Ok(document.to_string())
}

/// Removes a table.
pub(super) fn remove(text: &str, holder: &str, key: &str) -> Result<String, &'static str> {
    let mut document = parse(text)?;
    let holder = table(document.as_table_mut(), holder)?;
    holder.remove(key).ok_or(UNEDITABLE)?;
    Ok(document.to_string())
}

/// Sets a truth value of a server, or removes it. Returns its value before.
pub(super) fn set(
    text: &str,
    holder: &str,
    server: &str,
    key: &str,
    value: Option<bool>,
) -> Result<(String, Option<bool>), &'static str> {
    let mut document = parse(text)?;
    let server = table(table(document.as_table_mut(), holder)?, server)?;
    let before = match server.get(key) {
        Some(item) => Some(item.as_bool().ok_or(UNEDITABLE)?),
        None => None,
    };
    match (value, server.get_mut(key).and_then(Item::as_value_mut)) {
        (Some(value), Some(present)) => {
            let decor = present.decor().clone();
            *present = Value::from(value);
            *present.decor_mut() = decor;
        }
        (Some(value), None) => {
            server.insert(key, Item::Value(Value::from(value)));
        }
        (None, _) => {
            server.remove(key);
        }
    }
    Ok((document.to_string(), before))
}

/// A document that is written as it was read.
fn parse(text: &str) -> Result<DocumentMut, &'static str> {
    let document: DocumentMut = text.parse().map_err(|_invalid| UNEDITABLE)?;
    if document.to_string() == text {
        Ok(document)
    } else {
        Err(UNEDITABLE)
    }
}

fn table<'a>(
    within: &'a mut dyn TableLike,
    key: &str,
) -> Result<&'a mut dyn TableLike, &'static str> {
    within
        .get_mut(key)
        .and_then(Item::as_table_like_mut)
        .ok_or(UNEDITABLE)
}

/// A string, a truth value or a list of strings.
fn literal(value: &Raw) -> Option<Value> {
    if let Some(text) = value.text() {
        return Some(Value::from(text.into_owned()));
    }
    if let Ok(value) = value.decode::<bool>() {
        return Some(Value::from(value));
    }
    let texts: Vec<String> = value.decode().ok()?;
    Some(Value::Array(texts.into_iter().collect::<Array>()))
}
