//! The Model Context Protocol in all five released revisions, without I/O.
//!
//! This crate defines the protocol: which revision has which feature ([`Features`]), what
//! the messages look like ([`messages`]), which error becomes which code and HTTP status
//! ([`Fault`]), the lifecycle of a legacy connection ([`lifecycle`]), which era a message belongs to
//! ([`classify`]), and how a newest-form message is lowered to an older revision ([`convert`]).
//!
//! It does not read clocks, sockets, files, the environment or randomness, and has no async code:
//! time and entropy are arguments.
//!
//! ```
//! use plexus_mcp_protocol::{Era, Revision};
//!
//! let revision: Revision = "2025-06-18".parse()?;
//! assert_eq!(revision.era(), Era::Handshake);
//! assert!(!revision.features().batches);
//! # Ok::<(), plexus_mcp_protocol::UnknownRevision>(())
//! ```

pub mod classify;
pub mod code;
pub mod convert;
pub mod cursor;
mod fault;
pub mod header;
pub mod lifecycle;
pub mod messages;
mod meta;
pub mod method;
mod revision;
pub mod schema;

pub use fault::{Fault, HttpStatus};
pub use meta::{RequestMeta, key};
pub use revision::{
    ArgumentErrors, ElicitationModes, Era, Features, Revision, StructuredContent, UnknownEra,
    UnknownRevision, UnreadableId,
};
