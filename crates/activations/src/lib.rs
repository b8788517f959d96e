//! The services built into Plexus, called activations: [`health`] and [`echo`].
//!
//! An activation is a function that adds its tools to a [`Builder`](plexus_service::Builder).
//! [`service`] puts all of them together.
//!
//! A tool has a namespace and a method, `health` and `check`. How the two are shown as one name is
//! a choice, [`Names`]; a call may use either spelling, whatever is shown (C11).
//!
//! ```
//! use plexus_activations::Names;
//! use plexus_service::{Section, Service};
//!
//! let service = plexus_activations::service(Names::Dotted, "1.0.0")?;
//! let catalogue = service.catalogue();
//! assert!(catalogue.borrow().list(Section::Tools).get("echo.once").is_some());
//! # Ok::<(), plexus_service::BuildError>(())
//! ```
//!
//! What is deliberately absent: revisions, transports, and whatever joins other servers.

mod aliased;
pub mod context;
mod echo;
mod health;
mod names;
mod service;
pub mod task;

pub use aliased::Aliased;
pub use echo::echo;
pub use health::health;
pub use names::Names;
pub use service::service;

#[cfg(test)]
mod testing;
