//! Many MCP servers as one [`Service`](plexus_service::Service).
//!
//! A [`Hub`] has members: servers that it connects through the client edge, and services in this
//! process. It merges what they offer, gives every tool and prompt a name that no other has and
//! that every model takes, and passes each call on to the one it is for. One member that fails
//! costs the others nothing.
//!
//! Which servers people have configured is read by [`config`]. Which calls of tools are made is
//! decided by a [`policy`].
//!
//! What is deliberately absent: revisions, eras and transports, which only the edges know.

mod clients;
pub mod config;
mod hub;
pub mod manage;
mod member;
pub mod names;
pub mod policy;
pub mod remembered;
mod routes;
mod search;
pub mod secrets;
mod turns;

pub use hub::{Hub, HubEvent, MemberStatus, Origin, SetMembers};
pub use member::{MemberKind, MemberSpec, Prepare, Resolve, ToolFilter};
