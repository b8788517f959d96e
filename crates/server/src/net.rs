//! HTTP/1.1 as bytes: sockets, limits, guards and bodies. Nothing here knows MCP.
//!
//! [`serve`] accepts connections and gives each request to a handler; [`Guard`] decides from the
//! request head whether a request may be looked at; [`read_body`] takes the body in, within
//! limits; [`Body`] and [`respond`] make the answer.
//!
//! A handler is dropped when its client goes away, and so is the stream behind a [`Body`]: that is
//! how a call learns of its cancellation.

mod body;
mod connection;
mod guard;
mod listen;
mod receive;
pub mod respond;

pub use body::{Body, KEEP_ALIVE_INTERVAL};
pub use connection::ConnectionInfo;
pub use guard::{Guard, Host, InvalidHost, InvalidOrigin, Origin, Refusal};
pub use listen::{Accept, BindError, Limits, Listener, serve};
pub use receive::{BodyLimits, ReadError, read_body};

#[cfg(test)]
mod tests;
