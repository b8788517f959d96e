//! One script, followed by a well-behaved client of each of the five revisions over each transport
//! (C01, S003-01, S003-40; nothing else tests the older revisions end to end).

mod asking;
mod calling;
mod changing;
mod opening;
mod running;
