//! `plexus run`: has an agent carry out one prompt, prints its answer, and ends.

mod choose_model;
mod handler;
mod report;

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Read};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;
use clap::builder::PossibleValuesParser;
use plexus_mcp_client::ServerState;
use plexus_mcp_config::{self as config, Action, AgentToolRule, Rule};
use plexus_mcp_core::Implementation;
use plexus_mcp_host::agent::{Agent, AgentParts, End, PromptOutcome};
use plexus_mcp_host::permission::{Mode, Permissions};
use plexus_mcp_host::servers::Servers;
use plexus_mcp_host::sub_agent::AgentTool;
use plexus_mcp_host::transcript::{Transcript, Transcripts};
use plexus_mcp_host::{Registry, host_tools, system_prompt};
use plexus_mcp_hub::policy::Policy;
use tokio_util::sync::CancellationToken;

use crate::output::{Misuse, say};
use crate::session::{self, ConfigArgs, Session};
use crate::{VERSION, data};
use choose_model::choose;
use handler::NoUser;
use report::{Format, Reporter};

pub(crate) const EXAMPLES: &str = "\
Examples:
  plexus run -p 'Which branches of this repository are merged?'
  git diff | plexus run -p 'Review this change' --allowed-tools Read,Grep
  plexus run -p 'Fix the failing test' --permission-mode acceptEdits --allowed-tools Bash
  plexus run -p 'And now the next one' --resume 0198 --output-format json

The agent has the tools of all configured servers, named mcp__SERVER__TOOL, and Read, Write, Edit, Glob,
Grep, Bash and Agent. The user is not asked during the run: a call that needs the user's permission is
refused, and standard error says which option or rule allows it.

Standard output has the answer and nothing else.

The exit code is 0 if the model gave its answer, 1 if it could not, 2 for wrong usage, 4 if --max-turns
was reached first, and 130 or 143 if a signal ended the run.";

/// The exit code of a run that reached its limit of turns.
const MAX_TURNS_EXIT_CODE: u8 = 4;
/// The longest prompt that is read from standard input, in bytes.
const MAX_INPUT_BYTES: u64 = 16 * 1024 * 1024;
/// How long standard input may be silent if there is a prompt, in seconds.
const INPUT_TIMEOUT_SECONDS: i64 = 3;
/// The place of rules that are options.
const COMMAND_LINE: &str = "the command line";
/// The beginning of the system prompt.
const SYSTEM: &str = "\
You are an agent that works in a directory of the user's machine with the tools that you are given. Use \
tools instead of guessing. Change only what the task needs. When you are done, answer in a few sentences.";

/// Arguments of `plexus run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The prompt. What is on standard input follows it, if that is no terminal.
    #[arg(long, short = 'p', value_name = "TEXT")]
    prompt: Option<String>,

    /// The form of the answer on standard output.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    output_format: Format,

    /// How often the model may be asked.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    max_turns: Option<u32>,

    /// The model: anthropic/NAME or openai/NAME.
    ///
    /// Without it, a default model of the provider whose key is in the environment.
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,

    /// Tools that may be called without asking, separated by commas: globs over their names, or such
    /// as 'Bash(git log:*)'.
    #[arg(
        long,
        value_name = "TOOLS",
        value_delimiter = ',',
        visible_alias = "allowedTools"
    )]
    allowed_tools: Vec<String>,

    /// Tools that must not be called, separated by commas: globs over their names, or such as
    /// 'Read(./.env)'.
    #[arg(
        long,
        value_name = "TOOLS",
        value_delimiter = ',',
        visible_alias = "disallowedTools"
    )]
    disallowed_tools: Vec<String>,

    /// What happens to calls that no rule matches.
    #[arg(long, value_name = "MODE", default_value = "default", value_parser = PossibleValuesParser::new(Mode::names()))]
    permission_mode: String,

    /// Make all calls that no rule denies, without asking.
    #[arg(long, conflicts_with = "permission_mode")]
    dangerously_skip_permissions: bool,

    /// The system prompt, instead of the usual one. The section about servers is added to it.
    #[arg(long, value_name = "TEXT")]
    system_prompt: Option<String>,

    /// Go on with a conversation, by the beginning of its id, or with the last one in this directory.
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "")]
    resume: Option<String>,

    #[command(flatten)]
    config: ConfigArgs,
}

/// Runs `plexus run`.
pub(crate) fn run(arguments: &RunArgs) -> anyhow::Result<ExitCode> {
    let prompt = arguments.whole_prompt()?;
    let mode = arguments.mode()?;
    if mode == Mode::BypassPermissions && is_root() {
        say("Warning: the agent may do everything on this machine, because it runs as root");
    }
    session::run_host(&arguments.config, async |session| {
        let reporter = Arc::new(Reporter::new(arguments.output_format));
        let mut agent = agent(session, arguments, mode, &reporter).await?;
        reporter.begins(&agent, session)?;
        let id = agent.transcript().id().to_owned();
        let interrupted = ResumeHint(Some(id));
        let ended = agent.prompt(&prompt, &CancellationToken::new()).await;
        interrupted.dismiss();
        match ended {
            Ok(outcome) => {
                reporter.ends(agent.transcript().id(), &outcome)?;
                Ok(exit_code(&outcome))
            }
            Err(error) => {
                reporter.fails(agent.transcript().id(), &error)?;
                Err(error.into())
            }
        }
    })
}

/// Says how to go on, if it is dropped because a signal ended the run.
struct ResumeHint(Option<String>);

impl ResumeHint {
    fn dismiss(mut self) {
        self.0 = None;
    }
}

impl Drop for ResumeHint {
    fn drop(&mut self) {
        if let Some(id) = self.0.take() {
            say(format!(
                "interrupted; to go on: plexus run --resume {id} -p TEXT"
            ));
        }
    }
}

fn exit_code(outcome: &PromptOutcome) -> ExitCode {
    match outcome.end {
        End::Answered => ExitCode::SUCCESS,
        End::CutOff => {
            say("the answer is cut off, because it reached its limit of tokens");
            ExitCode::FAILURE
        }
        End::MaxTurns => {
            say("the limit of --max-turns was reached before the model was done");
            ExitCode::from(MAX_TURNS_EXIT_CODE)
        }
        End::Interrupted => ExitCode::from(130),
    }
}

impl RunArgs {
    fn whole_prompt(&self) -> anyhow::Result<String> {
        let mut parts: Vec<String> = self.prompt.clone().into_iter().collect();
        if !io::stdin().is_terminal() && (self.prompt.is_none() || has_input()) {
            let mut read = String::new();
            let input = io::stdin().lock();
            input
                .take(MAX_INPUT_BYTES + 1)
                .read_to_string(&mut read)
                .context("cannot read the prompt from standard input")?;
            if u64::try_from(read.len()).unwrap_or(u64::MAX) > MAX_INPUT_BYTES {
                let limit = MAX_INPUT_BYTES / 1024 / 1024;
                bail!(Misuse(format!("the prompt is longer than {limit} MiB")));
            }
            parts.extend(Some(read).filter(|text| !text.trim().is_empty()));
        }
        if parts.iter().all(|part| part.trim().is_empty()) {
            let tip = "there is no prompt\n\n  tip: give one with -p TEXT, or on standard input";
            bail!(Misuse(tip.to_owned()));
        }
        Ok(parts.join("\n\n"))
    }

    fn mode(&self) -> anyhow::Result<Mode> {
        if self.dangerously_skip_permissions {
            return Ok(Mode::BypassPermissions);
        }
        Ok(self.permission_mode.parse()?)
    }

    /// The tools of the command line, each with whether it is allowed or denied.
    fn named_tools(&self) -> impl Iterator<Item = (&str, Action)> {
        let denied = self.disallowed_tools.iter();
        let denied = denied.map(|tool| (tool.trim(), Action::Deny));
        let allowed = self.allowed_tools.iter();
        denied.chain(allowed.map(|tool| (tool.trim(), Action::Allow)))
    }

    /// The rules of the command line come first.
    fn rules(&self, mut policy: config::Policy) -> config::Policy {
        let named = self.named_tools().filter(|(tool, _)| !tool.contains('('));
        let named = named.map(|(tool, action)| Rule::new(tool, action, COMMAND_LINE));
        policy.rules.splice(0..0, named);
        policy
    }

    /// The same for rules such as `Bash(git log:*)`.
    fn agent_rules(&self, policy: &config::Policy) -> Vec<AgentToolRule> {
        let named = self.named_tools().filter_map(|(tool, action)| {
            let (tool, rest) = tool.split_once('(')?;
            Some(AgentToolRule {
                tool: tool.to_owned(),
                specifier: Some(rest.strip_suffix(')').unwrap_or(rest).to_owned()),
                action,
                file: COMMAND_LINE.into(),
                is_of_project: false,
            })
        });
        named.chain(policy.agent_tools.iter().cloned()).collect()
    }

    async fn transcript(
        &self,
        transcripts: &Transcripts,
        project: &str,
    ) -> anyhow::Result<Transcript> {
        match self.resume.as_deref() {
            None => Ok(transcripts.begin(project).await?),
            Some("") => {
                let last = transcripts.list(Some(project)).await?;
                let last = last
                    .first()
                    .context("there is no conversation in this directory yet")?;
                Ok(transcripts.find(&last.id).await?)
            }
            Some(id) => Ok(transcripts.find(id).await?),
        }
    }
}

/// The agent with its tools. The order of the steps is that of S001-39: the files are loaded, then
/// the host's tools are registered, the servers started and their tools registered, then the
/// management tools, and `Agent` last.
async fn agent(
    session: &Session,
    arguments: &RunArgs,
    mode: Mode,
    reporter: &Arc<Reporter>,
) -> anyhow::Result<Agent> {
    let models = data::models();
    let model = choose(arguments.model.as_deref(), &models)?;
    let project = session.gateway.project().to_owned();
    let transcripts = Transcripts::in_directory(&data::directory()?);
    let transcript = arguments
        .transcript(&transcripts, &project.display().to_string())
        .await?;

    let policy = session.gateway.policy();
    let permissions = Permissions::new(&arguments.rules(policy.clone()), mode, None);
    let home = session.gateway.home();
    permissions.set_agent_rules(&arguments.agent_rules(&policy), &project, home);
    warn_of_ignored_rules(&policy);
    let registry = Arc::new(Registry::new(Arc::new(permissions)));
    host_tools::register(&registry, &project, BTreeMap::new())?;
    leave_questions_to_the_host(session, policy);
    let identity = Implementation::new("plexus", VERSION);
    let trusted = session.configured.iter().filter(|server| server.trusted);
    let trusted = trusted.map(|server| server.name.clone());
    let servers = Servers::new(session.hub.clone(), &registry, NoUser, &identity, trusted);
    let servers = Arc::new(servers);
    servers.settle().await;
    servers.register_tools();
    warn_of_servers(session, &servers);
    servers.register_management_tools()?;

    let prompted = Arc::clone(&servers);
    let beginning = arguments.system_prompt.clone();
    let system = move || {
        let beginning = beginning.as_deref().unwrap_or(SYSTEM);
        let section = system_prompt::section(&prompted.for_prompt());
        format!("{beginning}\n\n{section}").trim_end().to_owned()
    };
    let client = Arc::new(models.clone());
    let mut parts = AgentParts::new(client, model, &registry, system, reporter.observer());
    parts.max_turns = arguments.max_turns;
    let news = Arc::clone(&servers);
    parts.notices = Arc::new(move || news.take_news());
    // Tools of servers that are connected later appear in the next request.
    let (shown, current) = (Arc::clone(&registry), Arc::clone(&servers));
    parts.definitions = Arc::new(move || {
        current.register_tools();
        shown.definitions()
    });
    let choose =
        Arc::new(move |name: &str| choose(Some(name), &models).map_err(|error| error.to_string()));
    let mut for_children = parts.clone();
    for_children.max_turns = None;
    registry.register(Arc::new(AgentTool::new(&for_children, 1, choose)?));
    Ok(Agent::new(parts, transcript).await?)
}

/// What a project's file allows the agent's own tools does not count: its author could have written
/// it.
fn warn_of_ignored_rules(policy: &config::Policy) {
    let rules = policy.agent_tools.iter();
    let ignored = rules.filter(|rule| rule.is_of_project && rule.action == Action::Allow);
    let mut files: Vec<_> = ignored.map(|rule| rule.file.as_path()).collect();
    files.dedup();
    for file in files {
        say(format!(
            "Warning: what {} allows the tools of the agent does not count, because it is a file of \
             the project; allow them with --allowed-tools, or in ~/.claude/settings.json",
            file.display()
        ));
    }
}

/// The host asks before it calls, so the hub must not ask again. Rules that deny still hold there,
/// for polls.
fn leave_questions_to_the_host(session: &Session, mut policy: config::Policy) {
    for rule in &mut policy.rules {
        if rule.action == Action::Ask {
            rule.action = Action::Allow;
        }
    }
    policy.mode = config::Mode::DangerouslySkipPermissions;
    session.hub.set_policy(Policy::behind_client(&policy));
}

/// Names the servers whose tools are missing, and why (S001-61, S001-62).
fn warn_of_servers(session: &Session, servers: &Servers) {
    for (name, reason) in servers.unavailable() {
        say(format!("Warning: MCP startup error: {name}: {reason}"));
    }
    let skipped = session.hub.status().into_iter();
    let skipped = skipped.filter(|member| member.state() == ServerState::Pending);
    for member in skipped {
        match member.reason() {
            Some(reason) => say(format!(
                "Warning: the server {} is skipped: {reason}",
                member.name
            )),
            None if member.tools.entries().is_empty() => say(format!(
                "Warning: MCP startup error: {}: it has not answered yet; its tools are offered when it \
                 has",
                member.name
            )),
            None => {}
        }
    }
}

/// Whether something is on standard input, or it ended. Programs that start this one may leave a pipe
/// open to which they write nothing; with a prompt, that is not waited for.
#[cfg(unix)]
fn has_input() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdin = io::stdin();
    let mut watched = [PollFd::new(&stdin, PollFlags::IN)];
    let limit = Timespec {
        tv_sec: INPUT_TIMEOUT_SECONDS,
        tv_nsec: 0,
    };
    let ready = poll(&mut watched, Some(&limit)).is_ok_and(|ready| ready > 0);
    if !ready {
        say(format!(
            "nothing came on standard input within {INPUT_TIMEOUT_SECONDS} s; going on without it \
             (close it with < /dev/null)"
        ));
    }
    ready
}

#[cfg(not(unix))]
fn has_input() -> bool {
    true
}

#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}
