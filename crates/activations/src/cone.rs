//! Conversations with language models, whose memory is a path in a tree.
//!
//! A [`Cone`] has a name, a model, perhaps a system prompt, and a tree of its own. What was said is
//! in the nodes from the root of the tree to its head; a question and its answer are two more nodes,
//! and the head moves on. Putting the head elsewhere rewinds the conversation, or goes on from
//! another branch.
//!
//! A question and its answer are stored together, when the answer is complete: a chat that fails or
//! is cancelled leaves the tree and its head as they were. If the head was moved while a model was
//! answering, the two nodes are a branch at the place where the question was asked, and the head
//! stays where it was put. An ephemeral chat stores nothing.
//!
//! The model is a provider's, over HTTP ([`model`](crate::model)), or the client's own, by sampling:
//! when the cone asks for it, and when there is no key for the provider.
//!
//! [`cone`] adds the tools and prompts, [`Cones`] is where the cones are.

mod chat;
mod cones;
mod error;
mod prompts;
mod tables;
mod tools;

pub use chat::{Chatted, Outcome};
pub use cones::{Cone, Cones, Moved, NewCone};
pub use error::ConeError;
pub use tables::MIGRATIONS;
pub use tools::cone;
