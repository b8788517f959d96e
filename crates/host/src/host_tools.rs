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

use plexus_mcp_wire::Raw;

use crate::schema::SetupError;

use crate::permission::{Permissions, Risk, lexical};
use crate::registry::Registry;

/// The directory that relative paths are in.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    root: PathBuf,
    permissions: Arc<Permissions>,
}

impl Workspace {
    /// The absolute form of a path that the model gave.
    fn path(&self, given: &str) -> PathBuf {
        self.root.join(given)
    }

    /// The risk of a call: one step higher for a path outside of the workspace.
    fn risk(&self, risk: Risk, input: &Raw) -> Risk {
        #[derive(serde::Deserialize, Default)]
        struct Paths {
            file_path: Option<String>,
            path: Option<String>,
        }
        let Paths { file_path, path } = input.decode().unwrap_or_default();
        let given = [file_path, path].into_iter().flatten();
        let mut outside = given.filter(|given| !self.contains(&self.path(given)));
        match (outside.next(), risk) {
            (None, risk) => risk,
            (Some(_), Risk::Low) => Risk::Medium,
            (Some(_), Risk::Medium | Risk::High) => Risk::High,
        }
    }

    /// Whether a path is in the workspace, also after links are followed.
    fn contains(&self, path: &Path) -> bool {
        let path = lexical(path);
        let existing = path.ancestors().find_map(|part| part.canonicalize().ok());
        let root = self
            .root
            .canonicalize()
            .unwrap_or_else(|_| self.root.clone());
        (path.starts_with(&self.root) || path.starts_with(&root))
            && existing.is_some_and(|existing| existing.starts_with(&root))
    }

    /// Whether searches pass over a file, because a rule denies reading it.
    fn hides(&self, path: &Path) -> bool {
        self.permissions.hides(path)
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
    let workspace = Workspace {
        root: root.into(),
        permissions: Arc::clone(registry.permissions()),
    };
    registry.register(Arc::new(read::tool(&workspace)?));
    registry.register(Arc::new(write::tool(&workspace)?));
    registry.register(Arc::new(edit::tool(&workspace)?));
    registry.register(Arc::new(glob::tool(&workspace)?));
    registry.register(Arc::new(grep::tool(&workspace)?));
    registry.register(Arc::new(bash::tool(&workspace, env)?));
    Ok(())
}
