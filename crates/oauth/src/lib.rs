//! The rules of MCP authorization, for clients and for servers, in every revision that has it.
//!
//! A [`SignIn`] is a sans-I/O state machine: each [`Step`] is an HTTP request to send or a page to show,
//! and the caller passes in the response or the redirect. It ends with a [`Session`]: a token and the
//! data that is needed to renew it. [`Renewal`] renews a session. [`Session::headers`] makes the headers
//! of a request to an MCP server.
//!
//! URLs that a server or an authorization server names are untrusted; a [`UrlPolicy`] decides which of them
//! may be requested.
//!
//! Deliberately absent: sockets, files and the clock. Time and random numbers are arguments, see
//! [`Ambient`]. Only key generation and signatures use the random numbers of the system.

pub mod address;
mod ambient;
pub mod challenge;
mod client_auth;
pub mod dpop;
mod error;
mod http_exchange;
pub mod jwt;
pub mod keys;
pub mod metadata;
mod pkce;
mod plan;
mod registration;
mod renewal;
mod scopes;
mod secret;
mod session;
mod sign_in;
mod token;
pub mod well_known;

pub use address::{Reach, UrlPolicy};
pub use ambient::Ambient;
pub use challenge::{Challenge, Challenges};
pub use client_auth::{AuthMethod, ClientKey};
pub use error::OAuthError;
pub use pkce::{code_challenge, code_verifier};
pub use plan::{Client, Grant, Plan, UserGrant};
pub use registration::{ClientMetadata, Registration};
pub use renewal::{Renewal, revocation};
pub use scopes::Scopes;
pub use secret::Secret;
pub use session::{Session, TokenKind};
pub use sign_in::{SignIn, Step};
