//! Every command in the documents and in the help texts can be typed as it stands.

use std::fs;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap::error::ErrorKind;

use super::super::Cli;
use crate::words;

/// The words that end a command in a shell.
const SHELL_WORDS: [&str; 7] = ["|", ">", "2>", "2>&1", "&", "&&", "#"];

/// The documents whose examples start this program.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages = fs::read_dir(root.join("docs")).unwrap();
    let pages = pages.map(|page| page.unwrap().path());
    let pages = pages.filter(|page| page.extension().is_some_and(|end| end == "md"));
    let further = ["README.md", "CONTRIBUTING.md", "SECURITY.md"].map(|name| root.join(name));
    further.into_iter().chain(pages).collect()
}

/// The command lines of a document, with their places.
fn command_lines(document: &Path) -> Vec<(String, String)> {
    let text = fs::read_to_string(document).unwrap();
    let lines = text.lines().enumerate();
    let lines = lines.filter_map(|(index, line)| {
        let place = format!("{}:{}", document.display(), index + 1);
        Some((place, line.trim_start().strip_prefix("$ ")?.to_owned()))
    });
    lines.collect()
}

/// The examples in the help text of a command and of those below it, with the names of the commands.
fn helped(command: &clap::Command, lines: &mut Vec<(String, String)>) {
    let help = command.get_after_help().map(ToString::to_string);
    let help = help.unwrap_or_default();
    let mut parts = help.split("\\\n");
    let mut text = parts.next().unwrap_or_default().to_owned();
    text.extend(parts.map(str::trim_start));
    for line in text.lines() {
        // An explanation is three spaces or more behind the command.
        let example = line.trim_start().split("   ").next().unwrap_or_default();
        if line.starts_with("  ") && example.contains("plexus ") {
            lines.push((command.get_name().to_owned(), example.to_owned()));
        }
    }
    for below in command.get_subcommands() {
        helped(below, lines);
    }
}

/// The arguments with which a command line starts this program, if it does so itself or names the
/// program to another one behind `--`.
fn arguments(line: &str) -> Option<Vec<String>> {
    let words = words::split(line).unwrap();
    let mut start = words.iter().position(|word| !word.contains('='))?;
    if words[start] != "plexus" {
        start += words[start..]
            .iter()
            .position(|word| word == "|" || word == "--")?
            + 1;
    }
    let command = words.get(start..)?;
    if command.first()? != "plexus" {
        return None;
    }
    let is_end = |word: &&String| !SHELL_WORDS.contains(&word.as_str());
    Some(command.iter().take_while(is_end).cloned().collect())
}

#[test]
fn every_command_in_documents_and_help_can_be_typed() {
    let mut lines: Vec<_> = documents()
        .iter()
        .flat_map(|document| command_lines(document))
        .collect();
    let in_documents = lines.len();
    helped(&Cli::command(), &mut lines);
    let in_help = lines.len() - in_documents;
    let (mut typed, mut wrong) = (0, Vec::new());
    for (place, line) in &lines {
        let Some(words) = arguments(line) else {
            continue;
        };
        typed += 1;
        let Err(error) = Cli::read_from(words.into_iter().map(Into::into).collect()) else {
            continue;
        };
        let text = error.to_string();
        // The files and variables of the examples are the reader's.
        let is_valid = matches!(
            error.kind(),
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
        ) || text.contains("there is no such file")
            || text.contains(" is not set");
        if !is_valid {
            wrong.push(format!("{place}: {line}\n{text}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        in_documents > 50 && in_help > 50 && typed > 100,
        "{in_documents} {in_help} {typed}"
    );
}
