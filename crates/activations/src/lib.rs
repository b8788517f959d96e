//! The services built into Plexus, called activations: [`health`], [`echo`], [`task`](task::task),
//! [`context`](context::context), [`arbor`](arbor::arbor) and [`cone`](cone::cone); and, where
//! they are wanted, [`bash`], [`claudecode`](claudecode::claudecode) and
//! [`loopback`](loopback::loopback).
//!
//! An activation is a function that adds its tools and resources to a
//! [`Builder`](plexus_service::Builder). [`service`] puts all of them together, on the [`Data`]
//! that they share.
//!
//! A tool has a namespace and a method, `health` and `check`. How the two are shown as one name is
//! a choice, [`Names`]; a call may use either spelling, whatever is shown (C11).
//!
//! ```
//! use plexus_activations::{Data, Names, Places};
//! use plexus_service::{Section, Service};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! let data = Data::open(&Places::in_directory(folder))?;
//! let service = plexus_activations::service(Names::Dotted, "1.0.0", &data)?;
//! let catalogue = service.catalogue();
//! assert!(catalogue.borrow().list(Section::Tools).get("echo.once").is_some());
//! # Ok(())
//! # }
//! ```
//!
//! What is deliberately absent: revisions, transports, and whatever joins other servers.

mod aliased;
pub mod arbor;
mod bash;
mod builtin;
pub mod claudecode;
pub mod cone;
pub mod context;
mod data;
mod echo;
mod follow;
mod health;
mod hints;
mod json;
mod ledger;
mod listed;
pub mod loopback;
pub mod model;
mod names;
mod profile;
mod schemas;
mod service;
pub mod task;
mod tools;
mod trouble;

pub use aliased::Aliased;
pub use bash::bash;
pub use builtin::{Builtin, Choice, UnknownBuiltin};
pub use data::{Data, Places};
pub use echo::echo;
pub use health::{ServerHealth, Servers, health};
pub use names::Names;
pub use plexus_store::StoreError;
pub use profile::{Profile, profile};
pub use service::{Extras, service, service_with};

#[cfg(test)]
mod testing;
