//! Where the published schemas are narrower than the specification they are generated from.
//!
//! `schema.ts` and the prose are the source of truth; what `schema.json` gets wrong is widened
//! here, and nowhere else (REVISIONS §23.8).

use plexus_mcp::Revision;
use serde_json::{Value, json};

struct Allowance {
    revisions: &'static [Revision],
    /// Where, below the definitions.
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
