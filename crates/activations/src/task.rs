//! Tasks for agents and the people who supervise them: what is to be done, in which order, by whom.
//!
//! A [`Task`] has a state, a priority, perhaps a parent, and blockers, which must be completed
//! before it. Several agents can share a list: each claims what it works on, for a time that it
//! can extend, so that what an agent leaves behind when it dies is taken up by another.
//!
//! [`task`] adds the tools and resources, [`Tasks`] is the list itself.

mod error;
mod model;
mod resources;
mod tables;
mod tasks;
mod tools;

pub(crate) use resources::state;

pub use crate::ledger::Clock;
pub use error::TaskError;
pub use model::{Status, Summary, Task};
pub use tables::MIGRATIONS;
pub use tasks::{Filter, Found, NewTask, Tasks, Update};
pub use tools::{FOUNDING_METHODS, METHODS, founding_task, task};
