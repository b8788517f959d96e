//! The values that arguments take.

use std::net::SocketAddr;
use std::time::Duration;

use clap::ValueEnum;
use http::{HeaderName, HeaderValue};
use plexus_server::Served;
use tracing::level_filters::LevelFilter;

/// A day: whoever waits longer has gone.
const MOST_SECONDS: u64 = 24 * 60 * 60;

/// How much to log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    /// What failed.
    Error,
    /// And what may be wrong.
    Warn,
    /// And what happened.
    #[default]
    Info,
    /// And why.
    Debug,
    /// And everything else.
    Trace,
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

/// Which revisions to speak.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Era {
    /// Those with a handshake, 2024-11-05 to 2025-11-25.
    Legacy,
    /// Those in which every request stands alone, since 2026-07-28.
    Modern,
    /// All of them, side by side.
    #[default]
    Both,
}

impl From<Era> for Served {
    fn from(era: Era) -> Self {
        match era {
            Era::Legacy => Self::Handshake,
            Era::Modern => Self::Stateless,
            Era::Both => Self::Both,
        }
    }
}

/// Which system to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profile {
    /// Everything, with tool names that every model takes.
    #[default]
    Plexus,
    /// Everything, with dots in tool names and the error codes of Substrate.
    Substrate,
    /// The context graph alone, with one tool to search it.
    Ghost,
    /// The task list alone, with eight tools.
    Bossman,
}

impl Profile {
    /// Whether this is a system that shows its own tools only.
    pub(crate) fn is_closed(self) -> bool {
        matches!(self, Self::Ghost | Self::Bossman)
    }
}

impl From<Profile> for plexus_activations::Profile {
    fn from(profile: Profile) -> Self {
        match profile {
            Profile::Plexus => Self::Plexus,
            Profile::Substrate => Self::Substrate,
            Profile::Ghost => Self::Ghost,
            Profile::Bossman => Self::Bossman,
        }
    }
}

impl From<Profile> for plexus_server::Profile {
    fn from(profile: Profile) -> Self {
        match profile {
            Profile::Plexus | Profile::Ghost | Profile::Bossman => Self::Plexus,
            Profile::Substrate => Self::Substrate,
        }
    }
}

/// Whose demands to meet that no revision makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compat {
    /// Those of the Janix mcp-validator: server/info, shutdown, and a second initialize.
    McpValidator,
}

pub(super) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let example = "expected an address and a port, as in 127.0.0.1:4445 or [::1]:4445";
    text.parse().ok().ok_or_else(|| example.to_owned())
}

pub(super) fn parse_seconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds @ 1..=MOST_SECONDS) => Ok(Duration::from_secs(seconds)),
        _ => Err(format!(
            "expected a number of seconds from 1 to {MOST_SECONDS}"
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

/// The era that a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServerEra {
    /// With a handshake: 2024-11-05 to 2025-11-25.
    Legacy,
    /// Without: 2026-07-28.
    Modern,
}

impl From<ServerEra> for plexus_client::Era {
    fn from(era: ServerEra) -> Self {
        match era {
            ServerEra::Legacy => Self::Handshake,
            ServerEra::Modern => Self::Stateless,
        }
    }
}

/// Who shares a session with a server.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ServerAffinity {
    /// All clients.
    Shared,
    /// Clients of one principal that can do the same.
    Principal,
}

impl From<ServerAffinity> for plexus_client::Affinity {
    fn from(affinity: ServerAffinity) -> Self {
        match affinity {
            ServerAffinity::Shared => Self::Shared,
            ServerAffinity::Principal => Self::Principal,
        }
    }
}

/// A header, in which `${NAME}` stands for an environment variable.
pub(crate) fn parse_header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or("a header is written as 'Name: value'")?;
    let name = HeaderName::try_from(name.trim()).map_err(|_invalid| "this is no header name")?;
    let mut value = HeaderValue::try_from(expand(value.trim())?)
        .map_err(|_invalid| "this is no header value")?;
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
