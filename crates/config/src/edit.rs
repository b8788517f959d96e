//! Changes a configuration file. All other members of the file stay unchanged.
//!
//! ```no_run
//! use std::path::Path;
//! use plexus_mcp_config::edit;
//! use plexus_mcp_wire::Raw;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let definition = Raw::encode(&std::collections::BTreeMap::from([("command", "mcp-server-time")]))?;
//! edit::add(Path::new(".mcp.json"), "time", &definition)?;
//! edit::remove(Path::new(".mcp.json"), "time")?;
//! # Ok(())
//! # }
//! ```

mod write;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use plexus_mcp_wire::{Kind, Object, ObjectError, Raw};
use serde::{Deserialize, Serialize};

use super::problem::ConfigProblem;
use super::{disk, json};

pub use self::write::{private_directory, write};

/// Why a file was not changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// The existing file cannot be parsed, so its content could not be preserved.
    #[error(transparent)]
    Unusable(#[from] ConfigProblem),
    /// A server of that name exists.
    #[error("{}: there is a server {name:?} already", .file.display())]
    Taken {
        /// The file.
        file: PathBuf,
        /// The name as the file has it.
        name: String,
    },
    /// There is no server of that name.
    #[error("{}: there is no server {name:?}", .file.display())]
    Unknown {
        /// The file.
        file: PathBuf,
        /// The name.
        name: String,
    },
    /// A server's definition must be an object.
    #[error("the definition of {name:?} is not an object")]
    NotAnObject {
        /// The server.
        name: String,
    },
    /// The file has changed since.
    #[error("{}: the file has changed since", .file.display())]
    Changed {
        /// The file.
        file: PathBuf,
    },
    /// The file cannot be written.
    #[error("{}: the file cannot be written", .file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// The text of a file before and after a change. It may hold secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Change {
    /// The file.
    pub file: PathBuf,
    /// The old text; `None` if the file did not exist.
    pub before: Option<String>,
    /// The new text.
    pub after: String,
}

/// Adds a server (C25, S000-29, S000-30).
pub fn add(file: &Path, name: &str, definition: &Raw) -> Result<Change, EditError> {
    change(file, |document| document.add(name, definition))
}

/// Removes a server (S000-32).
pub fn remove(file: &Path, name: &str) -> Result<Change, EditError> {
    change(file, |document| document.remove(name))
}

/// Changes a file. The file is replaced atomically, and concurrent changes by other Plexus
/// processes are serialized with a lock file.
pub fn change(
    file: &Path,
    edit: impl FnOnce(&mut Document) -> Result<(), EditError>,
) -> Result<Change, EditError> {
    let unwritten = |source| EditError::Write {
        file: file.to_owned(),
        source,
    };
    let lock = lock(file).map_err(unwritten)?;
    let mut document = Document::open(file)?;
    edit(&mut document)?;
    let change = document.change();
    write(file, &change.after).map_err(unwritten)?;
    drop(lock);
    Ok(change)
}

/// Reverts a change; a file that did not exist before is removed.
///
/// # Errors
/// For example, the file has changed since, and that change would be lost.
pub fn undo(change: &Change) -> Result<(), EditError> {
    let Change {
        file,
        before,
        after,
    } = change;
    let unwritten = |source| EditError::Write {
        file: file.clone(),
        source,
    };
    let lock = lock(file).map_err(unwritten)?;
    if disk::read(file)?.as_ref() != Some(after) {
        return Err(EditError::Changed { file: file.clone() });
    }
    match before {
        Some(before) => write(file, before),
        None => fs::remove_file(file),
    }
    .map_err(unwritten)?;
    drop(lock);
    Ok(())
}

/// A configuration file in memory, to preview a change.
#[derive(Debug, Clone)]
pub struct Document {
    file: PathBuf,
    before: Option<String>,
    root: Object,
    servers: Object,
}

const SERVERS: &str = "mcpServers";

impl Document {
    /// Reads a file; a missing or empty file has no servers.
    ///
    /// # Errors
    /// The file cannot be parsed, so its content could not be preserved.
    pub fn open(file: &Path) -> Result<Self, ConfigProblem> {
        let before = disk::read_whole(file)?;
        let root = match before.as_deref().map(disk::without_mark) {
            Some(text) if !text.trim().is_empty() => object(file, &json::parse(file, text)?)?,
            _ => Object::new(),
        };
        let servers = match root.get(SERVERS) {
            Some(raw) if raw.kind() != Kind::Null => {
                object(file, raw).map_err(|problem| problem.key(SERVERS))?
            }
            _ => Object::new(),
        };
        Ok(Self {
            file: file.to_owned(),
            before,
            root,
            servers,
        })
    }

    /// The text of the file; `None` if it does not exist.
    pub fn before(&self) -> Option<&str> {
        self.before.as_deref()
    }

    /// The servers, as they are written.
    pub fn servers(&self) -> impl Iterator<Item = (&str, &Raw)> {
        self.servers.iter()
    }

    /// Adds a server.
    pub fn add(&mut self, name: &str, definition: &Raw) -> Result<(), EditError> {
        let folded = name.to_lowercase();
        let taken = self
            .servers
            .iter()
            .find(|(other, _)| other.to_lowercase() == folded);
        if let Some((taken, _)) = taken {
            return Err(EditError::Taken {
                file: self.file.clone(),
                name: taken.to_owned(),
            });
        }
        self.set(name, definition)
    }

    /// Adds a server, or replaces it in place.
    pub fn set(&mut self, name: &str, definition: &Raw) -> Result<(), EditError> {
        if definition.kind() != Kind::Object {
            return Err(EditError::NotAnObject {
                name: name.to_owned(),
            });
        }
        self.servers.set(name.to_owned(), definition.clone());
        Ok(())
    }

    /// Removes a server.
    pub fn remove(&mut self, name: &str) -> Result<(), EditError> {
        match self.servers.remove(name) {
            Some(_) => Ok(()),
            None => Err(EditError::Unknown {
                file: self.file.clone(),
                name: name.to_owned(),
            }),
        }
    }

    /// The change that writing the document would make.
    pub fn change(&self) -> Change {
        Change {
            file: self.file.clone(),
            before: self.before.clone(),
            after: self.text(),
        }
    }

    /// The new text of the file: all other members unchanged and in order, with two spaces per
    /// level.
    pub fn text(&self) -> String {
        let mut root = self.root.clone();
        root.set(SERVERS, self.servers.clone().to_raw());
        json::indented(&root.to_raw())
    }
}

/// Locks the directory against changes by other Plexus processes. On file systems without locks,
/// the last writer wins.
fn lock(file: &Path) -> io::Result<Option<File>> {
    let directory = write::directory(file)?;
    let lock = File::open(directory).and_then(|directory| {
        directory.lock()?;
        Ok(directory)
    });
    Ok(lock.ok())
}

fn object(file: &Path, raw: &Raw) -> Result<Object, ConfigProblem> {
    Object::parse(raw).map_err(|error| match error {
        ObjectError::NotAnObject => ConfigProblem::new(file, "an object is expected"),
        other => ConfigProblem::new(file, other.to_string()),
    })
}

#[cfg(test)]
mod tests;
