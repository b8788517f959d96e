//! Status of a gateway's servers, for users and scripts.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plexus_mcp_client::ServerState;
use plexus_mcp_config::{ConfigProblem, Kind, ServerEntry};
use plexus_mcp_hub::MemberStatus;
use serde::{Deserialize, Serialize};

use super::Gateway;
use crate::session;

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
    /// The server's name and version; `None` while disconnected.
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
    /// How long the last call that it answered took, without calls that waited for it to start.
    pub(crate) latency_ms: Option<u64>,
    /// The last error, with the last lines of its standard error if it exited.
    pub(crate) last_error: Option<LastError>,
    /// The time until the next attempt to connect it, while it is in backoff.
    #[serde(default)]
    pub(crate) next_attempt_in_ms: Option<u64>,
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
        let reports = members
            .iter()
            .map(|member| ServerReport::new(member, entry(member)));
        let refused = self.refused().into_iter();
        reports.chain(refused.map(ServerReport::refused)).collect()
    }
}

impl ServerReport {
    /// A server that is not among the members.
    fn refused((name, problem): (String, ConfigProblem)) -> Self {
        Self {
            name,
            enabled: true,
            state: ServerState::Failed.to_string(),
            reason: Some(problem.to_string()),
            since: None,
            era: None,
            revision: None,
            identity: None,
            transport: None,
            pid: None,
            tools: 0,
            resources: 0,
            prompts: 0,
            quarantined: 0,
            connected_in_ms: None,
            latency_ms: None,
            last_error: None,
            next_attempt_in_ms: None,
            stderr: Vec::new(),
            scope: None,
            file: Some(problem.file),
        }
    }

    fn new(member: &MemberStatus, entry: Option<&ServerEntry>) -> Self {
        let report = member.report.as_ref();
        let process = member.process.as_ref();
        Self {
            name: member.name.to_string(),
            enabled: member.enabled,
            state: member.state().to_string(),
            reason: match entry.filter(|entry| entry.disabled && !member.enabled) {
                Some(entry) => Some(session::disabled(entry)),
                None if member.enabled => member.reason().map(str::to_owned),
                None => Some(format!(
                    "it was disabled while the gateway runs; to enable it: plexus servers toggle {} --on",
                    member.name
                )),
            },
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
            next_attempt_in_ms: member.next_attempt_in.map(milliseconds),
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
