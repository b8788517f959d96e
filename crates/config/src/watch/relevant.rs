//! Which file system events matter.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The watched files, under every path that the system may report.
#[derive(Debug, Default)]
pub(super) struct Relevant(BTreeSet<PathBuf>);

impl Relevant {
    pub(super) fn new(files: &[PathBuf]) -> Self {
        let names = files.iter().flat_map(|file| {
            let absolute = std::path::absolute(file).ok();
            // Some systems report the real path of a directory; a linked file is written at its
            // target.
            let real_directory = absolute.as_ref().and_then(|file| {
                let directory = std::fs::canonicalize(file.parent()?).ok()?;
                Some(directory.join(file.file_name()?))
            });
            let real = std::fs::canonicalize(file).ok();
            [absolute, real_directory, real]
        });
        Self(names.flatten().collect())
    }

    /// The directories to watch: each file's own or, if it is missing, the nearest ancestor.
    pub(super) fn directories(&self) -> BTreeSet<PathBuf> {
        let directories = self.0.iter().filter_map(|file| {
            let mut above = file.ancestors().skip(1);
            above.find(|directory| directory.is_dir())
        });
        directories.map(Path::to_owned).collect()
    }

    /// Whether an event for `path` concerns one of the files: `path` may be the file, or a
    /// directory above it.
    pub(super) fn has(&self, path: &Path) -> bool {
        self.0.iter().any(|file| file.starts_with(path))
    }
}
