//! `plexus man`: manual pages, generated from the help of all commands.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Command};
use clap_mangen::Man;

use crate::output::print;

pub(crate) const EXAMPLES: &str = "\
Examples:
  plexus man | man -l -
  plexus man ~/.local/share/man/man1 && man plexus-call

The exit code is 0 if they were written, 1 if not, and 2 for wrong usage.";

/// Arguments of `plexus man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write a page for each command to this folder. By default, the page of plexus itself is
    /// printed.
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,

    /// Print the names of the written files as one JSON object.
    #[arg(long, requires = "folder")]
    json: bool,
}

/// Runs `plexus man`.
pub(crate) fn run(arguments: &ManArgs, mut command: Command) -> anyhow::Result<ExitCode> {
    // `plexus help` shows what the pages contain, and needs no pages of its own.
    command = command.disable_help_subcommand(true);
    // Commands have their full names only after this.
    command.build();
    let Some(folder) = &arguments.folder else {
        print(&page(&command)?)?;
        return Ok(ExitCode::SUCCESS);
    };
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut files = Vec::new();
    write(&command, folder, &mut files)?;
    print(&if arguments.json {
        crate::output::as_json(&serde_json::json!({ "files": files }))?
    } else {
        format!("wrote {} pages to {}\n", files.len(), folder.display())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the pages of a command and of all its subcommands.
fn write(command: &Command, folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    let file = folder.join(format!("{name}.1"));
    fs::write(&file, page(command)?).with_context(|| format!("cannot write {}", file.display()))?;
    files.push(file);
    for below in command
        .get_subcommands()
        .filter(|below| !below.is_hide_set())
    {
        write(below, folder, files)?;
    }
    Ok(())
}

fn page(command: &Command) -> anyhow::Result<String> {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    Ok(String::from_utf8(page)?)
}
