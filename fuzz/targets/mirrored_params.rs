//! Schemas that mirror arguments in headers: the headers that are made of arguments can be sent.

#![no_main]

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use libfuzzer_sys::fuzz_target;
use plexus_mcp_protocol::header::HeaderParams;
use plexus_mcp_wire::{Limits, Raw};

fuzz_target!(|input: &[u8]| {
    // The schema, and the arguments after the first NUL.
    let cut = input.iter().position(|byte| *byte == 0);
    let (schema, arguments) = input.split_at(cut.unwrap_or(input.len()));
    let Some(schema) = parsed(schema) else {
        return;
    };
    let Ok(params) = HeaderParams::from_input_schema(&schema) else {
        return;
    };
    let arguments = parsed(arguments.get(1..).unwrap_or_default());
    for (name, value) in params.values(arguments.as_ref()) {
        assert!(HeaderName::try_from(&name).is_ok(), "{name}");
        assert!(HeaderValue::try_from(&value).is_ok(), "{value}");
    }
    assert_eq!(params.check(None, |_| None), Ok(()));
    let _ = params.check(arguments.as_ref(), |_| Some(input));
});

fn parsed(text: &[u8]) -> Option<Raw> {
    Raw::parse(Bytes::copy_from_slice(text), &Limits::default()).ok()
}
