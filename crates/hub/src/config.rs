//! The configuration that people already have: which servers there are, and Plexus's own settings.
//!
//! [`load`] reads the files that [`Locations`] names and never fails: whatever it cannot use is a
//! [`ConfigProblem`] of one line, and the rest works. [`Watcher`] does so again whenever a file
//! changes. [`edit`] changes a file, [`import`] understands the files of other clients.
//!
//! Nothing here starts a program or opens a connection. Secrets that a file only refers to are
//! fetched by whoever connects the server, see [`ServerEntry::secret_sources`].

mod entry;
mod filter;
mod mask;
mod problem;
mod secret;
mod text;

pub use self::entry::{Kind, Scope, ServerEntry, Source};
pub use self::filter::ToolFilter;
pub use self::problem::{ConfigProblem, Position};
pub use self::secret::{FetchedSecrets, MASK, Secret, SecretSource, Value};
pub use self::text::Text;

/// What the files say.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Loaded {
    /// Every server that can be used, in the order of precedence, then of the file.
    pub servers: Vec<ServerEntry>,
    /// What cannot be used, and why.
    pub problems: Vec<ConfigProblem>,
    /// Every file that was looked for, whether it exists or not.
    pub files: Vec<std::path::PathBuf>,
}
