//! Problems of a configuration, each in one line.

use std::fmt;
use std::path::{Path, PathBuf};

/// A problem in a configuration file. Its display form is one line with the position, the problem
/// and, if known, what to do. It never quotes values, which may be secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigProblem {
    /// The file.
    pub file: PathBuf,
    /// The position in the file, if the syntax is wrong.
    pub position: Option<Position>,
    /// The server with the problem, if it is about one server; that server is not loaded. Others
    /// are.
    pub server: Option<Box<str>>,
    /// The key with the problem, as a path: `env.TOKEN`.
    pub key: Option<Box<str>>,
    /// The problem.
    pub what: Box<str>,
    /// Advice on how to solve it.
    pub advice: Option<Box<str>>,
    /// See [`ConfigProblem::is_about_environment`].
    about_environment: bool,
    /// See [`ConfigProblem::is_about_settings`].
    about_settings: bool,
    /// See [`ConfigProblem::is_about_permissions`].
    about_permissions: bool,
}

/// A position in a text, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The byte within the line.
    pub column: usize,
}

impl ConfigProblem {
    /// The problem `what` with `file`.
    pub fn new(file: impl Into<PathBuf>, what: impl Into<Box<str>>) -> Self {
        Self {
            file: file.into(),
            position: None,
            server: None,
            key: None,
            what: what.into(),
            advice: None,
            about_environment: false,
            about_settings: false,
            about_permissions: false,
        }
    }

    /// Adds the position in the file.
    #[must_use]
    pub fn at(mut self, position: Position) -> Self {
        self.position = Some(position);
        self
    }

    /// Adds the server.
    #[must_use]
    pub fn server(mut self, name: impl Into<Box<str>>) -> Self {
        self.server = Some(name.into());
        self
    }

    /// Adds the key.
    #[must_use]
    pub fn key(mut self, key: impl Into<Box<str>>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Adds what to do.
    #[must_use]
    pub fn advice(mut self, advice: impl Into<Box<str>>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// Whether the file is correct, but something that it refers to is missing: a variable is not
    /// set, or there is no environment file yet.
    pub fn is_about_environment(&self) -> bool {
        self.about_environment
    }

    /// Whether it concerns the permissions in a settings file, and no server.
    pub fn is_about_permissions(&self) -> bool {
        self.about_permissions
    }

    /// Whether nothing in the file can be used: it is not text, or its syntax is wrong.
    pub fn is_about_whole_file(&self) -> bool {
        self.server.is_none() && self.key.is_none()
    }

    /// Whether it makes a whole settings file unusable: its syntax, a key or the type of a value is
    /// wrong.
    pub fn is_about_settings(&self) -> bool {
        self.about_settings
    }

    /// Marks it as a problem that makes a settings file unusable.
    pub(super) fn of_settings(mut self) -> Self {
        self.about_settings = true;
        self
    }

    /// Marks it as a problem of a variable or an environment file.
    pub(super) fn of_environment(mut self) -> Self {
        self.about_environment = true;
        self
    }

    /// Marks it as a problem of the permissions in a settings file.
    pub(super) fn of_permissions(mut self) -> Self {
        self.about_permissions = true;
        self
    }

    /// Whether the syntax of the file is wrong, which may be because it is being written.
    pub(super) fn is_about_syntax(&self) -> bool {
        self.position.is_some()
    }
}

impl Position {
    /// `line` and `column`, from 1.
    pub fn new(line: usize, column: usize) -> Self {
        Self { line, column }
    }

    /// The position of the byte at `offset` of `text`.
    pub(super) fn of_offset(text: &str, offset: usize) -> Self {
        let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
        let lines = before.split(|byte| *byte == b'\n');
        let (line, last) = lines.enumerate().last().unwrap_or_default();
        Self::new(line + 1, last.len() + 1)
    }
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", OneLine(&self.file))?;
        if let Some(Position { line, column }) = self.position {
            write!(f, ":{line}:{column}")?;
        }
        if let Some(server) = &self.server {
            write!(f, ": server {server:?}")?;
        }
        if let Some(key) = &self.key {
            write!(f, ": {}", key.escape_debug())?;
        }
        write!(f, ": {}", self.what)?;
        if let Some(advice) = &self.advice {
            write!(f, "; {advice}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigProblem {}

/// A path on one line, even if a name in it has a line break.
struct OneLine<'a>(&'a Path);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string_lossy();
        text.chars().try_for_each(|c| {
            if c.is_control() {
                write!(f, "{}", c.escape_default())
            } else {
                write!(f, "{c}")
            }
        })
    }
}
