//! Tests with the official Rust SDK, as a client and as a server. This library is empty.
