//! Scripted MCP clients and schema checks for tests.
//!
//! [`StdioClient`] and [`HttpClient`] say exactly what a test tells them to, right or wrong;
//! [`Client`] speaks one revision properly over any transport, so that one script serves all.
//! Whatever a server sends to any of them is checked against the official schema of the revision
//! spoken ([`Schemas`]): every test that uses them is also a test of every message it provokes.
//!
//! Nothing here waits for ever, and every server started here ends with its owner.
//!
//! A helper of tests fails by panicking, with a text that says what was expected.

#![expect(
    clippy::panic,
    clippy::missing_panics_doc,
    clippy::indexing_slicing,
    reason = "a helper of tests fails by panicking, and a JSON value gives null for what it lacks"
)]

pub mod authorization_server;
mod child;
mod client;
mod http;
pub mod model;
mod patience;
#[cfg(target_os = "linux")]
mod process;
mod schemas;
pub mod server;
mod stdio;
mod transcript;

pub use child::{Exit, Finished, Listening, run};
pub use client::{Client, Exchange, Transport};
pub use http::{Answer, HttpClient, HttpRequest, StreamEvent, raw_exchange};
pub use patience::{PATIENCE, within};
#[cfg(target_os = "linux")]
pub use process::Process;
pub use schemas::{Invalid, Schemas};
pub use stdio::StdioClient;
