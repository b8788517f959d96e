//! Forms of servers and the answers of users: lowering a form and raising an answer never panic.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use plexus_mcp_protocol::Revision;
use plexus_mcp_protocol::convert::elicitation;
use plexus_mcp_wire::{Kind, Limits, Raw};

const REVISIONS: [Revision; 5] = [
    Revision::V2024_11_05,
    Revision::V2025_03_26,
    Revision::V2025_06_18,
    Revision::V2025_11_25,
    Revision::V2026_07_28,
];

fuzz_target!(|input: &[u8]| {
    // The form, and the answer after the first NUL.
    let cut = input.iter().position(|byte| *byte == 0);
    let (form, answer) = input.split_at(cut.unwrap_or(input.len()));
    let Some(form) = parsed(form).filter(|form| form.kind() == Kind::Object) else {
        return;
    };
    let answer = parsed(answer.get(1..).unwrap_or_default());
    for revision in REVISIONS {
        let features = revision.features();
        let Ok(lowered) = elicitation(&form, features, || "id".to_owned()) else {
            continue;
        };
        assert_eq!(lowered.params.kind(), Kind::Object);
        if let (Some(form), Some(answer)) = (&lowered.form, &answer)
            && let Err(error) = form.raise(answer)
        {
            let _ = error.with_reason_in_message(&lowered.params);
        }
    }
});

fn parsed(text: &[u8]) -> Option<Raw> {
    Raw::parse(Bytes::copy_from_slice(text), &Limits::default()).ok()
}
