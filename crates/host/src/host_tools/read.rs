//! `Read`: the lines of a file, with their numbers.

use std::fmt::Write;

use crate::schema::SetupError;
use schemars::JsonSchema;
use serde::Deserialize;

use super::local_tool::LocalTool;
use super::{Workspace, files};
use crate::permission::Risk;

/// The most lines of one call.
const DEFAULT_LINES: usize = 2000;
/// The longest line that is shown whole, in characters.
const MAX_LINE_CHARS: usize = 2000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadArguments {
    /// The file.
    file_path: String,
    /// The number of the first line, from 1.
    #[serde(default)]
    offset: Option<usize>,
    /// The number of lines; 2000 if left out.
    #[serde(default)]
    limit: Option<usize>,
}

pub(super) fn tool(workspace: &Workspace) -> Result<LocalTool<ReadArguments>, SetupError> {
    let (workspace, of_workspace) = (workspace.clone(), workspace.clone());
    LocalTool::blocking(
        "Read",
        "Reads a text file. Each line has its number in front.",
        Risk::Low,
        &of_workspace,
        move |arguments: ReadArguments| {
            let path = workspace.path(&arguments.file_path);
            let text = files::text_of(&path, &arguments.file_path)?;
            let first = arguments.offset.unwrap_or(1).max(1);
            Ok(numbered(
                &text,
                first,
                arguments.limit.unwrap_or(DEFAULT_LINES),
            ))
        },
    )
}

fn numbered(text: &str, first: usize, limit: usize) -> String {
    let count = text.lines().count();
    if count == 0 {
        return "[the file is empty]".to_owned();
    }
    if first > count {
        return format!("[the file has {count} lines only]");
    }
    let mut shown = String::new();
    let mut last = first;
    for (number, line) in text.lines().enumerate().skip(first - 1).take(limit) {
        last = number + 1;
        let written = match line.char_indices().nth(MAX_LINE_CHARS) {
            None => writeln!(shown, "{last:>6}\t{line}"),
            Some((cut, _)) => {
                let (kept, _) = line.split_at(cut);
                writeln!(shown, "{last:>6}\t{kept} [cut off]")
            }
        };
        debug_assert!(written.is_ok(), "writing to a string does not fail");
    }
    if last < count {
        let more = count - last;
        let written = writeln!(shown, "[{more} lines more, from offset {}]", last + 1);
        debug_assert!(written.is_ok(), "writing to a string does not fail");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_numbers() {
        let text = "one\ntwo\nthree\n";
        assert_eq!(
            numbered(text, 1, 10),
            "     1\tone\n     2\ttwo\n     3\tthree\n"
        );
        assert_eq!(
            numbered(text, 2, 1),
            "     2\ttwo\n[1 lines more, from offset 3]\n"
        );
        assert_eq!(numbered(text, 4, 1), "[the file has 3 lines only]");
        assert_eq!(numbered("", 1, 1), "[the file is empty]");
        let long = "x".repeat(MAX_LINE_CHARS + 1);
        assert!(numbered(&long, 1, 1).ends_with("x [cut off]\n"));
    }
}
