//! Corrections for places where the published schemas are narrower than the specification.
//!
//! `schema.ts` and the prose are normative. Errors of `schema.json` are corrected only here.

use plexus_mcp_protocol::Revision;
use serde_json::{Value, json};

struct Allowance {
    revisions: &'static [Revision],
    /// The JSON pointer, below the definitions.
    place: &'static str,
    /// The type that is allowed there.
    types: &'static [&'static str],
    #[expect(dead_code, reason = "the reason is for people")]
    reason: &'static str,
}

const ALLOWANCES: &[Allowance] = &[Allowance {
    revisions: &[
        Revision::V2024_11_05,
        Revision::V2025_03_26,
        Revision::V2025_06_18,
    ],
    place: "/JSONRPCError/properties/id",
    types: &["string", "integer", "null"],
    reason: "these revisions require an id, and JSON-RPC 2.0, section 5, requires it to be \
                 null in answer to a message whose id could not be read",
}];

/// Widens `document`, the schema of `revision`.
pub(super) fn apply(revision: Revision, document: &mut Value) {
    let definitions = super::definitions_member(document);
    for allowance in ALLOWANCES {
        if !allowance.revisions.contains(&revision) {
            continue;
        }
        let place = format!("/{definitions}{}", allowance.place);
        match document.pointer_mut(&place) {
            Some(schema) => *schema = json!({ "type": allowance.types }),
            None => panic!("{revision}: the schema has nothing at {place} to widen"),
        }
    }
}
