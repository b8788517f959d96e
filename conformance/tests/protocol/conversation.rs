//! Scripts that a correct client of each of the five revisions runs over each transport (C01,
//! S003-01, S003-40). No other tests cover the older revisions end to end.

mod asking;
mod calling;
mod changing;
mod opening;
mod running;
