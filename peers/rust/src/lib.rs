//! The official Rust SDK as a client of the fixture server. All there is to it are the tests.
