//! Argument types.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::{PathBufValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use http::{HeaderName, HeaderValue};
use plexus_mcp_client::Era;
use plexus_mcp_server::ServedEras;
use tracing::level_filters::LevelFilter;

/// A day. Longer values are probably mistakes.
const MAX_SECONDS: u64 = 24 * 60 * 60;

/// The log level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    /// Errors.
    Error,
    /// Errors and warnings.
    Warn,
    /// Also servers that connect, and changes of the configuration.
    #[default]
    Info,
    /// Also every call, with its tool, server, caller and outcome.
    Debug,
    /// Also every message on the wire, with secrets masked.
    Trace,
}

/// How logs are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object for each line, for programs.
    Json,
}

impl From<LogLevel> for LevelFilter {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Error => Self::ERROR,
            LogLevel::Warn => Self::WARN,
            LogLevel::Info => Self::INFO,
            LogLevel::Debug => Self::DEBUG,
            LogLevel::Trace => Self::TRACE,
        }
    }
}

/// Parses the path of a file that must exist.
pub(crate) fn existing_file() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|file| match file.try_exists() {
        Ok(false) => Err("there is no such file"),
        // The reason why a file cannot be read is reported with those of other files.
        Ok(true) | Err(_) => Ok(file),
    })
}

/// Parses `--era`: the revisions to speak to clients.
pub(crate) fn served() -> impl TypedValueParser<Value = ServedEras> {
    PossibleValuesParser::new([
        PossibleValue::new(ServedEras::Handshake.as_str())
            .help("Revisions with a handshake, 2024-11-05 to 2025-11-25"),
        PossibleValue::new(ServedEras::Stateless.as_str())
            .help("Revisions with self-contained requests, since 2026-07-28"),
        PossibleValue::new(ServedEras::Both.as_str()).help("All of them, side by side"),
    ])
    .try_map(|name| name.parse())
}

/// The profile: which tools are shown, under which names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profile {
    /// All tools, with names that every model accepts.
    #[default]
    Plexus,
    /// All tools, with dots in tool names and the error codes of Substrate.
    Substrate,
    /// The context graph alone, with one tool to search it.
    Ghost,
    /// The task list alone, with eight tools.
    Bossman,
}

impl Profile {
    /// Whether this profile shows its own tools only.
    pub(crate) fn is_closed(self) -> bool {
        matches!(self, Self::Ghost | Self::Bossman)
    }
}

impl From<Profile> for plexus_mcp_agents::Profile {
    fn from(profile: Profile) -> Self {
        match profile {
            Profile::Plexus => Self::Plexus,
            Profile::Substrate => Self::Substrate,
            Profile::Ghost => Self::Ghost,
            Profile::Bossman => Self::Bossman,
        }
    }
}

impl From<Profile> for plexus_mcp_server::Profile {
    fn from(profile: Profile) -> Self {
        match profile {
            Profile::Plexus | Profile::Ghost | Profile::Bossman => Self::Plexus,
            Profile::Substrate => Self::Substrate,
        }
    }
}

/// Additional behaviour that no revision requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compat {
    /// For the Janix mcp-validator: server/info, shutdown, and a second initialize.
    McpValidator,
}

pub(super) fn parse_seconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds @ 1..=MAX_SECONDS) => Ok(Duration::from_secs(seconds)),
        _ => Err(format!(
            "expected a number of seconds from 1 to {MAX_SECONDS}"
        )),
    }
}

pub(super) fn parse_path(text: &str) -> Result<String, String> {
    let is_legal = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#');
    if text.starts_with('/') && text.bytes().all(is_legal) {
        Ok(text.to_owned())
    } else {
        Err("expected a path, as in /mcp".to_owned())
    }
}

/// Parses the era that a server speaks.
pub(crate) fn server_era() -> impl TypedValueParser<Value = Era> {
    PossibleValuesParser::new([
        PossibleValue::new(Era::Handshake.as_str())
            .help("With a handshake: 2024-11-05 to 2025-11-25"),
        PossibleValue::new(Era::Stateless.as_str()).help("Without: 2026-07-28"),
    ])
    .try_map(|name| name.parse())
}

/// Which clients share a session with a server.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ServerAffinity {
    /// All clients.
    Shared,
    /// Clients of one principal with the same capabilities.
    Principal,
}

impl From<ServerAffinity> for plexus_mcp_client::Affinity {
    fn from(affinity: ServerAffinity) -> Self {
        match affinity {
            ServerAffinity::Shared => Self::Shared,
            ServerAffinity::Principal => Self::Principal,
        }
    }
}

/// A header, in which `${NAME}` is replaced by an environment variable.
pub(crate) fn parse_header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or("a header is written as 'Name: value'")?;
    let name = HeaderName::try_from(name.trim()).map_err(|_invalid| "this is not a header name")?;
    let mut value = HeaderValue::try_from(expand(value.trim())?)
        .map_err(|_invalid| "this is not a header value")?;
    // Kept out of logs and `Debug`.
    value.set_sensitive(true);
    Ok((name, value))
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is where the command line is read, of which the variable is a part"
)]
fn expand(text: &str) -> Result<String, String> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, after) = after.split_once('}').ok_or("${ without a closing brace")?;
        expanded.push_str(before);
        let value = std::env::var(name);
        expanded.push_str(
            &value.map_err(|_unset| format!("the environment variable {name} is not set"))?,
        );
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}
