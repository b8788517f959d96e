//! The task list, which agents and people share: descriptions, priorities, dependencies and claims.
//!
//! A [`Task`] has a state, a priority, an optional parent, and blockers, which must be completed
//! before it. Several agents can share a list: each claims the task that it works on, with a lease
//! that it can renew. When an agent dies, its lease expires and another agent can claim the task.
//!
//! [`task`] adds the tools and resources, [`Tasks`] is the list itself.

mod error;
mod model;
mod resources;
mod tables;
mod tasks;
mod tools;

pub(crate) use resources::resource_hash;

pub use crate::notifying_store::Clock;
pub use error::TaskError;
pub use model::{Summary, Task, TaskStatus};
pub use tables::MIGRATIONS;
pub use tasks::{ListedTasks, NewTask, TaskFilter, Tasks, Update};
pub use tools::{BOSSMAN_METHODS, METHODS, bossman_tasks, task};
