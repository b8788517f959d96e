//! One script, followed by a well-behaved client of each of the five revisions over each transport
//! (acceptance of the protocol as a whole: nothing else tests the older revisions end to end).

mod asking;
mod calling;
mod changing;
mod opening;
mod running;
