//! HTTP/1.1 server: sockets, limits, guards, bodies. It does not depend on MCP.
//!
//! [`serve`] accepts connections and passes each request to a handler; [`Guard`] accepts or refuses
//! a request by its head; [`read_body`] reads the body, within limits; [`Body`] and [`respond`] build
//! the response.
//!
//! A handler is dropped when its client disconnects, and so is the stream of a [`Body`]. This cancels
//! the call.

mod body;
mod client_stream;
mod connection;
mod connections;
mod descriptors;
mod guard;
mod listen;
mod receive;
pub mod respond;

pub use body::{Body, KEEP_ALIVE_INTERVAL};
pub use connection::ConnectionInfo;
pub(crate) use connections::Delivery;
pub use guard::{Guard, Host, InvalidHost, InvalidOrigin, Origin, Refusal};
pub use listen::{Accept, BindError, Limits, Listener, serve};
pub use receive::{BodyLimits, ReadError, read_body};

#[cfg(test)]
mod tests;
