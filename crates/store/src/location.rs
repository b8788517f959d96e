//! The default location of the data.

use std::ffi::OsString;
use std::path::PathBuf;

/// The name of the database in a data directory.
pub const FILE_NAME: &str = "plexus.db";

/// The data directory: `PLEXUS_DATA_DIR`, or else `plexus` in the system's directory for user data.
/// `None` if there is no home directory either.
///
/// `variable` looks up an environment variable.
pub fn data_dir(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = |name: &str| {
        let value = variable(name).filter(|value| !value.is_empty())?;
        Some(PathBuf::from(value))
    };
    if let Some(chosen) = path("PLEXUS_DATA_DIR") {
        return Some(chosen);
    }
    let shared = if cfg!(windows) {
        path("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        path("HOME").map(|home| home.join("Library/Application Support"))
    } else {
        // The XDG specification requires relative paths to be ignored.
        path("XDG_DATA_HOME")
            .filter(|path| path.is_absolute())
            .or_else(|| path("HOME").map(|home| home.join(".local/share")))
    };
    shared.map(|shared| shared.join("plexus"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Option<PathBuf> {
        data_dir(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.into())
        })
    }

    #[test]
    fn the_data_dir_variable_takes_precedence() {
        let variables = [
            ("PLEXUS_DATA_DIR", "here"),
            ("XDG_DATA_HOME", "/data"),
            ("HOME", "/home/me"),
        ];
        assert_eq!(found(&variables), Some("here".into()));
        assert_eq!(found(&[]), None);
    }

    #[cfg(all(unix, not(target_os = "macos")))]
    #[test]
    fn the_place_for_data_is_where_xdg_says() {
        let home = ("HOME", "/home/me");
        let default = Some("/home/me/.local/share/plexus".into());
        assert_eq!(
            found(&[home, ("XDG_DATA_HOME", "/data")]),
            Some("/data/plexus".into())
        );
        assert_eq!(found(&[home]), default);
        for ignored in ["", "relative"] {
            let variables = [home, ("XDG_DATA_HOME", ignored), ("PLEXUS_DATA_DIR", "")];
            assert_eq!(found(&variables), default, "{ignored:?}");
        }
    }
}
