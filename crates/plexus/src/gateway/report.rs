//! Status of a gateway's servers, for users and scripts.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plexus_mcp_config::{Kind, ServerEntry};
use plexus_mcp_hub::MemberStatus;
use serde::{Deserialize, Serialize};

use super::Gateway;

/// The status of one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerReport {
    /// Its name.
    pub(crate) name: String,
    /// Whether it is enabled.
    pub(crate) enabled: bool,
    /// `connected`, `pending`, `failed`, `needs-auth` or `disabled`.
    pub(crate) state: String,
    /// The reason, if there is one.
    pub(crate) reason: Option<String>,
    /// Since when, in seconds since 1970.
    pub(crate) since: Option<u64>,
    /// `legacy` or `modern`, while it is connected.
    pub(crate) era: Option<String>,
    /// The revision that it speaks, or last spoke.
    pub(crate) revision: Option<String>,
    /// Its name and version, while it is connected.
    pub(crate) identity: Option<String>,
    /// `stdio`, `http`, `sse`, or `builtin`.
    pub(crate) transport: Option<String>,
    /// Its process id.
    pub(crate) pid: Option<u32>,
    /// How many tools it offers.
    pub(crate) tools: usize,
    /// How many resources and templates it offers.
    pub(crate) resources: usize,
    /// How many prompts it offers.
    pub(crate) prompts: usize,
    /// How many entries of its lists are invalid.
    pub(crate) quarantined: usize,
    /// How long it took to connect.
    pub(crate) connected_in_ms: Option<u64>,
    /// How long its last response took.
    pub(crate) latency_ms: Option<u64>,
    /// The last error, with the last lines of its standard error if it exited.
    pub(crate) last_error: Option<LastError>,
    /// The last lines of its standard error.
    pub(crate) stderr: Vec<String>,
    /// The scope of the file that defines it.
    pub(crate) scope: Option<String>,
    /// The file that defines it.
    pub(crate) file: Option<PathBuf>,
}

/// An error, and when it happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LastError {
    /// In seconds since 1970.
    pub(crate) at: u64,
    /// The error text.
    pub(crate) message: String,
}

impl Gateway {
    /// The status of all servers, the built-in tools first.
    pub(crate) async fn report(&self) -> Vec<ServerReport> {
        let members = self.hub.examine().await;
        let servers = self.servers();
        let entry = |member: &MemberStatus| {
            let mut servers = servers.iter();
            servers.find(|server| server.name == *member.name)
        };
        members
            .iter()
            .map(|member| ServerReport::new(member, entry(member)))
            .collect()
    }
}

impl ServerReport {
    fn new(member: &MemberStatus, entry: Option<&ServerEntry>) -> Self {
        let report = member.report.as_ref();
        let process = member.process.as_ref();
        Self {
            name: member.name.to_string(),
            enabled: member.enabled,
            state: member.state().to_string(),
            reason: member.reason().map(str::to_owned),
            since: member.status.as_ref().map(|status| seconds(status.since)),
            era: report.map(|report| report.facts.revision.era().to_string()),
            revision: member.revision.clone(),
            identity: report.map(|report| {
                let identity = &report.facts.identity;
                format!("{} {}", identity.name, identity.version)
                    .trim()
                    .to_owned()
            }),
            transport: match entry.map(|entry| &entry.kind) {
                Some(Kind::Stdio { .. }) => Some("stdio".to_owned()),
                Some(Kind::Http { .. }) => Some("http".to_owned()),
                Some(Kind::Sse { .. }) => Some("sse".to_owned()),
                Some(Kind::Builtin(_)) => Some("builtin".to_owned()),
                Some(Kind::Unsupported(_)) => None,
                None => member.status.is_none().then(|| "builtin".to_owned()),
            },
            pid: process.map(|process| process.pid),
            tools: member.tools.entries().len(),
            resources: member.resources,
            prompts: member.prompts,
            quarantined: report.map_or(0, |report| report.quarantined.len()),
            connected_in_ms: member.connected_in.map(milliseconds),
            latency_ms: member.latency.map(milliseconds),
            last_error: member.last_error.as_ref().map(|(at, message)| LastError {
                at: seconds(*at),
                message: message.clone(),
            }),
            stderr: process.map_or_else(Vec::new, |process| process.stderr.clone()),
            scope: entry.map(|entry| entry.source.scope.as_str().to_owned()),
            file: entry.map(|entry| entry.source.file.clone()),
        }
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
