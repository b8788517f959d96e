//! The program of a child process, and errors of starting it.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// A program to start. `Display` shows its command line. Neither `Display` nor `Debug` shows the
/// values of environment variables, which are often secrets.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Program {
    /// A name that is looked up in `PATH`, or a path. A relative path starts at `cwd`.
    pub command: String,
    /// The command as it is shown, if it holds a variable whose value may be a secret.
    pub shown: Option<String>,
    /// Passed as they are; no shell interprets them.
    pub args: Vec<String>,
    /// Where it runs; `None` for our own working directory.
    pub cwd: Option<PathBuf>,
    /// Set on top of our own environment (S001-52, S004-32); `None` removes a variable.
    pub env: BTreeMap<String, Option<String>>,
}

impl Program {
    /// `command`, without arguments, where we are ourselves.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            shown: None,
            args: Vec::new(),
            cwd: None,
            env: BTreeMap::new(),
        }
    }

    /// Shows this in place of the command.
    #[must_use]
    pub fn shown_as(mut self, shown: impl Into<String>) -> Self {
        self.shown = Some(shown.into()).filter(|shown| *shown != self.command);
        self
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of the environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), Some(value.into()));
        self
    }

    /// Removes a variable that our own environment may have.
    #[must_use]
    pub fn env_remove(mut self, name: impl Into<String>) -> Self {
        self.env.insert(name.into(), None);
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    fn is_path(&self) -> bool {
        self.command.contains('/')
    }

    /// The command as it is shown.
    pub(super) fn shown_command(&self) -> &str {
        self.shown.as_deref().unwrap_or(&self.command)
    }

    fn file(&self) -> PathBuf {
        let cwd = self.cwd.as_deref();
        cwd.unwrap_or(Path::new("")).join(&self.command)
    }

    fn shown_file(&self) -> PathBuf {
        match &self.shown {
            Some(shown) => PathBuf::from(shown),
            None => self.file(),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_quoted(f, self.shown_command())?;
        for arg in &self.args {
            f.write_str(" ")?;
            write_quoted(f, arg)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program")
            .field("command", &self.shown_command())
            .field("args", &self.args)
            .field("cwd", &self.cwd)
            .field("env", &self.env.keys())
            .finish_non_exhaustive()
    }
}

/// Why a program could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// No directory of `PATH` has such a program.
    #[error("cannot start `{command}`: no directory of PATH has such a program{}", advice(.command))]
    NotInPath {
        /// The name that was looked up.
        command: String,
    },
    /// The path of the program leads nowhere.
    #[error("cannot start `{}`: there is no such file", .file.display())]
    NoSuchFile {
        /// Where it should be.
        file: PathBuf,
    },
    /// The program is a script, or linked, for an interpreter that is not there.
    #[error("cannot start `{}`: the file exists, but the interpreter in its first line does not", .file.display())]
    NoInterpreter {
        /// The program.
        file: PathBuf,
    },
    /// The program may not be run.
    #[error("cannot start `{command}`: the system does not permit it; is the file executable?")]
    NotPermitted {
        /// The program.
        command: String,
    },
    /// The working directory is missing, is not a directory, or may not be entered.
    #[error("cannot start `{command}` in {}: it is no directory that can be entered", .cwd.display())]
    Directory {
        /// The program.
        command: String,
        /// The working directory.
        cwd: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The system cannot start it now, or not with these arguments.
    #[error("cannot start `{command}`")]
    System {
        /// The program.
        command: String,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl StartError {
    /// Determines the cause of `error`, the error of starting `program`: the system has one error
    /// code for a missing program, a missing directory and a missing interpreter.
    pub(super) fn new(program: &Program, error: io::Error) -> Self {
        let command = program.shown_command().to_owned();
        if let Some(cwd) = &program.cwd
            && let Err(source) = enter(cwd)
        {
            return Self::Directory {
                command,
                cwd: cwd.clone(),
                source,
            };
        }
        match error.kind() {
            io::ErrorKind::NotFound if !program.is_path() => Self::NotInPath { command },
            io::ErrorKind::NotFound if program.file().exists() => Self::NoInterpreter {
                file: program.shown_file(),
            },
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::NoSuchFile {
                file: program.shown_file(),
            },
            io::ErrorKind::PermissionDenied => Self::NotPermitted { command },
            _ => Self::System {
                command,
                source: error,
            },
        }
    }

    /// The process came without its streams.
    pub(super) fn incomplete(program: &Program) -> Self {
        let source = io::Error::other("the process has no streams");
        Self::System {
            command: program.shown_command().to_owned(),
            source,
        }
    }
}

fn enter(directory: &Path) -> io::Result<()> {
    if !std::fs::metadata(directory)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    Ok(access(directory, Access::EXEC_OK)?)
}

/// A hint for a command that was not found: where to get a common launcher, or how to replace a
/// Windows command.
fn advice(command: &str) -> &'static str {
    match command {
        "npx" | "npm" | "node" => "; it comes with Node.js (https://nodejs.org)",
        "uvx" | "uv" => "; it comes with uv (https://docs.astral.sh/uv)",
        "bunx" | "bun" => "; it comes with Bun (https://bun.sh)",
        "deno" => "; it comes with Deno (https://deno.com)",
        "pipx" => "; see https://pipx.pypa.io",
        "python" | "python3" => "; it comes with Python (https://www.python.org)",
        "docker" => "; it comes with Docker (https://docs.docker.com)",
        other => advice_on_windows(&other.to_ascii_lowercase()),
    }
}

/// Project files are shared between systems, and on Windows launchers are scripts that need `cmd`.
fn advice_on_windows(command: &str) -> &'static str {
    if matches!(command, "cmd" | "cmd.exe") {
        return "; it is part of Windows: elsewhere, write what follows `/c` as the command";
    }
    let ending = Path::new(command)
        .extension()
        .and_then(|ending| ending.to_str());
    match ending {
        Some("cmd" | "bat" | "exe") => {
            "; the ending is that of programs for Windows: leave it out elsewhere"
        }
        _ => "",
    }
}

fn write_quoted(f: &mut fmt::Formatter<'_>, word: &str) -> fmt::Result {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return f.write_str(word);
    }
    write!(f, "'{}'", word.replace('\'', r"'\''"))
}
