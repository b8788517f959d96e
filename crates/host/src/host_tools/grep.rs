//! `Grep`: the lines of files that match a regular expression.

use std::fs;
use std::path::Path;

use crate::schema::SetupError;
use globset::{Glob, GlobMatcher};
use ignore::WalkBuilder;
use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;

use super::local_tool::LocalTool;
use super::{Workspace, files};
use crate::permission::Risk;

/// The most lines of one call, if it sets no limit.
const DEFAULT_LINES: usize = 250;
/// The most lines around a match.
const MAX_CONTEXT_LINES: usize = 100;
/// The longest line that is shown whole, in characters.
const MAX_LINE_CHARS: usize = 500;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GrepArguments {
    /// The regular expression.
    pattern: String,
    /// The file or directory to search; the workspace if left out.
    #[serde(default)]
    path: Option<String>,
    /// Search only files whose names match, such as `*.rs`.
    #[serde(default)]
    glob: Option<String>,
    /// What to return: the files, the lines, or the number of lines of each file.
    #[serde(default)]
    output_mode: OutputMode,
    /// Ignore case.
    #[serde(default, rename = "-i")]
    ignore_case: bool,
    /// How many lines around each match to return as well.
    #[serde(default, rename = "-C")]
    context: usize,
    /// The most lines to return; 250 if left out.
    #[serde(default)]
    head_limit: Option<usize>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OutputMode {
    #[default]
    FilesWithMatches,
    Content,
    Count,
}

pub(super) fn tool(workspace: &Workspace) -> Result<LocalTool<GrepArguments>, SetupError> {
    let (workspace, of_workspace) = (workspace.clone(), workspace.clone());
    LocalTool::blocking(
        "Grep",
        "Searches the contents of files by a regular expression. Files that git ignores and files that \
         are no text are left out.",
        Risk::Low,
        &of_workspace,
        move |arguments: GrepArguments| {
            let mut lines = search(&workspace, &arguments)?;
            let most = arguments.head_limit.unwrap_or(DEFAULT_LINES);
            let more = lines.len().saturating_sub(most);
            lines.truncate(most);
            if lines.is_empty() {
                lines.push("[nothing matches]".to_owned());
            }
            if more > 0 {
                lines.push(format!("[{more} lines more]"));
            }
            Ok(lines.join("\n"))
        },
    )
}

fn search(workspace: &Workspace, arguments: &GrepArguments) -> Result<Vec<String>, String> {
    let pattern = RegexBuilder::new(&arguments.pattern)
        .case_insensitive(arguments.ignore_case)
        .build()
        .map_err(|error| error.to_string())?;
    let names = arguments.glob.as_deref().map(Glob::new).transpose();
    let names = names.map_err(|error| error.to_string())?;
    let names = names.map(|glob| glob.compile_matcher());
    let root = workspace.path(arguments.path.as_deref().unwrap_or("."));
    if !root.exists() {
        return Err(format!("there is no {}", workspace.shown(&root)));
    }
    let mut lines = Vec::new();
    let walk = WalkBuilder::new(&root)
        .hidden(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .require_git(false)
        .sort_by_file_path(Path::cmp)
        .build();
    for entry in walk.filter_map(Result::ok) {
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        let is_wanted = is_file && is_wanted(entry.path(), names.as_ref());
        if is_wanted && !workspace.hides(entry.path()) {
            file(&pattern, entry.path(), workspace, arguments, &mut lines);
        }
    }
    Ok(lines)
}

fn is_wanted(path: &Path, names: Option<&GlobMatcher>) -> bool {
    let name = path.file_name().map(Path::new);
    names.is_none_or(|glob| glob.is_match(path) || name.is_some_and(|name| glob.is_match(name)))
}

fn file(
    pattern: &Regex,
    path: &Path,
    workspace: &Workspace,
    arguments: &GrepArguments,
    found: &mut Vec<String>,
) {
    let shown = workspace.shown(path);
    // What was not searched must not be taken for something without a match.
    if fs::metadata(path).is_ok_and(|data| data.len() > files::MAX_FILE_BYTES) {
        let limit = files::MAX_FILE_BYTES;
        found.push(format!(
            "[{shown} was not searched: it is longer than {limit} bytes]"
        ));
        return;
    }
    let Ok(text) = fs::read_to_string(path) else {
        return;
    };
    let lines: Vec<&str> = text.lines().collect();
    let matching: Vec<bool> = lines.iter().map(|line| pattern.is_match(line)).collect();
    let count = matching.iter().filter(|is_match| **is_match).count();
    if count == 0 {
        return;
    }
    match arguments.output_mode {
        OutputMode::FilesWithMatches => found.push(shown),
        OutputMode::Count => found.push(format!("{shown}:{count}")),
        OutputMode::Content => {
            // The lines that are left to show after a match.
            let mut after = 0;
            for (index, line) in lines.iter().enumerate() {
                let is_match = matching.get(index).copied().unwrap_or_default();
                let last = index
                    .saturating_add(arguments.context.min(MAX_CONTEXT_LINES))
                    .min(lines.len() - 1);
                let is_before = matching
                    .get(index..=last)
                    .is_some_and(|next| next.contains(&true));
                if is_match {
                    after = arguments.context.min(MAX_CONTEXT_LINES) + 1;
                }
                if !is_before && after == 0 {
                    continue;
                }
                after = after.saturating_sub(1);
                let mark = if is_match { ':' } else { '-' };
                let line: String = line.chars().take(MAX_LINE_CHARS).collect();
                found.push(format!("{shown}{mark}{}{mark}{line}", index + 1));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permission::{Mode, Permissions};

    fn arguments(json: &serde_json::Value) -> GrepArguments {
        serde_json::from_str(&json.to_string()).unwrap()
    }

    fn workspace(root: std::path::PathBuf) -> Workspace {
        let policy = plexus_mcp_config::Policy::default();
        let permissions = Permissions::new(&policy, Mode::Default, None);
        let permissions = std::sync::Arc::new(permissions);
        Workspace { root, permissions }
    }

    #[test]
    fn lines_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_owned();
        fs::write(root.join("a.txt"), "one\nTwo bees\nthree\ntwo ants\n").unwrap();
        fs::write(root.join("b.md"), "two\n").unwrap();
        fs::write(root.join("binary"), [b't', b'w', b'o', 0xff]).unwrap();
        let workspace = workspace(root);
        let search = |json| search(&workspace, &arguments(&json)).unwrap();
        assert_eq!(
            search(serde_json::json!({"pattern": "two"})),
            ["a.txt", "b.md"]
        );
        assert_eq!(
            search(
                serde_json::json!({"pattern": "^two", "output_mode": "content", "glob": "*.txt", "-i": true})
            ),
            ["a.txt:2:Two bees", "a.txt:4:two ants"]
        );
        assert_eq!(
            search(serde_json::json!({"pattern": "bees", "output_mode": "content", "-C": 1})),
            ["a.txt-1-one", "a.txt:2:Two bees", "a.txt-3-three"]
        );
        assert_eq!(
            search(serde_json::json!({"pattern": "t", "output_mode": "count", "path": "a.txt"})),
            ["a.txt:2"]
        );
    }

    /// A file that is too long is named, so that the model does not take it for one without a match.
    #[test]
    fn long_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = fs::File::create(folder.path().join("long")).unwrap();
        file.set_len(files::MAX_FILE_BYTES + 1).unwrap();
        let workspace = workspace(folder.path().to_owned());
        let found = search(&workspace, &arguments(&serde_json::json!({"pattern": "x"})));
        assert!(found.unwrap()[0].starts_with("[long was not searched"));
    }

    #[test]
    fn wrong_searches_are_refused() {
        let workspace = workspace(std::env::temp_dir());
        for wrong in [
            serde_json::json!({"pattern": "("}),
            serde_json::json!({"pattern": "a", "glob": "["}),
            serde_json::json!({"pattern": "a", "path": "no/such/directory"}),
        ] {
            assert!(search(&workspace, &arguments(&wrong)).is_err());
        }
    }
}
