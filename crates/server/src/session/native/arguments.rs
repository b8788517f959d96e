//! From a native request to the call of a tool.

use plexus_mcp_core::{Catalogue, Entry, Fault, Section};
use plexus_mcp_wire::{Kind, Object, Raw};
use serde::Deserialize;

/// The tool that a method names: `ns.method`, or `ns_method` as it used to be written (S003-41).
/// Names are compared whole, so it does not matter where a namespace ends (C50).
pub(super) fn tool<'a>(catalogue: &'a Catalogue, method: &str) -> Option<&'a Entry> {
    let tools = catalogue.list(Section::Tools);
    let folded = method.replace('.', "_");
    let same = |entry: &&Entry| entry.key.replace('.', "_") == folded;
    tools
        .get(method)
        .or_else(|| tools.entries().iter().find(same))
}

/// The arguments by name. Given by position, they are the tool's own in the order in which it
/// declares them; `null` leaves one out (S003-43).
pub(super) fn named(tool: &Raw, params: Option<Raw>) -> Result<Raw, Fault> {
    let Some(params) = params else {
        return Ok(Raw::empty_object());
    };
    let invalid = |text: String| Fault::InvalidParams(text);
    if params.kind() == Kind::Object {
        let arguments = Object::parse(&params);
        let mut arguments = arguments.map_err(|error| invalid(format!("params: {error}")))?;
        // MCP clients add `_meta` to the params of every request.
        arguments.remove("_meta");
        return Ok(arguments.to_raw());
    }
    let given: Vec<Raw> = params
        .decode()
        .map_err(|error| invalid(format!("params: {error}")))?;
    let names = declared(tool);
    if given.len() > names.len() {
        return Err(invalid(format!(
            "{} parameters were given, and there are {}: {}",
            given.len(),
            names.len(),
            names.join(", ")
        )));
    }
    let mut arguments = Object::new();
    for (name, value) in names.into_iter().zip(given) {
        if value.kind() != Kind::Null {
            arguments.set(name, value);
        }
    }
    Ok(arguments.to_raw())
}

/// The stream that `unsubscribe` names, as `[7]` or `{"subscription":7}`.
pub(super) fn subscription(params: Option<&Raw>) -> Result<u64, Fault> {
    #[derive(Deserialize)]
    struct Named {
        subscription: u64,
    }
    let read = params.and_then(|params| match params.kind() {
        Kind::Array => params.decode().ok().map(|[number]: [u64; 1]| number),
        _ => params.decode().ok().map(|named: Named| named.subscription),
    });
    read.ok_or_else(|| {
        Fault::InvalidParams("expected the number of a subscription, as in [1]".to_owned())
    })
}

/// The names of a tool's arguments.
fn declared(tool: &Raw) -> Vec<String> {
    let member = |raw: &Raw, name| Object::parse(raw).ok()?.get(name).cloned();
    let properties = member(tool, "inputSchema")
        .and_then(|schema| member(&schema, "properties"))
        .and_then(|properties| Object::parse(&properties).ok());
    let properties = properties.unwrap_or_default();
    properties.iter().map(|(name, _)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use plexus_mcp_wire::Limits;

    use super::*;

    fn raw(text: &str) -> Raw {
        Raw::parse(text.to_owned().into(), &Limits::default()).unwrap()
    }

    const TOOL: &str =
        r#"{"name":"echo","inputSchema":{"properties":{"message":{},"count":{},"a":{}}}}"#;

    fn by_name(params: &str) -> Result<String, Fault> {
        named(&raw(TOOL), Some(raw(params))).map(|named| named.as_str().to_owned())
    }

    /// S003-43: positions are those of the declaration, not of the alphabet.
    #[test]
    fn positions_become_names() {
        let cases = [
            ("[]", "{}"),
            (r#"["hi"]"#, r#"{"message":"hi"}"#),
            (r#"["hi",2]"#, r#"{"message":"hi","count":2}"#),
            (r#"["hi",null,true]"#, r#"{"message":"hi","a":true}"#),
            (r#"{"count":1.50,"_meta":{}}"#, r#"{"count":1.50}"#),
        ];
        for (params, expected) in cases {
            assert_eq!(by_name(params).unwrap(), expected, "{params}");
        }
        assert_eq!(named(&raw(TOOL), None).unwrap().as_str(), "{}");
        let error = by_name("[1,2,3,4]").unwrap_err().to_string();
        assert!(error.contains("message, count, a"), "{error}");
    }

    #[test]
    fn a_tool_without_a_schema_takes_nothing_by_position() {
        assert!(named(&raw(r#"{"name":"bare"}"#), Some(raw("[1]"))).is_err());
    }

    #[test]
    fn a_subscription_is_named_in_two_ways() {
        for params in ["[7]", r#"{"subscription":7}"#] {
            assert_eq!(subscription(Some(&raw(params))), Ok(7));
        }
        for params in ["[]", "[1,2]", r#"["7"]"#, "[-1]", "{}"] {
            assert!(subscription(Some(&raw(params))).is_err(), "{params}");
        }
        assert!(subscription(None).is_err());
    }
}
