//! Checks that start the servers.

use std::time::Duration;

use plexus_mcp_client::child::{Child, Program};
use plexus_mcp_client::{Era, Quirk, Report, ServerState, Timeouts};
use plexus_mcp_config::{Kind, ServerEntry};
use plexus_mcp_core::{Section, Service};
use plexus_mcp_hub::MemberStatus;
use tokio::io::AsyncReadExt;

use super::Finding;
use crate::printable::one_line;
use crate::session::{Session, failure};
use crate::tools::entries;
use crate::trust::NOT_TRUSTED;

/// Some clients do not wait longer than this for a server.
const SLOW_CONNECT_THRESHOLD: Duration = Duration::from_secs(5);
/// A legacy server that is ready answers the handshake in this time. One that takes longer was not
/// ready when it was asked for its era, so the question did not delay it.
const PROMPT_HANDSHAKE_TIME: Duration = Duration::from_secs(1);
/// More tools than some clients and models accept.
const TOO_MANY_TOOLS: usize = 128;
const MANY_TOOLS: usize = 40;
/// The oldest Node version that most servers run on.
const MIN_NODE_MAJOR: u32 = 18;
/// How many entries of one kind are named in a finding.
const MAX_NAMED: usize = 3;

/// Starts every server that may work, and checks each.
pub(super) async fn check(session: &Session, broken: &[String]) -> Vec<Finding> {
    let is_broken = |name: &str| broken.iter().any(|broken| broken == name);
    session.connect_silently(|name| !is_broken(name)).await;
    let mut findings = Vec::new();
    for member in session.hub.status() {
        let Some(server) = session.configured(&member.name) else {
            continue;
        };
        if !is_broken(&server.name) && member.enabled {
            let of_server = look(server, &member).into_iter();
            findings.extend(of_server.map(|finding| finding.of(&server.name)));
        }
    }
    findings.extend(many_tools(session));
    findings.extend(cut_names(session));
    findings.extend(old_node(session).await);
    findings
}

fn look(server: &ServerEntry, member: &MemberStatus) -> Vec<Finding> {
    if let Some(reason) = failure(member) {
        return vec![failed(server, member.state(), &reason)];
    }
    let mut findings = Vec::new();
    if let Some(time) = member
        .connected_in
        .filter(|time| *time > SLOW_CONNECT_THRESHOLD)
    {
        let what = format!(
            "it took {:.1} s to start; clients that wait for it may give up",
            time.as_secs_f64()
        );
        let fix = match &server.kind {
            Kind::Stdio { command, .. } if matches!(command.expanded(), "npx" | "uvx" | "bunx") => {
                "install it for good and start it directly: the launcher looks for updates each time"
            }
            _ => "let plexus serve keep it running for all clients",
        };
        findings.push(Finding::warning("slow", what).fix(fix));
    }
    if let Some(report) = &member.report {
        findings.extend(reported(server, report, member.connected_in));
    }
    findings
}

/// A server that waits for approval.
pub(super) fn untrusted(server: &ServerEntry) -> Finding {
    let what = "it is defined by the project and is not started until you approve it";
    let fix = Program::new("plexus").args(["trust", &server.name]);
    let finding = Finding::warning("trust", what).of(&server.name);
    finding.fix(fix.to_string())
}

/// A server that is not connected.
fn failed(server: &ServerEntry, state: ServerState, reason: &str) -> Finding {
    if reason == NOT_TRUSTED {
        return untrusted(server);
    }
    let fix = match (&server.kind, state) {
        (_, ServerState::NeedsAuth) => format!(
            "sign in: plexus auth login {}; or give it credentials in \"headers\", as in \
             {{\"Authorization\": \"Bearer ${{TOKEN}}\"}}",
            server.name
        ),
        // See `SecretError`.
        _ if reason.contains("for a secret") => {
            "run that program yourself to see what it prints".to_owned()
        }
        (Kind::Stdio { .. }, _) if reason.contains("did not answer") => {
            "it may still be downloading: try again; or it does not send MCP messages on its standard output"
                .to_owned()
        }
        (Kind::Stdio { .. }, _) => format!(
            "run its command yourself to see its output; plexus mcp get {} prints it",
            server.name
        ),
        _ => {
            "see whether the server runs, and its address is right: plexus mcp get ".to_owned()
                + &server.name
        }
    };
    Finding::error("connect", reason).fix(fix)
}

/// Findings about a connected server, which was connected in the time `took`.
fn reported(server: &ServerEntry, report: &Report, took: Option<Duration>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let violations = &report.violations;
    if violations.not_json + violations.not_a_message > 0 {
        let last = violations
            .last_undecodable
            .as_deref()
            .map(one_line)
            .unwrap_or_default();
        let what =
            format!("it prints lines to its standard output that are not messages: {last:?}");
        let finding = Finding::warning("stdout", what);
        findings.push(finding.fix(
            "its logs belong on standard error; many servers have an option to be quiet, and other \
             clients give up here",
        ));
    }
    let is_asked = server.era.is_none();
    let slow_start = Timeouts::default().probe + PROMPT_HANDSHAKE_TIME;
    let is_slow = took.is_some_and(|took| took > slow_start);
    for quirk in &report.quirks {
        let what = match quirk {
            Quirk::SilentToDiscover if is_slow => continue,
            Quirk::SilentToDiscover => {
                "it does not answer server/discover, which costs seconds at every start"
            }
            Quirk::EndsOnDiscover => "it ends on server/discover, and must be started twice",
            _ => continue,
        };
        if is_asked {
            let fix = format!(
                "write \"era\": \"legacy\" in {}",
                server.source.file.display()
            );
            findings.push(Finding::note("era", what).fix(fix));
        }
    }
    if let Some(era) = server.era
        && era != report.facts.revision.era()
    {
        let what = match era {
            Era::Handshake => "it is configured as \"legacy\", and speaks a modern revision",
            Era::Stateless => "it is configured as \"modern\", and speaks a legacy revision",
        };
        findings.push(Finding::warning("era", what).fix("remove \"era\" to find out"));
    }
    for problem in &report.list_problems {
        findings.push(Finding::warning("lists", problem.to_string()));
    }
    let count = report.quarantined.len();
    if count > 0 {
        let named = report.quarantined.iter().take(MAX_NAMED);
        let named: Vec<_> = named
            .map(|entry| format!("{}: {}", entry.name, entry.reason))
            .collect();
        let more = match count.saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let what = format!("clients cannot be shown {}{more}", named.join("; "));
        findings.push(
            Finding::warning("quarantine", what).fix("report it to the authors of the server"),
        );
    }
    findings
}

/// Warns of more tools than a model handles well.
fn many_tools(session: &Session) -> Option<Finding> {
    let count = session
        .hub
        .catalogue()
        .borrow()
        .list(Section::Tools)
        .entries()
        .len();
    let what = format!("{count} tools are offered at once");
    let finding = if count > TOO_MANY_TOOLS {
        Finding::warning(
            "tools",
            format!("{what}; many models take only {TOO_MANY_TOOLS}"),
        )
    } else if count > MANY_TOOLS {
        Finding::note(
            "tools",
            format!("{what}; some clients take only {MANY_TOOLS}"),
        )
    } else {
        return None;
    };
    Some(finding.fix(
        "have clients search for them: plexus serve --tool-search; or leave some out with \"allow\" \
         or \"deny\" of their servers",
    ))
}

/// Tools whose names had to be shortened.
fn cut_names(session: &Session) -> Option<Finding> {
    let tools = entries(session, Section::Tools);
    let cut: Vec<_> = tools
        .iter()
        .filter(|(entry, origin)| {
            let whole = format!("{}__{}", origin.member, origin.name);
            whole.len() > plexus_mcp_hub::names::MAX_NAME_CHARS && *entry.key != *whole
        })
        .map(|(entry, _)| entry.key.to_string())
        .collect();
    let first = cut.first()?;
    let what = format!(
        "names of {} tools are too long, and cut: {first}",
        cut.len()
    );
    Some(Finding::note("name", what).fix("give their servers shorter names"))
}

/// Warns of an old Node version, if a server needs Node.
async fn old_node(session: &Session) -> Option<Finding> {
    let needs_node = |server: &&ServerEntry| matches!(&server.kind, Kind::Stdio { command, .. } if matches!(command.expanded(), "npx" | "node"));
    let server = session.configured.iter().find(needs_node)?;
    let said = output_of(Program::new("node").arg("--version")).await?;
    let major: u32 = said
        .trim()
        .trim_start_matches('v')
        .split('.')
        .next()?
        .parse()
        .ok()?;
    if major >= MIN_NODE_MAJOR {
        return None;
    }
    let what = format!(
        "Node is {}, and servers need {MIN_NODE_MAJOR} or later",
        one_line(said.trim())
    );
    let finding = Finding::warning("node", what).of(&server.name);
    Some(finding.fix("install a newer Node, from https://nodejs.org"))
}

async fn output_of(program: Program) -> Option<String> {
    let (mut child, input, output) = Child::start(&program).ok()?;
    drop(input);
    let mut said = String::new();
    let mut output = output.take(1024);
    let saying = tokio::time::timeout(SLOW_CONNECT_THRESHOLD, async {
        output.read_to_string(&mut said).await.ok()?;
        Some(child.exited().await)
    });
    saying.await.ok()??;
    Some(said)
}
