//! Atomic replacement of a file.

use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Replaces the text of a file atomically. Its permissions stay; a new file is readable by its
/// owner only, because it may come to hold secrets. A symbolic link stays a link.
pub fn write(file: &Path, text: &str) -> io::Result<()> {
    let target = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let mut temporary = tempfile::Builder::new()
        .prefix(".plexus-")
        .tempfile_in(directory(&target)?)?;
    temporary.write_all(text.as_bytes())?;
    if let Ok(metadata) = fs::metadata(&target) {
        temporary
            .as_file()
            .set_permissions(metadata.permissions())?;
    }
    temporary.as_file().sync_all()?;
    temporary.persist(&target)?;
    Ok(())
}

/// Creates a directory that only its owner can use, and its parents, unless they exist.
pub fn private_directory(directory: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

/// The directory of a file, created if it is missing.
pub(super) fn directory(file: &Path) -> io::Result<PathBuf> {
    let directory = match file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(directory)?;
    Ok(directory.to_owned())
}
