//! Configuration: which MCP servers there are, and Plexus's own settings.
//!
//! [`load`] reads the files that [`Locations`] names and never fails: everything that it cannot use
//! is a [`ConfigProblem`] of one line, and the rest works. [`Watcher`] loads again whenever a file
//! changes. [`edit`] changes a file, [`clients`] reads the files of other clients.
//!
//! This crate starts no program and opens no connection. The caller fetches the secrets that a file
//! only refers to, see [`ServerEntry::secret_sources`].

pub mod clients;
mod disk;
mod dotenv;
pub mod edit;
mod entry;
mod file_check;
mod filter;
mod json;
mod load;
mod locations;
mod mask;
mod nearest;
mod problem;
#[cfg(test)]
mod reference;
mod secret;
mod server;
mod settings;
mod sign_in;
mod text;
mod watch;

pub use self::entry::{Kind, Scope, ServerEntry, Source, WrittenDefinition};
pub use self::file_check::{CheckError, check_file};
pub use self::filter::ToolFilter;
pub use self::load::{Loaded, check, load, load_settings};
pub use self::locations::{Locations, SETTINGS_FILE};
pub use self::problem::{ConfigProblem, Position};
pub use self::secret::{FetchedSecrets, MASK, Secret, SecretSource, Value};
pub use self::server::{KeyDefault, KeyServers, KeyValue, SERVER_KEYS, ServerKey};
pub use self::settings::{
    Access, Action, AgentToolRule, BuiltinWords, ClientSettings, EffectiveKey, Hub,
    IntrospectionClient, Limits, Mode, Policy, Rule, SecretReference, Serve, Settings, Start,
    TokenIssuer, effective_settings, listen_address,
};
pub use self::sign_in::{Grant, Identity, PrivateKey, SignIn};
pub use self::text::Text;
pub use self::watch::{Environment, WatchError, Watcher};
