//! `Glob`: the files whose paths match a pattern.

use std::path::Path;
use std::time::SystemTime;

use crate::schema::SetupError;
use globset::GlobBuilder;
use ignore::WalkBuilder;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Workspace;
use super::local_tool::LocalTool;
use crate::permission::Risk;

/// The most files of one call.
const MAX_FILES: usize = 500;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GlobArguments {
    /// The pattern, such as `**/*.rs`. A pattern without a slash matches in every directory.
    pattern: String,
    /// The directory to search; the workspace if left out.
    #[serde(default)]
    path: Option<String>,
}

pub(super) fn tool(workspace: &Workspace) -> Result<LocalTool<GlobArguments>, SetupError> {
    let (workspace, of_workspace) = (workspace.clone(), workspace.clone());
    LocalTool::blocking(
        "Glob",
        "Finds files by their paths, the one that was changed last first. Files that git ignores are \
         left out.",
        Risk::Low,
        &of_workspace,
        move |arguments: GlobArguments| {
            let root = workspace.path(arguments.path.as_deref().unwrap_or("."));
            let mut found = matching(&root, &arguments.pattern)?;
            found.retain(|path| !workspace.hides(path));
            let count = found.len();
            let shown = found.iter().take(MAX_FILES);
            let mut lines: Vec<_> = shown.map(|path| workspace.shown(path)).collect();
            if count == 0 {
                lines.push("[no file matches]".to_owned());
            }
            if count > MAX_FILES {
                lines.push(format!("[{} files more]", count - MAX_FILES));
            }
            Ok(lines.join("\n"))
        },
    )
}

/// The files under `root` that match, the one that was changed last first.
fn matching(root: &Path, pattern: &str) -> Result<Vec<std::path::PathBuf>, String> {
    let root = root
        .canonicalize()
        .map_err(|error| format!("{} cannot be read: {error}", root.display()))?;
    let everywhere = if pattern.contains('/') {
        pattern.to_owned()
    } else {
        format!("**/{pattern}")
    };
    let glob = GlobBuilder::new(&everywhere)
        .literal_separator(true)
        .build()
        .map_err(|error| error.to_string())?
        .compile_matcher();
    let mut found: Vec<(SystemTime, _)> = WalkBuilder::new(&root)
        .hidden(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .require_git(false)
        .build()
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
        .filter(|entry| {
            let path = entry.path();
            path.strip_prefix(&root)
                .is_ok_and(|relative| glob.is_match(relative))
        })
        .map(|entry| {
            let metadata = entry.metadata().ok();
            let changed = metadata.and_then(|metadata| metadata.modified().ok());
            (changed.unwrap_or(SystemTime::UNIX_EPOCH), entry.into_path())
        })
        .collect();
    found.sort_by(|one, other| other.cmp(one));
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_are_found_by_pattern() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("src/deep")).unwrap();
        for name in ["a.rs", "src/b.rs", "src/deep/c.rs", "d.txt", "ignored.rs"] {
            fs::write(root.join(name), "").unwrap();
        }
        fs::write(root.join(".gitignore"), "ignored.rs\n").unwrap();
        let names = |pattern: &str| {
            let found = matching(&root, pattern).unwrap();
            let mut names: Vec<_> = found
                .iter()
                .map(|path| path.strip_prefix(&root).unwrap().display().to_string())
                .collect();
            names.sort();
            names
        };
        assert_eq!(names("*.rs"), ["a.rs", "src/b.rs", "src/deep/c.rs"]);
        assert_eq!(names("src/*.rs"), ["src/b.rs"]);
        assert_eq!(names("src/**/*.rs"), ["src/b.rs", "src/deep/c.rs"]);
        assert!(matching(&root, "[").is_err());
        assert!(matching(&root.join("none"), "*").is_err());
    }
}
