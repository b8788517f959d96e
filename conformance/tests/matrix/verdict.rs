//! The expected translation of each feature between a client and a server of two revisions.

use plexus_mcp_protocol::Revision;
use plexus_mcp_protocol::Revision::{V2025_03_26, V2025_06_18, V2025_11_25};

/// Something that clients use of servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Feature {
    List,
    Call,
    Structured,
    Progress,
    Cancel,
    Log,
    ListChanged,
    Subscribe,
    ElicitForm,
    ElicitChoices,
    ElicitUrl,
    Sample,
    Roots,
    Complete,
    Paging,
    UnknownMethod,
}

impl Feature {
    pub(crate) const ALL: [Self; 16] = [
        Self::List,
        Self::Call,
        Self::Structured,
        Self::Progress,
        Self::Cancel,
        Self::Log,
        Self::ListChanged,
        Self::Subscribe,
        Self::ElicitForm,
        Self::ElicitChoices,
        Self::ElicitUrl,
        Self::Sample,
        Self::Roots,
        Self::Complete,
        Self::Paging,
        Self::UnknownMethod,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::List => "lists",
            Self::Call => "calls",
            Self::Structured => "structured results",
            Self::Progress => "progress",
            Self::Cancel => "cancellation",
            Self::Log => "log messages",
            Self::ListChanged => "changes of lists",
            Self::Subscribe => "changes of resources",
            Self::ElicitForm => "elicitation by form",
            Self::ElicitChoices => "elicitation of several choices",
            Self::ElicitUrl => "elicitation by URL",
            Self::Sample => "sampling",
            Self::Roots => "roots",
            Self::Complete => "completion",
            Self::Paging => "pages",
            Self::UnknownMethod => "unknown methods",
        }
    }
}

/// How well a feature is translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Lossless,
    /// A part is lost; the text says which.
    Lossy(&'static str),
    /// The feature cannot be translated; the text says why.
    Impossible(&'static str),
}

/// The verdict for one cell of the matrix, as `docs/protocol.md` states it.
pub(crate) fn verdict(feature: Feature, client: Revision, server: Revision) -> Verdict {
    use Verdict::{Impossible, Lossless, Lossy};
    let both_since = |since: Revision| client >= since && server >= since;
    match feature {
        Feature::Structured if !both_since(V2025_06_18) => {
            Lossy("the text of the result arrives; structured content was added in 2025-06-18")
        }
        Feature::Progress if !both_since(V2025_03_26) => {
            Lossy("the numbers arrive; the message was added in 2025-03-26")
        }
        Feature::ElicitChoices if !both_since(V2025_11_25) => Lossy(
            "the user types the choices as text, and the server gets them as a list; lists in forms \
             were added in 2025-11-25",
        ),
        Feature::ElicitUrl if !both_since(V2025_11_25) => {
            Impossible("elicitation by URL was added in 2025-11-25; the tool gets an error")
        }
        _ => Lossless,
    }
}
