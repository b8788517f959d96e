//! Authorization for an MCP server over HTTP: verifies the access token of each request.
//!
//! [`ResourceServer`] implements [`Access`](plexus_mcp_server::http::Access) with OAuth 2.0 access
//! tokens. It accepts tokens of [issuers](Issuer), by signature or by introspection, and static tokens
//! of a [`TokenFile`], for setups without an authorization server. Protected resource metadata and
//! `WWW-Authenticate` challenges tell clients how to get a token, as every revision of MCP with
//! authorization requires.
//!
//! The [`Principal`](plexus_mcp_core::Principal) of a token is issuer and subject together, so that
//! one issuer cannot impersonate the users of another. A refused client is not told the reason; the
//! reason is in the log, which never contains a token.
//!
//! `plexus-mcp-oauth` has the rules for tokens and proofs, without I/O. This crate adds HTTP requests,
//! caches and the clock.

mod challenge;
mod clock;
mod credentials;
mod introspection;
mod issuer;
mod keys;
mod proofs;
mod resource_server;
mod tokens;
mod verified;
mod web;

pub use issuer::{Check, Introspection, Issuer};
pub use resource_server::{Options, ResourceServer, SettingsError};
pub use tokens::{NewToken, TokenEntry, TokenFile, TokenFileError};
