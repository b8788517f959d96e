//! The five released revisions and the one feature matrix of their differences.

use std::fmt;
use std::str::FromStr;

/// The two ways an MCP connection works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "code on both edges must handle every era"
)]
pub enum Era {
    /// A session opened by `initialize`: 2024-11-05 to 2025-11-25.
    Handshake,
    /// There is no session; every request carries its own metadata: 2026-07-28.
    Stateless,
}

impl Era {
    /// The name of the era in configuration files, on the command line and in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Handshake => "legacy",
            Self::Stateless => "modern",
        }
    }

    /// The newest revision of this era.
    pub const fn newest_revision(self) -> Revision {
        match self {
            Self::Handshake => Revision::NEWEST_HANDSHAKE,
            Self::Stateless => Revision::NEWEST_STATELESS,
        }
    }
}

impl fmt::Display for Era {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Era {
    type Err = UnknownEra;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        [Self::Handshake, Self::Stateless]
            .into_iter()
            .find(|era| era.as_str() == name)
            .ok_or_else(|| UnknownEra(name.to_owned()))
    }
}

/// A text that names no [`Era`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown era {0:?}; use legacy or modern")]
pub struct UnknownEra(pub String);

/// A released revision of MCP, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a new revision must be considered everywhere"
)]
pub enum Revision {
    /// 2024-11-05, the first; HTTP+SSE.
    V2024_11_05,
    /// 2025-03-26: Streamable HTTP, batches, audio, tool annotations.
    V2025_03_26,
    /// 2025-06-18: structured content, elicitation, resource links, titles.
    V2025_06_18,
    /// 2025-11-25: icons, URL elicitation, tool calls in sampling, polling of streams.
    V2025_11_25,
    /// 2026-07-28: stateless.
    V2026_07_28,
}

impl Revision {
    /// Every revision, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// The newest revision that is opened by a handshake: what an `initialize` for an unknown or
    /// stateless revision is answered with (LIFE-07).
    pub const NEWEST_HANDSHAKE: Self = Self::V2025_11_25;

    /// The newest stateless revision.
    pub const NEWEST_STATELESS: Self = Self::V2026_07_28;

    /// The assumed revision of a legacy HTTP request without a version header (HTTPL-22).
    pub const ASSUMED_WITHOUT_HEADER: Self = Self::V2025_03_26;

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The features of this revision.
    pub const fn features(self) -> &'static Features {
        match self {
            Self::V2024_11_05 => &Features::V2024_11_05,
            Self::V2025_03_26 => &Features::V2025_03_26,
            Self::V2025_06_18 => &Features::V2025_06_18,
            Self::V2025_11_25 => &Features::V2025_11_25,
            Self::V2026_07_28 => &Features::V2026_07_28,
        }
    }

    /// How connections of this revision work.
    pub const fn era(self) -> Era {
        self.features().era
    }

    /// The names of all revisions of `eras`, newest first, as `supportedVersions` lists them.
    pub fn supported(eras: &[Era]) -> Vec<&'static str> {
        let mut names: Vec<_> = Self::ALL
            .into_iter()
            .filter(|revision| eras.contains(&revision.era()))
            .map(Self::as_str)
            .collect();
        names.reverse();
        names
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Revision {
    type Err = UnknownRevision;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|revision| revision.as_str() == name)
            .ok_or_else(|| UnknownRevision(name.to_owned()))
    }
}

/// A version string that names no released revision.
///
/// Unknown strings are never sorted into an era by comparison: they are simply not supported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown protocol version {0:?}")]
pub struct UnknownRevision(pub String);

/// The JSON types allowed in `structuredContent` and at the root of an `outputSchema`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "part of the closed feature table")]
pub enum StructuredContent {
    /// The revision has neither.
    Absent,
    /// Objects only.
    Object,
    /// Any JSON value.
    Any,
}

/// Which modes of elicitation exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "part of the closed feature table")]
pub enum ElicitationModes {
    /// No elicitation. A client that declares it all the same is asked by [`Self::Form`].
    Absent,
    /// Forms only, without a `mode` member.
    Form,
    /// Forms and URLs; a URL elicitation carries an `elicitationId`.
    FormAndUrlWithId,
    /// Forms and URLs.
    FormAndUrl,
}

/// How tool arguments that break the input schema are reported (C10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "part of the closed feature table")]
pub enum ArgumentErrors {
    /// As a JSON-RPC error, `-32602`.
    Protocol,
    /// As a tool result with `isError`, so that the model can correct itself.
    ToolResult,
}

/// The `id` of an error response when the request's id could not be read (C33).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "part of the closed feature table")]
pub enum UnreadableId {
    /// `null`, as JSON-RPC 2.0 has it.
    Null,
    /// Left out.
    Absent,
}

/// The features of one revision. Every difference between revisions is read from here; no other code
/// compares revisions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a table of independent yes/no differences"
)]
pub struct Features {
    /// How connections work.
    pub era: Era,
    /// JSON-RPC batches are accepted (C04: 2024-11-05 as well, whose text is silent on them).
    pub batches: bool,
    /// The id of an error whose request id could not be read.
    pub unreadable_id: UnreadableId,
    /// How bad tool arguments are reported.
    pub argument_errors: ArgumentErrors,
    /// The code of "resource not found".
    pub resource_not_found: i64,
    /// `-32042` may be sent.
    pub url_elicitation_error: bool,
    /// Results carry `resultType`, list and read results cache hints.
    pub typed_results: bool,
    /// `notifications/progress` may carry `message`.
    pub progress_message: bool,
    /// Tools have `annotations`.
    pub tool_annotations: bool,
    /// `audio` content blocks.
    pub audio: bool,
    /// `resource_link` content blocks.
    pub resource_links: bool,
    /// `title` on tools, resources, templates, prompts, arguments and implementations, and `_meta` on content.
    pub titles: bool,
    /// `icons` on definitions; `icons`, `description` and `websiteUrl` on implementations.
    pub icons: bool,
    /// `structuredContent` and `outputSchema`.
    pub structured_content: StructuredContent,
    /// Properties of tool schemas may be the schemas `true` and `false`, not only objects.
    pub boolean_property_schemas: bool,
    /// `annotations.lastModified`.
    pub last_modified: bool,
    /// The `completions` server capability exists.
    pub completions_capability: bool,
    /// `capabilities.extensions` is defined.
    pub extensions: bool,
    /// `completion/complete` takes `context`.
    pub completion_context: bool,
    /// Elicitation.
    pub elicitation: ElicitationModes,
    /// Titled (`oneOf`) and multiple (`array`) choices, and defaults, in elicitation forms.
    pub rich_elicitation_forms: bool,
    /// `tools`, `toolChoice` and content arrays in sampling.
    pub sampling_tools: bool,
    /// A POST stream starts with a priming event, carries `retry`, and may be closed early (HTTPL-09, HTTPL-10).
    pub stream_polling: bool,
    /// `MCP-Protocol-Version` is sent on every HTTP request after the handshake.
    pub version_header: bool,
}

impl Features {
    const V2024_11_05: Self = Self {
        era: Era::Handshake,
        batches: true,
        unreadable_id: UnreadableId::Null,
        argument_errors: ArgumentErrors::Protocol,
        resource_not_found: crate::code::LEGACY_RESOURCE_NOT_FOUND,
        url_elicitation_error: false,
        typed_results: false,
        progress_message: false,
        tool_annotations: false,
        audio: false,
        resource_links: false,
        titles: false,
        icons: false,
        structured_content: StructuredContent::Absent,
        boolean_property_schemas: false,
        last_modified: false,
        completions_capability: false,
        extensions: false,
        completion_context: false,
        elicitation: ElicitationModes::Absent,
        rich_elicitation_forms: false,
        sampling_tools: false,
        stream_polling: false,
        version_header: false,
    };

    const V2025_03_26: Self = Self {
        progress_message: true,
        tool_annotations: true,
        audio: true,
        completions_capability: true,
        ..Self::V2024_11_05
    };

    const V2025_06_18: Self = Self {
        batches: false,
        resource_links: true,
        titles: true,
        structured_content: StructuredContent::Object,
        last_modified: true,
        completion_context: true,
        elicitation: ElicitationModes::Form,
        version_header: true,
        ..Self::V2025_03_26
    };

    const V2025_11_25: Self = Self {
        unreadable_id: UnreadableId::Absent,
        argument_errors: ArgumentErrors::ToolResult,
        url_elicitation_error: true,
        icons: true,
        elicitation: ElicitationModes::FormAndUrlWithId,
        rich_elicitation_forms: true,
        sampling_tools: true,
        stream_polling: true,
        ..Self::V2025_06_18
    };

    const V2026_07_28: Self = Self {
        era: Era::Stateless,
        resource_not_found: crate::code::INVALID_PARAMS,
        url_elicitation_error: false,
        typed_results: true,
        structured_content: StructuredContent::Any,
        boolean_property_schemas: true,
        extensions: true,
        elicitation: ElicitationModes::FormAndUrl,
        stream_polling: false,
        ..Self::V2025_11_25
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eras_are_read_as_they_are_shown() {
        for era in [Era::Handshake, Era::Stateless] {
            assert_eq!(era.to_string().parse(), Ok(era));
            assert_eq!(era.newest_revision().era(), era);
        }
        assert!("both".parse::<Era>().is_err());
    }

    /// C01: all five, and nothing by guess.
    #[test]
    fn names_round_trip_and_unknown_ones_are_refused() {
        for revision in Revision::ALL {
            assert_eq!(revision.as_str().parse(), Ok(revision));
        }
        for unknown in ["2024-10-07", "2027-01-01", "2026-07-29", "", "v999.0.0"] {
            assert_eq!(
                unknown.parse::<Revision>(),
                Err(UnknownRevision(unknown.to_owned()))
            );
        }
    }

    #[test]
    fn supported_lists_are_newest_first_and_by_era() {
        assert_eq!(
            Revision::supported(&[Era::Handshake, Era::Stateless]),
            [
                "2026-07-28",
                "2025-11-25",
                "2025-06-18",
                "2025-03-26",
                "2024-11-05"
            ]
        );
        assert_eq!(Revision::supported(&[Era::Stateless]), ["2026-07-28"]);
        assert!(!Revision::supported(&[Era::Handshake]).contains(&"2026-07-28"));
    }

    /// BASE-09, BASE-11, C04, C10, C45: spot checks of the table against the specification's matrix.
    #[test]
    fn the_table_says_what_the_specification_says() {
        let having = |has: fn(&Features) -> bool| -> Vec<&str> {
            let revisions = Revision::ALL
                .into_iter()
                .filter(|revision| has(revision.features()));
            revisions.map(Revision::as_str).collect()
        };
        assert_eq!(having(|f| f.batches), ["2024-11-05", "2025-03-26"]);
        assert_eq!(having(|f| f.resource_not_found == -32602), ["2026-07-28"]);
        assert_eq!(
            having(|f| f.argument_errors == ArgumentErrors::ToolResult),
            ["2025-11-25", "2026-07-28"]
        );
        assert_eq!(having(|f| f.stream_polling), ["2025-11-25"]);
        assert_eq!(having(|f| f.url_elicitation_error), ["2025-11-25"]);
        assert_eq!(having(|f| f.typed_results), ["2026-07-28"]);
        assert_eq!(
            having(|f| f.elicitation == ElicitationModes::Absent),
            ["2024-11-05", "2025-03-26"]
        );
        assert_eq!(having(|f| !f.audio), ["2024-11-05"]);
        assert_eq!(
            having(|f| f.resource_links),
            ["2025-06-18", "2025-11-25", "2026-07-28"]
        );
    }
}
