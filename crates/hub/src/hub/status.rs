//! Status of the members.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::join_all;
use plexus_mcp_client::{ListProblem, ProcessInfo, Report, ServerState, Status, Upstream};
use plexus_mcp_config::Scope;
use plexus_mcp_core::{Fault, Implementation, List, Section};
use tokio::time::Instant;

use super::Hub;
use crate::member::Member;

/// How long the query for a connection's process may take.
const PROCESS_QUERY_TIMEOUT: Duration = Duration::from_secs(1);

/// The status of one member.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MemberStatus {
    /// Its name.
    pub name: Arc<str>,
    /// Whether it is enabled.
    pub enabled: bool,
    /// The status of its connection; `None` for a service in this process, which is always
    /// available.
    pub status: Option<Status>,
    /// Details of its connection, while it is connected.
    pub report: Option<Report>,
    /// The revision that it speaks, or spoke when it was last connected.
    pub revision: Option<String>,
    /// The tools it offers, with its own names for them.
    pub tools: Arc<List>,
    /// The scope of its configuration file; `None` for a server that comes from no file.
    pub scope: Option<Scope>,
    /// How many resources and templates it offers.
    pub resources: usize,
    /// How many prompts it offers.
    pub prompts: usize,
    /// How long it took to connect.
    pub connected_in: Option<Duration>,
    /// How long the last call that it answered took, without calls that waited for it to start.
    pub latency: Option<Duration>,
    /// The last error, and when it happened. It stays after the member has recovered.
    pub last_error: Option<(SystemTime, String)>,
    /// The time until the next attempt to connect it, while it is in backoff.
    pub next_attempt_in: Option<Duration>,
    /// Its process; only set by [`Hub::examine`].
    pub process: Option<ProcessInfo>,
}

impl MemberStatus {
    /// Its state, as users see it (S004-20).
    pub fn state(&self) -> ServerState {
        match &self.status {
            _ if !self.enabled => ServerState::Disabled,
            Some(status) => status.state,
            None => ServerState::Connected,
        }
    }

    /// Name and version that the server gives itself, while it is connected.
    pub fn server_info(&self) -> Option<&Implementation> {
        self.report.as_ref().map(|report| &report.facts.identity)
    }

    /// Why it cannot be used: its connection failed, or it wants credentials.
    pub fn error(&self) -> Option<&str> {
        let is_failing = matches!(self.state(), ServerState::Failed | ServerState::NeedsAuth);
        self.reason().filter(|_| is_failing)
    }

    /// Why its list of `section` is missing or incomplete, while it is connected.
    pub fn list_problem(&self, section: Section) -> Option<&ListProblem> {
        let problems = &self.report.as_ref()?.list_problems;
        problems.iter().find(|problem| match problem {
            ListProblem::Failed { section: list, .. }
            | ListProblem::TooLong(list)
            | ListProblem::CursorLoop(list)
            | ListProblem::BadCursor(list) => *list == section,
            _ => false,
        })
    }

    /// The reason for that state, if there is one. A connected member has one if its lists have
    /// problems.
    pub fn reason(&self) -> Option<&str> {
        match &self.status {
            _ if !self.enabled => Some("disabled"),
            Some(status) => status.reason.as_deref(),
            None => None,
        }
    }
}

impl Hub {
    /// The status of every member, in order (S004-54).
    pub fn status(&self) -> Vec<MemberStatus> {
        self.members().iter().map(|member| of(member)).collect()
    }

    /// The status of one member (S004-54).
    ///
    /// # Errors
    /// There is no such member.
    pub fn server_status(&self, name: &str) -> Result<MemberStatus, Fault> {
        Ok(of(&*self.member(name)?))
    }

    /// The status of every member, with its process.
    pub async fn examine(&self) -> Vec<MemberStatus> {
        let members = self.members();
        let examining = members.iter().map(async |member| {
            let mut status = of(member);
            if let Some(upstream) = member.upstream() {
                let process = tokio::time::timeout(PROCESS_QUERY_TIMEOUT, upstream.process()).await;
                status.process = process.ok().flatten();
            }
            status
        });
        join_all(examining).await
    }
}

pub(super) fn of(member: &Member) -> MemberStatus {
    let upstream = member.upstream();
    let history = upstream.map(Upstream::history).unwrap_or_default();
    let catalogue = member.catalogue();
    let count = |section| catalogue.list(section).entries().len();
    MemberStatus {
        name: Arc::clone(&member.name),
        enabled: member.is_enabled(),
        status: member.condition(),
        report: upstream.and_then(Upstream::report),
        revision: history.revision,
        tools: Arc::clone(catalogue.list(Section::Tools)),
        scope: member.scope,
        resources: count(Section::Resources) + count(Section::Templates),
        prompts: count(Section::Prompts),
        connected_in: history.connected_in,
        latency: member.latency(),
        last_error: history.last_error,
        next_attempt_in: upstream
            .and_then(Upstream::next_attempt)
            .map(|time| time.saturating_duration_since(Instant::now())),
        process: None,
    }
}
