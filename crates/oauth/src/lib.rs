//! The rules of MCP authorization, for clients and for servers, in every revision that has it.
//!
//! A [`SignIn`] is a state machine: it says which HTTP request to make or which page to show, takes
//! what came of it, and ends with a [`Session`], which is a token and all that is needed to renew it.
//! [`Renewal`] renews one. What a request to an MCP server must carry is [`Session::headers`].
//!
//! Everything that a server or an authorization server names is an address of somebody else's
//! choice; a [`Guard`] decides which of them may be visited.
//!
//! What is deliberately absent: sockets, files and the clock. Time and chance are arguments, see
//! [`Ambient`]; only the signatures themselves draw on the system's randomness.

pub mod address;
mod ambient;
mod answer;
pub mod challenge;
mod client_auth;
pub mod dpop;
mod error;
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

pub use address::{Guard, Reach};
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
