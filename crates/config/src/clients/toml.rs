//! TOML, read as JSON.

use std::path::Path;

use plexus_mcp_wire::Raw;
use toml::Value;

use crate::problem::{ConfigProblem, Position};

/// The file as JSON.
pub(super) fn parse(file: &Path, text: &str) -> Result<Raw, ConfigProblem> {
    let mut table: toml::Table = toml::from_str(text).map_err(|error| {
        let message = error.message().split_whitespace().collect::<Vec<_>>();
        let problem = ConfigProblem::new(file, format!("not TOML: {}", message.join(" ")));
        match error.span() {
            Some(span) => problem.at(Position::of_offset(text, span.start)),
            None => problem,
        }
    })?;
    table.iter_mut().for_each(|(_, value)| spell_out(value));
    Raw::encode(&table).map_err(|error| ConfigProblem::new(file, error.to_string()))
}

/// JSON has no dates, infinities or NaN: they become strings.
fn spell_out(value: &mut Value) {
    match value {
        Value::Datetime(_) => *value = Value::String(value.to_string()),
        Value::Float(number) if !number.is_finite() => *value = Value::String(value.to_string()),
        Value::Array(items) => items.iter_mut().for_each(spell_out),
        Value::Table(members) => members.iter_mut().for_each(|(_, value)| spell_out(value)),
        Value::String(_) | Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => {}
    }
}
