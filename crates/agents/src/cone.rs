//! Cones: stored conversations with language models.
//!
//! A [`Cone`] has a name, a model, an optional system prompt, and a tree of its own. The
//! conversation is the path from the root of the tree to its head. A chat adds two nodes, question
//! and answer, and moves the head. Setting the head to another node rewinds the conversation or
//! continues another branch.
//!
//! Question and answer are stored together, when the answer is complete: a chat that fails or is
//! cancelled changes nothing. If the head was moved while the model was answering, the two nodes
//! become a branch at the node where the question was asked, and the head stays. An ephemeral chat
//! stores nothing.
//!
//! The model is that of a provider, over HTTP ([`model`](crate::model)), or the client's own, by
//! sampling: if the cone's model is `sampling`, or if there is no key for the provider.
//!
//! [`cone`] adds the tools and prompts; [`Cones`] holds the data that they work on.

mod chat;
mod cones;
mod error;
mod prompts;
mod tables;
mod tools;

pub use chat::{ChatSummary, Outcome};
pub use cones::{Cone, Cones, HeadMoved, NewCone};
pub use error::ConeError;
pub use tables::MIGRATIONS;
pub use tools::cone;
