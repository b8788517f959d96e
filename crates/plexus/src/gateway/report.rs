//! How the servers of a gateway are doing, for people and programs.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plexus_hub::MemberStatus;
use plexus_hub::config::{Kind, ServerEntry};
use serde::{Deserialize, Serialize};

use super::Gateway;

/// How one server is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerReport {
    /// Its name.
    pub(crate) name: String,
    /// Whether it is turned on.
    pub(crate) enabled: bool,
    /// `connected`, `pending`, `failed`, `needs-auth` or `disabled`.
    pub(crate) state: String,
    /// Why, where there is something to say.
    pub(crate) reason: Option<String>,
    /// Since when, in seconds since 1970.
    pub(crate) since: Option<u64>,
    /// `legacy` or `modern`, while it is connected.
    pub(crate) era: Option<String>,
    /// The revision that it speaks, or last spoke.
    pub(crate) revision: Option<String>,
    /// What it calls itself, while it is connected.
    pub(crate) identity: Option<String>,
    /// `stdio`, `http`, `sse`, or `builtin`.
    pub(crate) transport: Option<String>,
    /// Its process.
    pub(crate) pid: Option<u32>,
    /// How many tools it offers.
    pub(crate) tools: usize,
    /// How many resources and templates.
    pub(crate) resources: usize,
    /// How many prompts.
    pub(crate) prompts: usize,
    /// How many entries of its lists cannot be shown.
    pub(crate) quarantined: usize,
    /// How long it took to connect.
    pub(crate) connected_in_ms: Option<u64>,
    /// How long its last answer took.
    pub(crate) latency_ms: Option<u64>,
    /// What went wrong last; with the last lines of its standard error if it ended.
    pub(crate) last_error: Option<LastError>,
    /// What its process last said on its standard error.
    pub(crate) stderr: Vec<String>,
    /// The scope of the file that defines it.
    pub(crate) scope: Option<String>,
    /// The file that defines it.
    pub(crate) file: Option<PathBuf>,
}

/// What went wrong, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LastError {
    /// In seconds since 1970.
    pub(crate) at: u64,
    /// What.
    pub(crate) message: String,
}

impl Gateway {
    /// How all servers are doing, the built-in tools first.
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
            era: report.map(|report| match report.facts.revision.era() {
                plexus_client::Era::Handshake => "legacy".to_owned(),
                plexus_client::Era::Stateless => "modern".to_owned(),
            }),
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
            tools: member.tools,
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
