//! Reading and writing text files.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;

/// The largest file that is read, in bytes.
pub(super) const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// The text of a file.
pub(super) fn text_of(path: &Path, shown: &str) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("{shown} cannot be read: {error}");
    let metadata = fs::metadata(path).map_err(failed)?;
    if metadata.is_dir() {
        return Err(format!("{shown} is a directory; list it with Glob"));
    }
    // A device or a pipe may never end.
    if !metadata.is_file() {
        return Err(format!("{shown} is no regular file"));
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(failed)?;
    file.take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_FILE_BYTES {
        return Err(format!(
            "{shown} is longer than the {MAX_FILE_BYTES} bytes that are read; look into it with Bash"
        ));
    }
    String::from_utf8(bytes).map_err(|_invalid| format!("{shown} is no UTF-8 text"))
}

/// Replaces a file in one step, so that a crash leaves the old or the new text. Its permissions stay;
/// a link is followed.
pub(super) fn replace(path: &Path, shown: &str, text: &str) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{shown} cannot be written: {error}");
    let target = fs::canonicalize(path).unwrap_or_else(|_new| path.to_owned());
    let folder = target
        .parent()
        .ok_or_else(|| format!("{shown} is no file name"))?;
    fs::create_dir_all(folder).map_err(failed)?;
    let permissions = fs::metadata(&target).map(|metadata| metadata.permissions());
    let mut file = tempfile::Builder::new()
        .prefix(".plexus-")
        .permissions(new_file_permissions())
        .tempfile_in(folder)
        .map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    if let Ok(permissions) = permissions {
        file.as_file()
            .set_permissions(permissions)
            .map_err(failed)?;
    }
    file.persist(&target).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Those that a program gives a new file; the system takes away what its umask forbids.
#[cfg(unix)]
fn new_file_permissions() -> fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    fs::Permissions::from_mode(0o666)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_replaced_file_keeps_its_permissions_and_links() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("a"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o750)).unwrap();
        symlink(&file, &link).unwrap();
        replace(&link, "link", "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o750);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn what_is_no_text_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        fs::write(&file, [0xff, 0xfe]).unwrap();
        assert!(text_of(&file, "a").unwrap_err().contains("UTF-8"));
        assert!(
            text_of(folder.path(), "x")
                .unwrap_err()
                .contains("directory")
        );
        assert!(text_of(&folder.path().join("none"), "none").is_err());
        let device = text_of(Path::new("/dev/zero"), "zero");
        assert!(device.unwrap_err().contains("no regular file"));
    }
}
