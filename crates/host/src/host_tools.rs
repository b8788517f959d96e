//! The tools of the host itself: files, search and shell commands. Their names and arguments are
//! those that people's rules and prompts already use.

mod bash;
mod edit;
mod files;
mod glob;
mod grep;
mod local_tool;
mod read;
mod write;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::schema::SetupError;

use crate::registry::Registry;

/// The directory that relative paths are in.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// The absolute form of a path that the model gave.
    fn path(&self, given: &str) -> PathBuf {
        self.root.join(given)
    }

    /// A path as the model is shown it: relative to the workspace if it is in there.
    fn shown(&self, path: &Path) -> String {
        let path = path.strip_prefix(&self.root).unwrap_or(path);
        path.display().to_string()
    }
}

/// Registers `Read`, `Write`, `Edit`, `Glob`, `Grep` and `Bash`, for the directory `root`. Commands
/// get `env` in addition to the environment of this process.
///
/// # Errors
/// A tool cannot be offered; this is a mistake in the program.
pub fn register(
    registry: &Registry,
    root: impl Into<PathBuf>,
    env: BTreeMap<String, String>,
) -> Result<(), SetupError> {
    let workspace = Workspace { root: root.into() };
    registry.register(Arc::new(read::tool(&workspace)?));
    registry.register(Arc::new(write::tool(&workspace)?));
    registry.register(Arc::new(edit::tool(&workspace)?));
    registry.register(Arc::new(glob::tool(&workspace)?));
    registry.register(Arc::new(grep::tool(&workspace)?));
    registry.register(Arc::new(bash::tool(&workspace, env)?));
    Ok(())
}
