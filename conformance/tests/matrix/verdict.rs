//! What can pass between a client and a server of two revisions, and what it loses.

use plexus_mcp::Revision;
use plexus_mcp::Revision::{V2025_03_26, V2025_06_18, V2025_11_25};

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
    ElicitUrl,
    Sample,
    Roots,
    Complete,
    Paging,
    UnknownMethod,
}

impl Feature {
    pub(crate) const ALL: [Self; 15] = [
        Self::List,
        Self::Call,
        Self::Structured,
        Self::Progress,
        Self::Cancel,
        Self::Log,
        Self::ListChanged,
        Self::Subscribe,
        Self::ElicitForm,
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
            Self::ElicitUrl => "elicitation by URL",
            Self::Sample => "sampling",
            Self::Roots => "roots",
            Self::Complete => "completion",
            Self::Paging => "pages",
            Self::UnknownMethod => "unknown methods",
        }
    }
}

/// How well something passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Lossless,
    /// What is lost.
    Lossy(&'static str),
    /// Why it cannot pass.
    Impossible(&'static str),
}

/// What `docs/protocol.md` promises, and every cell of the matrix is held against.
pub(crate) fn verdict(feature: Feature, client: Revision, server: Revision) -> Verdict {
    use Verdict::{Impossible, Lossless, Lossy};
    let both_since = |since: Revision| client >= since && server >= since;
    match feature {
        Feature::Structured if !both_since(V2025_06_18) => {
            Lossy("the text that says the same is there; structured content came with 2025-06-18")
        }
        Feature::Progress if !both_since(V2025_03_26) => {
            Lossy("the numbers are there; the message beside them came with 2025-03-26")
        }
        Feature::ElicitForm if !both_since(V2025_06_18) => Impossible(
            "elicitation came with 2025-06-18; the tool is told that nobody can be asked",
        ),
        Feature::ElicitUrl if !both_since(V2025_11_25) => Impossible(
            "elicitation by URL came with 2025-11-25; the tool is told that nobody can be asked",
        ),
        _ => Lossless,
    }
}
