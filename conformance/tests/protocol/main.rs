//! Tests of the server edge with scripted clients of every revision, over every transport. The
//! clients in `conversation` follow the protocol; most other modules send invalid or unusual
//! messages. Most tests use the fixture server.
//!
//! The testkit checks every message of the server against the schema of its revision.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking"
)]

#[macro_use]
mod support;

mod answering;
mod bad_input;
mod batches;
mod conversation;
mod ending;
mod era;
mod headers;
mod ids;
mod lifecycle;
mod load;
mod negotiation;
mod paging;
mod parking;
mod resuming;
mod sessions;
mod streamless;
mod two_endpoints;
