//! JSON Schemas of servers: compiling one and validating a value never panic, never take long, and
//! never fetch anything.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use plexus_mcp_protocol::schema::Validator;
use plexus_mcp_wire::{Limits, Raw};

fuzz_target!(|input: &[u8]| {
    // The schema, and the value after the first NUL.
    let cut = input.iter().position(|byte| *byte == 0);
    let (schema, value) = input.split_at(cut.unwrap_or(input.len()));
    let Some(schema) = parsed(schema) else {
        return;
    };
    let value = parsed(value.get(1..).unwrap_or_default()).unwrap_or_else(Raw::null);
    let _ = Validator::compile_tool_input(&schema);
    if let Ok(compiled) = Validator::compile(&schema)
        && let Err(violations) = compiled.validate(&value)
    {
        assert!(violations.iter().next().is_some());
    }
});

fn parsed(text: &[u8]) -> Option<Raw> {
    Raw::parse(Bytes::copy_from_slice(text), &Limits::default()).ok()
}
