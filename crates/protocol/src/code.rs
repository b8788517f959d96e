//! Error codes, by name.

/// The bytes are no JSON.
pub const PARSE_ERROR: i64 = -32700;
/// JSON, but no request that is valid here and now.
pub const INVALID_REQUEST: i64 = -32600;
/// No such method in this revision, or its capability was not advertised.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters are wrong.
pub const INVALID_PARAMS: i64 = -32602;
/// The server failed.
pub const INTERNAL_ERROR: i64 = -32603;
/// Resource not found, up to 2025-11-25. Later revisions say [`INVALID_PARAMS`] and must not send this.
pub const LEGACY_RESOURCE_NOT_FOUND: i64 = -32002;
/// A mirrored header is missing, malformed or differs from the body (2026-07-28).
pub const HEADER_MISMATCH: i64 = -32020;
/// The request needs a client capability that it did not declare (2026-07-28).
pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
/// The request names a version that is not implemented (2026-07-28).
pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;
/// The user must visit a URL first (2025-11-25 only).
pub const URL_ELICITATION_REQUIRED: i64 = -32042;
/// The request was cancelled, where an answer must be given all the same (C08).
pub const REQUEST_CANCELLED: i64 = -32800;
/// The answer is larger than allowed (C09).
pub const CONTENT_TOO_LARGE: i64 = -32801;
/// The user refused to let a model be sampled.
pub const USER_REJECTED: i64 = -1;

/// The range that MCP reserves from 2026-07-28 on: only defined codes may be sent (ERR26-03).
pub const RESERVED_CODES: std::ops::RangeInclusive<i64> = -32099..=-32020;
