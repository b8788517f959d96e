//! How the members of a hub are doing.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::join_all;
use plexus_client::{ProcessInfo, Report, State, Status};
use plexus_service::{Fault, Section};

use super::Hub;
use crate::member::Member;

/// How long a connection may take to say which process it has.
const PATIENCE: Duration = Duration::from_secs(1);

/// How one member is doing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MemberStatus {
    /// Its name.
    pub name: Arc<str>,
    /// Whether it is turned on.
    pub enabled: bool,
    /// Its connection; `None` for a service in this process, which is always there.
    pub status: Option<Status>,
    /// What is known of it, while it is connected.
    pub report: Option<Report>,
    /// The revision that it speaks, or spoke when it was last connected.
    pub revision: Option<String>,
    /// How many tools it offers.
    pub tools: usize,
    /// How many resources and templates it offers.
    pub resources: usize,
    /// How many prompts it offers.
    pub prompts: usize,
    /// How long it took to connect.
    pub connected_in: Option<Duration>,
    /// How long its last answer took.
    pub latency: Option<Duration>,
    /// What went wrong last, and when; stays when it is well again.
    pub last_error: Option<(SystemTime, String)>,
    /// Its process; only [`Hub::examine`] finds it.
    pub process: Option<ProcessInfo>,
}

impl MemberStatus {
    /// Its state, as people see it (S004-20).
    pub fn state(&self) -> State {
        match &self.status {
            _ if !self.enabled => State::Disabled,
            Some(status) => status.state,
            None => State::Connected,
        }
    }

    /// Why it is in that state, where there is something to say.
    pub fn reason(&self) -> Option<&str> {
        match &self.status {
            _ if !self.enabled => Some("turned off"),
            Some(status) => status.reason.as_deref(),
            None => None,
        }
    }
}

impl Hub {
    /// How every member is doing, in order (S004-54).
    pub fn status(&self) -> Vec<MemberStatus> {
        self.members().iter().map(|member| of(member)).collect()
    }

    /// How one member is doing (S004-54).
    ///
    /// # Errors
    /// There is no such member.
    pub fn status_of(&self, name: &str) -> Result<MemberStatus, Fault> {
        Ok(of(&*self.member(name)?))
    }

    /// How every member is doing, with its process.
    pub async fn examine(&self) -> Vec<MemberStatus> {
        let members = self.members();
        let examining = members.iter().map(async |member| {
            let mut status = of(member);
            if let Some(connection) = member.connection() {
                let process = tokio::time::timeout(PATIENCE, connection.process()).await;
                status.process = process.ok().flatten();
            }
            status
        });
        join_all(examining).await
    }
}

fn of(member: &Member) -> MemberStatus {
    let connection = member.connection();
    let facts = connection.map(|connection| connection.facts());
    let facts = facts.unwrap_or_default();
    let catalogue = member.catalogue();
    let count = |section| catalogue.list(section).entries().len();
    MemberStatus {
        name: Arc::clone(&member.name),
        enabled: member.is_enabled(),
        status: member.condition(),
        report: connection.and_then(|connection| connection.report()),
        revision: facts.revision,
        tools: count(Section::Tools),
        resources: count(Section::Resources) + count(Section::Templates),
        prompts: count(Section::Prompts),
        connected_in: facts.connected_in,
        latency: member.latency(),
        last_error: facts.last_error,
        process: None,
    }
}
