//! Canonical JSON: members sorted, no white space. Recognises the retry of a request whose JSON is
//! equal but formatted differently.

use plexus_mcp_wire::{Object, Raw};
use serde_json::Value;

/// The canonical text of the parameters that a retry must repeat: all but `_meta`, `inputResponses`
/// and `requestState`.
pub(crate) fn request(params: &Object) -> String {
    let mut members: Vec<(&str, &Raw)> = params
        .iter()
        .filter(|(name, _)| !matches!(*name, "_meta" | "inputResponses" | "requestState"))
        .collect();
    members.sort_unstable_by_key(|(name, _)| *name);
    let mut text = String::new();
    for (name, value) in members {
        write_string(&mut text, name);
        // Decoding cannot fail: the value was parsed as JSON, and its depth limited, on arrival.
        write_value(&mut text, &value.decode().unwrap_or(Value::Null));
    }
    text
}

fn write_value(text: &mut String, value: &Value) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            text.push('{');
            for (name, value) in members {
                write_string(text, name);
                text.push(':');
                write_value(text, value);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write_value(text, item);
                text.push(',');
            }
            text.push(']');
        }
        Value::String(string) => write_string(text, string),
        Value::Null | Value::Bool(_) | Value::Number(_) => text.push_str(&value.to_string()),
    }
}

/// The length in front makes a delimiter inside the text harmless.
fn write_string(text: &mut String, string: &str) {
    text.push_str(&string.len().to_string());
    text.push('"');
    text.push_str(string);
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(params: &str) -> String {
        let raw = Raw::parse(
            params.to_owned().into(),
            &plexus_mcp_wire::Limits::default(),
        )
        .unwrap();
        request(&Object::parse(&raw).unwrap())
    }

    #[test]
    fn equal_requests_have_one_text() {
        assert_eq!(
            canonical(r#"{"name":"x","arguments":{"a":1,"b":[true,null]},"_meta":{"n":1}}"#),
            canonical(
                r#"{ "requestState":"s", "arguments":{"b":[true, null],"a":1}, "name":"\u0078"}"#
            ),
        );
    }

    #[test]
    fn different_requests_have_different_texts() {
        let texts = [
            r#"{"name":"x"}"#,
            r#"{"name":"y"}"#,
            r#"{"nom":"x"}"#,
            r#"{"name":"x","arguments":{}}"#,
            r#"{"name":"x","arguments":{"a":1}}"#,
            r#"{"name":"x","arguments":{"a":"1"}}"#,
            r#"{"name":"x","arguments":{"a":"2"}}"#,
            r#"{"name":"x","arguments":{"b":"1"}}"#,
            r#"{"name":"x","arguments":{"a":[1]}}"#,
            r#"{"name":"x","arguments":{"a":[1],"b":{}}}"#,
            r#"{"name":"x","arguments":{"a":[1,[]]}}"#,
        ]
        .map(canonical);
        for (index, text) in texts.iter().enumerate() {
            assert!(!texts[index + 1..].contains(text), "{text}");
        }
    }
}
