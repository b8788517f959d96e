//! What is wrong with a configuration, in one line.

use std::fmt;
use std::path::{Path, PathBuf};

/// Something in a configuration file that is not used, and why. Displayed, it is one line that
/// names the place, what is wrong there and, if we know it, what to do. Never quotes values, which
/// may be secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigProblem {
    /// The file.
    pub file: PathBuf,
    /// Where in the file, if the text itself is at fault.
    pub position: Option<Position>,
    /// The server that is at fault, if only one is; it is not loaded. Others are.
    pub server: Option<Box<str>>,
    /// The key that is at fault, as a path: `env.TOKEN`.
    pub key: Option<Box<str>>,
    /// What is wrong.
    pub what: Box<str>,
    /// What to do about it.
    pub advice: Option<Box<str>>,
    /// See [`ConfigProblem::is_about_environment`].
    about_environment: bool,
}

/// A place in a text, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The byte within the line.
    pub column: usize,
}

impl ConfigProblem {
    /// `what` is wrong with `file`.
    pub fn new(file: impl Into<PathBuf>, what: impl Into<Box<str>>) -> Self {
        Self {
            file: file.into(),
            position: None,
            server: None,
            key: None,
            what: what.into(),
            advice: None,
            about_environment: false,
        }
    }

    /// Says where in the file.
    #[must_use]
    pub fn at(mut self, position: Position) -> Self {
        self.position = Some(position);
        self
    }

    /// Says which server is at fault.
    #[must_use]
    pub fn server(mut self, name: impl Into<Box<str>>) -> Self {
        self.server = Some(name.into());
        self
    }

    /// Says which key is at fault.
    #[must_use]
    pub fn key(mut self, key: impl Into<Box<str>>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn advice(mut self, advice: impl Into<Box<str>>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// Whether nothing is wrong with the file, only with what it refers to: a variable
    /// is not set, or there is no environment file yet.
    pub fn is_about_environment(&self) -> bool {
        self.about_environment
    }

    /// Whether nothing in the file can be used: it is no text, or not written as it should be.
    pub fn is_about_whole_file(&self) -> bool {
        self.server.is_none() && self.key.is_none()
    }

    /// Says that a variable or an environment file is at fault, not the file.
    pub(super) fn of_environment(mut self) -> Self {
        self.about_environment = true;
        self
    }

    /// Whether the file as a whole could not be understood, as when it is read while it is written.
    pub(super) fn is_about_syntax(&self) -> bool {
        self.position.is_some()
    }
}

impl Position {
    /// `line` and `column`, from 1.
    pub fn new(line: usize, column: usize) -> Self {
        Self { line, column }
    }

    /// The place of the byte at `offset` of `text`.
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

/// A path, of which even a line break in a name makes no second line.
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
