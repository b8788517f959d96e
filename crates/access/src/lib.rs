//! Lets only the right people in to a server over HTTP.
//!
//! A [`ResourceServer`] is the [`Access`](plexus_server::http::Access) of a server that wants tokens:
//! of [issuers](Issuer) that signed them or can be asked about them, or of a [`TokenFile`], for where
//! there is no authorization server. It says in metadata and challenges how to get one, as every
//! revision of MCP that has authorization wants it.
//!
//! A token names its [`Principal`](plexus_service::Principal): issuer and subject together, so that
//! two issuers cannot speak for one another. Whoever is refused learns that they are, and nothing of
//! why; the reasons are in the log, which never holds a token.
//!
//! The rules of tokens and proofs are those of `plexus-oauth`; what is here fetches, remembers and
//! keeps time.

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
