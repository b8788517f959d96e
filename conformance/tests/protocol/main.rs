//! The server as its clients see it: scripted clients of every revision, on every transport, well
//! behaved (`conversation`) and not (everything else). They talk to the fixture server.
//!
//! Every message the server sends is checked against the schema of its revision on the way.

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
