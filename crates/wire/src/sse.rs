//! Server-sent events: the `text/event-stream` format, both ways.

mod decoder;
mod encoder;

pub use decoder::{Decoder, Event, TooLong};
pub use encoder::{Frame, encode, encode_comment};

#[cfg(test)]
mod tests;
