//! The JSON Schema of a limit, made of its entry in the macro `limits!`.

use std::ops::RangeInclusive;

use serde_json::{Value, json};

use super::Limit;

/// The schema of the limit `key`. Its unit is in its name.
pub(super) fn of<T: Limit>(key: &str, text: &str, default: &T, range: &RangeInclusive<T>) -> Value {
    let unit = match key.rsplit_once('_') {
        Some((_, unit @ ("bytes" | "seconds"))) => unit,
        _ => "",
    };
    let kind = if unit == "seconds" {
        "number"
    } else {
        "integer"
    };
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    json!({
        "description": text,
        "type": kind,
        "minimum": range.start().to_value(),
        "maximum": range.end().to_value(),
        "default": default.to_value(),
        "x-unit": unit,
        "examples": [default.to_value()],
    })
}
