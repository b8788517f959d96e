//! Scripted MCP clients and schema checks for tests.
//!
//! [`StdioClient`] and [`HttpClient`] send exactly what a test says, correct or not; [`Client`]
//! follows one revision over any transport, so that one test can run over all. Every message that a
//! server sends to them is checked against the official schema of its revision ([`Schemas`]).
//!
//! Every wait has a timeout, and every server ends when its owner is dropped.
//!
//! Helpers panic on failure, and the message states the expectation.

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
#[cfg(target_os = "linux")]
mod process;
mod schemas;
pub mod server;
mod stdio;
mod timeout;
mod transcript;

pub use child::{Exit, Finished, ListeningServer, run};
pub use client::{Client, Exchange, Transport};
pub use http::{HttpClient, HttpRequest, HttpResponse, StreamEvent, raw_exchange};
#[cfg(target_os = "linux")]
pub use process::ForeignProcess;
pub use schemas::{Invalid, Schemas};
pub use stdio::StdioClient;
pub use timeout::{TEST_TIMEOUT, within};
