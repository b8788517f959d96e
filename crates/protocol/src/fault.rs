//! The errors of a request, and the one table that maps each to the JSON-RPC code
//! and HTTP status it becomes in which revision.

use plexus_mcp_wire::{Raw, RpcError};

use crate::code;
use crate::messages::ClientCapability;
use crate::revision::{Era, Features, Revision};

/// The HTTP status that goes with an error, when its response has not begun yet.
pub type HttpStatus = u16;

/// Why a request failed, independent of the revision.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The bytes are not JSON, or not UTF-8.
    #[error("parse error: {0}")]
    Parse(String),
    /// JSON, but not a message that is valid here.
    #[error("invalid request: {0}")]
    InvalidRequest(String),
    /// A legacy request that its connection's state does not allow (C05).
    #[error("{message}")]
    WrongState {
        /// The code to answer with.
        code: i64,
        /// The description of the state, as the first specification words it.
        message: &'static str,
        /// The state's name, for `data`.
        state: &'static str,
    },
    /// A message larger than the limit.
    #[error("message exceeds the limit of {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// The method is unknown here, or its capability is not offered.
    #[error("method not found: {0}")]
    MethodNotFound(String),
    /// The parameters are wrong.
    #[error("{0}")]
    InvalidParams(String),
    /// Metadata that every stateless request must carry is missing or malformed (META26-02).
    #[error("{0}")]
    MissingMeta(String),
    /// No such tool.
    #[error("Unknown tool: {0}")]
    UnknownTool(String),
    /// No such prompt.
    #[error("Unknown prompt: {0}")]
    UnknownPrompt(String),
    /// No such resource.
    #[error("Resource not found: {0}")]
    ResourceNotFound(String),
    /// Tool arguments that break the tool's input schema. Renderers decide by
    /// [`Features::argument_errors`] whether this becomes an error at all.
    #[error("{0}")]
    InvalidArguments(String),
    /// The request needs a client capability that the client did not declare.
    #[error("this request needs the client capability {}", .0.as_str())]
    MissingCapability(ClientCapability),
    /// A mirrored header is missing, malformed or contradicts the body.
    #[error("{0}")]
    HeaderMismatch(String),
    /// The request names a version that is not served.
    #[error("Unsupported protocol version: {requested}")]
    UnsupportedVersion {
        /// The requested version.
        requested: String,
        /// The supported versions, newest first.
        supported: Vec<&'static str>,
    },
    /// A `requestState` that is forged, expired, used up or meant for another request or caller:
    /// all look the same, on purpose.
    #[error("requestState is invalid or expired")]
    InvalidState,
    /// The user must visit these URLs first; `data` of `-32042`.
    #[error("a URL must be visited first")]
    UrlElicitationRequired(Raw),
    /// The request was cancelled.
    #[error("Request cancelled")]
    Cancelled,
    /// The answer is larger than allowed.
    #[error(
        "the server's answer is too large: {size} bytes or more, the limit is {limit} bytes{}",
        in_mebibytes(*limit)
    )]
    ResponseTooLarge {
        /// The size of the answer as far as it is known, in bytes.
        size: u64,
        /// The limit, in bytes.
        limit: usize,
    },
    /// Overload: nothing was executed, and a retry later may succeed.
    #[error("{0}")]
    Busy(String),
    /// The server failed; the text is safe to show.
    #[error("{0}")]
    Internal(String),
    /// An error that another server gave, passed on.
    #[error(transparent)]
    Upstream(#[from] RpcError),
}

impl Fault {
    /// The JSON-RPC code of this fault for a peer of `revision`.
    pub fn code(&self, revision: Revision) -> i64 {
        let features = revision.features();
        match self {
            Self::Parse(_) => code::PARSE_ERROR,
            Self::InvalidRequest(_) | Self::TooLarge { .. } => code::INVALID_REQUEST,
            Self::WrongState { code, .. } => *code,
            Self::MethodNotFound(_) => code::METHOD_NOT_FOUND,
            Self::InvalidParams(_)
            | Self::MissingMeta(_)
            | Self::UnknownTool(_)
            | Self::UnknownPrompt(_)
            | Self::InvalidArguments(_)
            | Self::InvalidState => code::INVALID_PARAMS,
            Self::ResourceNotFound(_) => features.resource_not_found,
            Self::MissingCapability(_) => code::MISSING_CLIENT_CAPABILITY,
            Self::HeaderMismatch(_) => code::HEADER_MISMATCH,
            // Before there was a code of its own, the handshake's text showed this one.
            Self::UnsupportedVersion { .. } if features.era == Era::Handshake => {
                code::INVALID_PARAMS
            }
            Self::UnsupportedVersion { .. } => code::UNSUPPORTED_PROTOCOL_VERSION,
            Self::UrlElicitationRequired(_) if features.url_elicitation_error => {
                code::URL_ELICITATION_REQUIRED
            }
            Self::Cancelled => code::REQUEST_CANCELLED,
            Self::ResponseTooLarge { .. } => code::CONTENT_TOO_LARGE,
            Self::UrlElicitationRequired(_) | Self::Busy(_) | Self::Internal(_) => {
                code::INTERNAL_ERROR
            }
            Self::Upstream(error) => upstream_code(error.code, features),
        }
    }

    /// The HTTP status for a peer of `revision`, as long as no response has begun.
    ///
    /// Legacy revisions carry JSON-RPC errors in a 200; only messages that never became a request
    /// of a session are refused by status (HTTPL-04). 2026-07-28 pins 400 and 404 (VER26-03,
    /// META26-02, META26-05, HTTP26-17).
    pub fn status(&self, revision: Revision) -> HttpStatus {
        match self {
            Self::TooLarge { .. } => 413,
            Self::Parse(_)
            | Self::InvalidRequest(_)
            | Self::UnsupportedVersion { .. }
            | Self::HeaderMismatch(_)
            | Self::MissingMeta(_) => 400,
            Self::MissingCapability(_) if revision.era() == Era::Stateless => 400,
            Self::MethodNotFound(_) if revision.era() == Era::Stateless => 404,
            Self::Upstream(error) if revision.era() == Era::Stateless => match error.code {
                code::METHOD_NOT_FOUND => 404,
                code::MISSING_CLIENT_CAPABILITY => 400,
                _ => 200,
            },
            _ => 200,
        }
    }

    /// The error object for a peer of `revision`.
    pub fn to_error(&self, revision: Revision) -> RpcError {
        RpcError {
            code: self.code(revision),
            message: self.message(),
            data: self.data(revision),
        }
    }

    fn message(&self) -> String {
        match self {
            Self::Upstream(error) => error.message.clone(),
            other => other.to_string(),
        }
    }

    fn data(&self, revision: Revision) -> Option<Raw> {
        match self {
            Self::WrongState { state, .. } => Some(json(&WrongStateData {
                state,
                reason: "not_initialized",
            })),
            Self::TooLarge { limit } | Self::ResponseTooLarge { limit, .. } => {
                Some(json(&LimitData { limit: *limit }))
            }
            Self::ResourceNotFound(uri) => Some(json(&UriData { uri })),
            Self::MissingCapability(capability) => {
                let required_capabilities = capability.required();
                Some(json(&CapabilityData {
                    required_capabilities,
                }))
            }
            Self::UnsupportedVersion {
                requested,
                supported,
            } => Some(json(&VersionData {
                supported,
                requested,
            })),
            Self::UrlElicitationRequired(data) if revision.features().url_elicitation_error => {
                Some(data.clone())
            }
            Self::Upstream(error) if disguised(error.code, revision.features()) => {
                Some(json(&UpstreamData {
                    upstream_code: error.code,
                }))
            }
            Self::Upstream(error) => error.data.clone(),
            _ => None,
        }
    }
}

/// The same number of bytes in MiB, in brackets, if it is a whole number of them.
fn in_mebibytes(bytes: usize) -> String {
    const MEBIBYTE: usize = 1024 * 1024;
    match bytes / MEBIBYTE {
        whole @ 1.. if bytes.is_multiple_of(MEBIBYTE) => format!(" ({whole} MiB)"),
        _ => String::new(),
    }
}

/// The code under which another server's error is passed on (TRANSLATION §5.12, §6.11): "resource
/// not found" changes its number between eras.
fn upstream_code(given: i64, features: &Features) -> i64 {
    match given {
        code::LEGACY_RESOURCE_NOT_FOUND => features.resource_not_found,
        _ if disguised(given, features) => code::INTERNAL_ERROR,
        _ => given,
    }
}

/// Whether a code would mean something else to the peer: it is reserved in the peer's revision, but
/// was given by a server that need not know that.
fn disguised(given: i64, features: &Features) -> bool {
    features.era == Era::Stateless
        && code::RESERVED_CODES.contains(&given)
        && given != code::MISSING_CLIENT_CAPABILITY
}

#[derive(serde::Serialize)]
struct WrongStateData<'a> {
    state: &'a str,
    reason: &'a str,
}

#[derive(serde::Serialize)]
struct LimitData {
    limit: usize,
}

#[derive(serde::Serialize)]
struct UriData<'a> {
    uri: &'a str,
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct CapabilityData {
    required_capabilities: Raw,
}

#[derive(serde::Serialize)]
struct VersionData<'a> {
    supported: &'a [&'a str],
    requested: &'a str,
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct UpstreamData {
    upstream_code: i64,
}

/// Structs of strings and numbers always serialise; if one does not, the result is an empty object.
fn json<T: serde::Serialize>(data: &T) -> Raw {
    Raw::encode(data).unwrap_or_else(|_| Raw::empty_object())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEGACY: Revision = Revision::V2025_11_25;
    const MODERN: Revision = Revision::V2026_07_28;

    /// C45, RES-03, RES-04, ERR26-04: the number changes with the era, the URI is always there.
    #[test]
    fn resource_not_found_changes_its_code_with_the_era() {
        let fault = Fault::ResourceNotFound("test://x".to_owned());
        assert_eq!(fault.to_error(LEGACY).code, -32002);
        let modern = fault.to_error(MODERN);
        assert_eq!((modern.code, fault.status(MODERN)), (-32602, 200));
        assert_eq!(modern.data.unwrap().as_str(), r#"{"uri":"test://x"}"#);
    }

    /// VER26-02, VER26-03, META26-02, META26-05, HTTP26-17, HDR26-02.
    #[test]
    fn stateless_errors_have_their_exact_statuses() {
        let version = Fault::UnsupportedVersion {
            requested: "v999".to_owned(),
            supported: vec!["2026-07-28", "2025-11-25"],
        };
        let error = version.to_error(MODERN);
        assert_eq!((error.code, version.status(MODERN)), (-32022, 400));
        assert_eq!(
            error.data.unwrap().as_str(),
            r#"{"supported":["2026-07-28","2025-11-25"],"requested":"v999"}"#
        );
        let missing = Fault::MissingCapability(ClientCapability::Sampling);
        let error = missing.to_error(MODERN);
        assert_eq!((error.code, missing.status(MODERN)), (-32021, 400));
        assert_eq!(
            error.data.unwrap().as_str(),
            r#"{"requiredCapabilities":{"sampling":{}}}"#
        );
        let unknown = Fault::MethodNotFound("ping".to_owned());
        assert_eq!(
            (unknown.code(MODERN), unknown.status(MODERN)),
            (-32601, 404)
        );
        assert_eq!(
            (unknown.code(LEGACY), unknown.status(LEGACY)),
            (-32601, 200)
        );
        assert_eq!(Fault::MissingMeta(String::new()).status(MODERN), 400);
        assert_eq!(Fault::HeaderMismatch(String::new()).status(MODERN), 400);
    }

    /// C09: a person reads the size, the limit, and whose answer it is.
    #[test]
    fn an_answer_that_is_too_large_names_the_limit() {
        let text = |size, limit| Fault::ResponseTooLarge { size, limit }.to_string();
        assert_eq!(
            text(17_825_792, 16 * 1024 * 1024),
            "the server's answer is too large: 17825792 bytes or more, the limit is 16777216 bytes \
             (16 MiB)"
        );
        assert!(text(1001, 1000).ends_with("the limit is 1000 bytes"));
        let error = Fault::ResponseTooLarge { size: 2, limit: 1 }.to_error(LEGACY);
        assert_eq!(error.code, -32801);
        assert_eq!(error.data.unwrap().as_str(), r#"{"limit":1}"#);
    }

    /// C05: the code is -32600, the text and the state are there.
    #[test]
    fn wrong_state_is_an_invalid_request_with_its_state() {
        let fault = Fault::WrongState {
            code: code::INVALID_REQUEST,
            message: "Server not initialized",
            state: "created",
        };
        let error = fault.to_error(LEGACY);
        assert_eq!(
            (error.code, error.message.as_str()),
            (-32600, "Server not initialized")
        );
        assert_eq!(
            error.data.unwrap().as_str(),
            r#"{"state":"created","reason":"not_initialized"}"#
        );
    }

    /// ERR26-03, TRANSLATION §5.12 and edge case 30.
    #[test]
    fn foreign_codes_that_are_reserved_are_not_passed_to_stateless_peers() {
        let upstream = |code| {
            Fault::Upstream(RpcError {
                code,
                message: "private".to_owned(),
                data: None,
            })
        };
        let error = upstream(-32022).to_error(MODERN);
        assert_eq!(error.code, -32603);
        assert_eq!(error.data.unwrap().as_str(), r#"{"upstreamCode":-32022}"#);
        assert_eq!(upstream(-32022).to_error(LEGACY).code, -32022);
        let missing = RpcError {
            code: -32002,
            message: "not found".to_owned(),
            data: Some(json(&UriData { uri: "a://b" })),
        };
        let error = Fault::Upstream(missing).to_error(MODERN);
        assert_eq!(
            (error.code, error.data.unwrap().as_str()),
            (-32602, r#"{"uri":"a://b"}"#)
        );
        assert_eq!(upstream(-32005).to_error(MODERN).code, -32005);
    }
}
