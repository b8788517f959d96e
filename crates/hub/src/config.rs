//! The configuration that people already have: which servers there are, and Plexus's own settings.
//!
//! [`load`] reads the files that [`Locations`] names and never fails: whatever it cannot use is a
//! [`ConfigProblem`] of one line, and the rest works. [`Watcher`] does so again whenever a file
//! changes. [`edit`] changes a file, [`import`] understands the files of other
//! clients.
//!
//! Nothing here starts a program or opens a connection. Secrets that a file only refers to are
//! fetched by whoever connects the server, see [`ServerEntry::secret_sources`].

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
pub use self::load::{Loaded, check, load};
pub use self::locations::{Locations, SETTINGS_FILE};
pub use self::problem::{ConfigProblem, Position};
pub use self::secret::{FetchedSecrets, MASK, Secret, SecretSource, Value};
pub use self::settings::{
    Access, Action, BuiltinWords, ClientSettings, Hub, IntrospectionClient, Mode, Policy, Rule,
    SecretReference, Serve, Settings, Start, TokenIssuer,
};
pub use self::sign_in::{Grant, Identity, PrivateKey, SignIn};
pub use self::text::Text;
pub use self::watch::{Environment, WatchError, Watcher};
