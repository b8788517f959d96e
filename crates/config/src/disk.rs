//! Reads configuration files. Refuses paths that are no regular file, too large, or not UTF-8.

use std::fs;
use std::io;
use std::path::Path;

use super::json::LIMITS;
use super::problem::{ConfigProblem, Position};

/// The byte order mark.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The text of `file`, without a byte order mark; `None` if there is no such file.
pub(super) fn read(file: &Path) -> Result<Option<String>, ConfigProblem> {
    let whole = read_whole(file)?;
    Ok(whole.map(|text| without_mark(&text).to_owned()))
}

/// The text after the byte order mark, if it has one.
pub(super) fn without_mark(text: &str) -> &str {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// The text of `file`, unchanged.
pub(super) fn read_whole(file: &Path) -> Result<Option<String>, ConfigProblem> {
    let unreadable = |error: io::Error| {
        ConfigProblem::new(file, format!("the file cannot be read: {}", error.kind()))
    };
    let metadata = match fs::metadata(file) {
        Ok(metadata) => metadata,
        // The directory of the file may itself be a file.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(unreadable(error)),
    };
    if metadata.is_dir() {
        return Err(ConfigProblem::new(file, "this is a directory, not a file"));
    }
    // Reading a pipe would block, and works only once.
    if !metadata.is_file() {
        return Err(ConfigProblem::new(file, "this is not a regular file"));
    }
    let limit = LIMITS.max_bytes;
    if metadata.len() > limit as u64 {
        let what = format!("the file is larger than {limit} bytes");
        return Err(ConfigProblem::new(file, what));
    }
    let bytes = fs::read(file).map_err(unreadable)?;
    text(file, bytes).map(Some)
}

fn text(file: &Path, bytes: Vec<u8>) -> Result<String, ConfigProblem> {
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err(ConfigProblem::new(file, "the file is UTF-16").advice("save it as UTF-8"));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            let text = String::from_utf8_lossy(error.as_bytes());
            Err(ConfigProblem::new(file, "the file is not UTF-8")
                .at(Position::of_offset(&text, valid))
                .advice("save it as UTF-8"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_bytes(bytes: &[u8]) -> Result<Option<String>, String> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("x");
        fs::write(&file, bytes).unwrap();
        read(&file).map_err(|problem| problem.what.into())
    }

    #[test]
    fn a_byte_order_mark_is_dropped() {
        assert_eq!(read_bytes(b"\xef\xbb\xbf{}"), Ok(Some("{}".into())));
        assert_eq!(read_bytes(b"\xff\xfe{\0"), Err("the file is UTF-16".into()));
    }

    #[test]
    fn invalid_utf8_is_reported_with_its_position() {
        let problem = text(Path::new("x"), b"{\n \"\xff".to_vec()).unwrap_err();
        assert_eq!(
            problem.to_string(),
            "x:2:3: the file is not UTF-8; save it as UTF-8"
        );
    }

    /// S001-59
    #[test]
    fn a_missing_file_is_no_problem() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(read(&directory.path().join("none")).unwrap(), None);
        fs::write(directory.path().join("file"), "").unwrap();
        assert_eq!(read(&directory.path().join("file/none")).unwrap(), None);
    }

    #[test]
    fn a_directory_is_a_problem() {
        let directory = tempfile::tempdir().unwrap();
        let problem = read(directory.path()).unwrap_err();
        assert_eq!(&*problem.what, "this is a directory, not a file");
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_not_read() {
        let problem = read(Path::new("/dev/null")).unwrap_err();
        assert_eq!(&*problem.what, "this is not a regular file");
    }
}
