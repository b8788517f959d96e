//! Configuration: which MCP servers there are, and Plexus's own settings.
//!
//! [`load`] reads the files that [`Locations`] names and never fails: everything that it cannot use
//! is a [`ConfigProblem`] of one line, and the rest works. [`Watcher`] loads again whenever a file
//! changes. [`edit`] changes a file, [`import`] reads the files of other clients.
//!
//! This crate starts no program and opens no connection. The caller fetches the secrets that a file
//! only refers to, see [`ServerEntry::secret_sources`].

mod disk;
mod dotenv;
pub mod edit;
mod entry;
mod filter;
pub mod import;
mod json;
mod load;
mod locations;
mod mask;
mod problem;
mod secret;
mod server;
mod settings;
mod sign_in;
mod text;
mod watch;

pub use self::entry::{Kind, Scope, ServerEntry, Source};
pub use self::filter::ToolFilter;
pub use self::load::{Loaded, check, load, load_settings};
pub use self::locations::{Locations, SETTINGS_FILE};
pub use self::problem::{ConfigProblem, Position};
pub use self::secret::{FetchedSecrets, MASK, Secret, SecretSource, Value};
pub use self::settings::{
    Access, Action, BuiltinWords, ClientSettings, Hub, IntrospectionClient, Limits, Mode, Policy,
    Rule, SecretReference, Serve, Settings, Start, TokenIssuer,
};
pub use self::sign_in::{Grant, Identity, PrivateKey, SignIn};
pub use self::text::Text;
pub use self::watch::{Environment, WatchError, Watcher};
