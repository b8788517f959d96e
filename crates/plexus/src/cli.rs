//! The command line. Help, completions and checks all come from these types.

mod access;
mod filled;
mod reading;
mod values;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use http::{HeaderName, HeaderValue};
use plexus_activations::{Builtin, Extras};
use plexus_server::Options;
use plexus_server::http::{HttpOptions, SsePaths};
use plexus_server::net::{Host, Origin};

use access::AccessArgs;
pub(crate) use values::{Compat, Era, LogLevel, Profile, ServerAffinity, ServerEra, parse_header};
use values::{parse_address, parse_path, parse_seconds};

use crate::auth::{self, AuthArgs, Landing};
use crate::backup::{self, BackupArgs};
use crate::call::{self, CallArgs};
use crate::doctor::{self, DoctorArgs};
use crate::explain::{self, ExplainArgs};
use crate::extras::{self, BuiltinArgs};
use crate::gateway::Opening;
use crate::import::{self, ImportArgs};
use crate::man::{self, ManArgs};
use crate::mcp::{self, McpArgs};
use crate::memory::{self, MemoryArgs};
use crate::probe::{self, ProbeArgs};
use crate::prompts::{self, PromptArgs, PromptsArgs};
use crate::resources::{self, ReadArgs, ResourcesArgs, SubscribeArgs};
use crate::servers::{self, ServersArgs};
use crate::status::{self, StatusArgs};
use crate::task::{self, TaskArgs};
use crate::token::{self, TokenArgs};
use crate::tools::{self, ToolsArgs};
use crate::trust::{self, TrustArgs};

pub(crate) const DEFAULT_ADDRESS: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4445);

const EXAMPLES: &str = "\
Examples:
  plexus serve                        Serve HTTP at http://127.0.0.1:4445/mcp
  plexus serve --stdio                Serve the client that starts this process
  plexus serve --http 127.0.0.1:0     Serve HTTP on a port that the system chooses
  plexus probe mcp-server-git         Say what this MCP server is";

const SERVE_EXAMPLES: &str = "\
Examples:
  Serve HTTP, and let Claude Code connect to it:
    plexus serve
    claude mcp add --transport http plexus http://127.0.0.1:4445/mcp

  Let Claude Code start Plexus by itself:
    claude mcp add plexus -- plexus serve --stdio

  Keep the context of a model small, however many servers there are:
    claude mcp add plexus -- plexus serve --stdio --tool-search

  Serve other machines, and let in who has a token:
    plexus token add laptop
    plexus serve --http 0.0.0.0:4445

  Let people sign in at an authorization server:
    plexus serve --http 0.0.0.0:4445 --issuer https://auth.example.com \
      --resource https://plexus.example.com/mcp

  Serve clients that know only HTTP+SSE as well, with details in the log:
    plexus serve --sse --log-level debug

The exit code is 0 if the client left or a signal ended it in order, 1 if it could not be served,
2 for wrong usage, and 128 and the signal's number if a second signal ended it at once.";

const BRIDGE_EXAMPLES: &str = "\
Examples:
  Put a program on the web:
    plexus bridge --http 127.0.0.1:8080 -- npx -y @modelcontextprotocol/server-memory

  Let a client that only starts programs use a remote server:
    plexus bridge --stdio --header 'Authorization: Bearer ${TOKEN}' https://example.com/mcp

  Give a server of the handshake era to clients of 2026-07-28, and the other way round:
    plexus bridge --stdio -- mcp-server-git --repository .

The exit codes are those of plexus serve.";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  plexus completions bash > ~/.local/share/bash-completion/completions/plexus
  plexus completions zsh > ~/.zfunc/_plexus
  plexus completions fish > ~/.config/fish/completions/plexus.fish";

/// Plexus joins every MCP client to every MCP server: any revision, any transport, one binary.
#[derive(Debug, Parser)]
#[command(
    name = "plexus",
    version,
    override_usage = "plexus <COMMAND>",
    after_help = EXAMPLES,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Option<Command>,

    // The founding documents' spelling: alone, `serve --stdio --native` (S003-58); with `--mcp`,
    // `serve --stdio` (S003-59).
    #[arg(long, hide = true)]
    stdio: bool,
    #[arg(long, hide = true, requires = "stdio")]
    mcp: bool,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve MCP to clients of every revision.
    ///
    /// What is served are the MCP servers that are configured, as one, and the tools that are built
    /// in: health, echo for trying out a client, task for what is to be done, context for what is
    /// to be remembered. With --builtin there are arbor for conversations as trees and cone for
    /// conversations with language models as well; and, to the client that starts this process,
    /// bash for shell commands, claudecode for sessions of Claude Code and loopback for permissions
    /// of agents. What they keep is in the folder that `PLEXUS_DATA_DIR` names, or where the system
    /// has its place for data.
    ///
    /// The servers are those of `plexus mcp list`. Those that came with a project are started once
    /// `plexus trust` has allowed it. Changes of the files take effect at once.
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeArgs),
    /// Show one MCP server to clients of every revision, over any transport.
    ///
    /// The server is a program that speaks on its standard input and output, or the address of one
    /// that speaks HTTP. Names stay as they are, and nothing needs to be configured.
    #[command(after_help = BRIDGE_EXAMPLES)]
    Bridge(BridgeArgs),
    /// List the tools of all configured servers.
    ///
    /// The servers are connected for it, and left again.
    #[command(after_help = tools::EXAMPLES)]
    Tools(ToolsArgs),
    /// Call a tool of a configured server.
    ///
    /// Only the server that has the tool is started, if its name tells which one that is.
    #[command(after_help = call::EXAMPLES)]
    Call(CallArgs),
    /// List the resources of all configured servers.
    #[command(after_help = resources::EXAMPLES)]
    Resources(ResourcesArgs),
    /// Print a resource.
    ///
    /// Text is printed as it is. What is no text is described at a terminal, and goes into a pipe
    /// or a file as it is.
    #[command(after_help = resources::READ_EXAMPLES)]
    Read(ReadArgs),
    /// Print a line whenever a resource changes, until Ctrl-C.
    #[command(after_help = resources::SUBSCRIBE_EXAMPLES)]
    Subscribe(SubscribeArgs),
    /// List the prompts of all configured servers.
    #[command(after_help = prompts::EXAMPLES)]
    Prompts(PromptsArgs),
    /// Print a prompt of a server, with its arguments filled in.
    #[command(after_help = prompts::PROMPT_EXAMPLES)]
    Prompt(PromptArgs),
    /// Say where a tool comes from, whether clients see it and why not, and what becomes of a call.
    #[command(after_help = explain::EXAMPLES)]
    Explain(ExplainArgs),
    /// Show how the servers are doing.
    #[command(after_help = status::EXAMPLES)]
    Status(StatusArgs),
    /// Turn servers on and off, connect them anew or replace them, while gateways run.
    #[command(after_help = servers::EXAMPLES)]
    Servers(ServersArgs),
    /// Find out what is wrong with the configuration, the servers and this machine.
    ///
    /// Each finding says how to put it right. All servers are started for it, and left again.
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(DoctorArgs),
    /// Say what an MCP server is: what it speaks and offers, how fast, and what is wrong with it.
    ///
    /// The server is a program that speaks on its standard input and output, or the address of one
    /// that speaks HTTP. It is connected, listed and left again; none of its tools is called.
    #[command(after_help = probe::EXAMPLES)]
    Probe(ProbeArgs),
    /// See and change which MCP servers are configured.
    ///
    /// The commands and the files are those of `claude mcp`.
    #[command(after_help = mcp::EXAMPLES)]
    Mcp(McpArgs),
    /// Sign in to servers on the web, and out again.
    #[command(after_help = auth::EXAMPLES)]
    Auth(AuthArgs),
    /// Make tokens for clients that reach this machine over HTTP, and take them back.
    ///
    /// Where there is an authorization server, its tokens are taken instead: see `plexus serve
    /// --help`, --issuer.
    #[command(after_help = token::EXAMPLES)]
    Token(TokenArgs),
    /// Take over the MCP servers that other clients know.
    ///
    /// What is found is shown, and added to ~/.mcp.json if that is wanted.
    #[command(after_help = import::EXAMPLES)]
    Import(ImportArgs),
    /// Allow the MCP servers that came with a project to be started.
    ///
    /// What stands in a project's .mcp.json and .claude/settings.local.json was written by somebody
    /// else, perhaps; it is started only after you have seen it and agreed. What you add by
    /// `plexus mcp add` is allowed.
    #[command(after_help = trust::EXAMPLES)]
    Trust(TrustArgs),
    /// See and change the list of tasks that agents and people share.
    ///
    /// It is the list that the built-in tools work on.
    #[command(after_help = task::EXAMPLES)]
    Task(TaskArgs),
    /// Remember texts by name, and find them again.
    ///
    /// They are what the built-in tools of the context graph remember.
    #[command(after_help = memory::EXAMPLES)]
    Memory(MemoryArgs),
    /// Copy what Plexus remembers, while it runs.
    ///
    /// The copy is complete and of one moment, whoever writes meanwhile.
    #[command(after_help = backup::EXAMPLES)]
    Backup(BackupArgs),
    /// Write manual pages.
    #[command(after_help = man::EXAMPLES)]
    Man(ManArgs),
    /// Print a script that completes this command line in a shell.
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell to write it for.
        #[arg(value_enum)]
        shell: Shell,
    },
}

/// Who is served, and how.
#[derive(Debug, Clone, Args)]
pub(crate) struct DownstreamArgs {
    /// Serve the client at the other end of standard input and output.
    ///
    /// The process ends when its input does.
    #[arg(long)]
    pub(crate) stdio: bool,

    /// Serve HTTP on this address; if no transport is named, on 127.0.0.1:4445.
    ///
    /// Port 0 lets the system choose one. This may be combined with --stdio. On an address that
    /// other machines can reach, every caller is asked for a token.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_address)]
    http: Option<SocketAddr>,

    /// Serve HTTP+SSE at /sse as well.
    ///
    /// This is the HTTP of 2024-11-05, which some clients still use.
    #[arg(long)]
    sse: bool,

    /// Put the HTTP endpoint at this path instead of /mcp.
    ///
    /// It must begin with a slash.
    #[arg(long, value_name = "PATH", value_parser = parse_path)]
    path: Option<String>,

    /// Answer HTTP requests for this host.
    ///
    /// On a loopback address, requests for this machine are answered anyway, and others only if
    /// their host is named here. This may be repeated.
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<Host>,

    /// Let web pages of this origin call the server.
    ///
    /// On a loopback address, pages that this machine serves may call anyway. This may be
    /// repeated.
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<Origin>,

    #[command(flatten)]
    pub(crate) access: AccessArgs,

    /// Speak the revisions of this era.
    ///
    /// Every message shows which era it belongs to, so both can be served side by side.
    #[arg(long, value_enum, value_name = "ERA", default_value_t)]
    pub(crate) era: Era,

    /// Give a client so many seconds to answer a question; 300 if it is not said.
    ///
    /// A call that asked and got no answer in this time is cancelled.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    answer_time: Option<Duration>,

    /// Log this much.
    ///
    /// Logs go to standard error, never to standard output.
    #[arg(
        long,
        value_enum,
        value_name = "LEVEL",
        env = "PLEXUS_LOG",
        hide_env_values = true,
        default_value_t
    )]
    pub(crate) log_level: LogLevel,
}

/// What is served.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) downstream: DownstreamArgs,

    /// Serve the MCP servers of this file as well.
    ///
    /// The file is written as .mcp.json is. The tools of a server called git are shown as git__…;
    /// of two servers with one name, the one in the later file counts, and before all others the
    /// ones of files that are named here. This may be repeated.
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp_config: Vec<PathBuf>,

    #[command(flatten)]
    builtin: BuiltinArgs,

    /// Show three tools with which clients find, describe and call all others, instead of a list of
    /// them all.
    ///
    /// This keeps the context of a model small, however many servers there are. For some clients
    /// only: `search = true` under `[clients.NAME]` in plexus.toml.
    #[arg(long)]
    tool_search: bool,

    /// Show what this system shows, as it shows it.
    ///
    /// This matters only to clients that were made for one of the systems that Plexus came from.
    /// Each has all that it always had, whatever --builtin says.
    #[arg(long, value_enum, value_name = "PROFILE", default_value_t)]
    pub(crate) profile: Profile,

    /// Let the client on standard input call tools as methods of their own, without a handshake.
    ///
    /// This is the native protocol: a call of health.check is answered with the number of a
    /// stream, whose events follow as they happen. MCP is spoken as well.
    #[arg(long, requires = "stdio")]
    pub(crate) native: bool,

    /// Meet demands that no revision of MCP makes, for a validator that does.
    #[arg(long, value_enum, value_name = "WHOSE")]
    pub(crate) compat: Option<Compat>,

    /// Offer bash, for shell commands, over HTTP, too.
    ///
    /// Whoever can reach the server can then run any command on this machine, as you. Over --stdio
    /// alone it is enough to choose it: the client in front runs on this machine, as you.
    #[arg(long)]
    pub(crate) allow_bash: bool,

    /// Offer claudecode, for agents that work on this machine, and loopback, for permissions that
    /// agents ask for, over HTTP, too.
    ///
    /// Whoever can reach the server can then have an agent work on this machine, as you, and give
    /// it permissions. Over --stdio alone it is enough to choose them.
    #[arg(long)]
    pub(crate) allow_claudecode: bool,

    /// The agent that claudecode has work: Claude Code, or a program that speaks as it does.
    #[arg(
        long,
        value_name = "PROGRAM",
        env = extras::AGENT_VARIABLE,
        hide_env_values = true,
        default_value = extras::AGENT
    )]
    claude: String,
}

impl ServeArgs {
    /// What is served.
    pub(crate) fn opening(&self, landing: Option<Landing>) -> Opening {
        Opening {
            profile: self.profile,
            files: self.mcp_config.clone(),
            extras: self.extras(),
            choice: self.builtin.choice(),
            also: self.also(),
            tool_search: self.tool_search,
            landing,
        }
    }

    /// Which built-in services are asked for by flags of their own.
    fn also(&self) -> Vec<Builtin> {
        let bash = self.allow_bash.then_some([Builtin::Bash].as_slice());
        let agents = [Builtin::Loopback, Builtin::Claudecode];
        let agents = self.allow_claudecode.then_some(agents.as_slice());
        [bash, agents]
            .into_iter()
            .flatten()
            .flatten()
            .copied()
            .collect()
    }

    /// Which built-in tools are offered that are not offered to everybody.
    fn extras(&self) -> Extras {
        let only_stdio = self.downstream.address().is_none();
        let mut extras = extras::all(Some(&self.claude));
        extras.bash &= self.allow_bash || only_stdio;
        if !self.allow_claudecode && !only_stdio {
            extras.claudecode = None;
        }
        extras
    }
}

/// Which server is shown.
#[derive(Debug, Args)]
pub(crate) struct BridgeArgs {
    #[command(flatten)]
    pub(crate) downstream: DownstreamArgs,

    /// Send this header with every request to the server.
    ///
    /// ${NAME} stands for what the environment variable NAME holds, so that a secret need not be
    /// written here. This may be repeated.
    #[arg(long, value_name = "NAME: VALUE", value_parser = parse_header)]
    pub(crate) header: Vec<(HeaderName, HeaderValue)>,

    /// The era that the server speaks; found out if it is not said.
    #[arg(long, value_enum, value_name = "ERA")]
    pub(crate) server_era: Option<ServerEra>,

    /// Who shares a session with the server: all clients, or those of one principal that can do the
    /// same.
    ///
    /// This matters to servers of the handshake era, which are told once what their client can do. A
    /// program is shared unless this says otherwise; over HTTP, clients that differ have sessions of
    /// their own.
    #[arg(long, value_enum, value_name = "AFFINITY")]
    pub(crate) affinity: Option<ServerAffinity>,

    /// Ask each client for its roots before its first call.
    ///
    /// Some servers of the handshake era want to know them outside of any call, when nobody can be
    /// asked.
    #[arg(long)]
    pub(crate) prime_roots: bool,

    /// The server: its address, or the program to start with its arguments.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "URL | COMMAND"
    )]
    pub(crate) server: Vec<String>,
}

impl DownstreamArgs {
    /// Where HTTP is served, if it is.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.http.or((!self.stdio).then_some(DEFAULT_ADDRESS))
    }

    /// Where users come back to whose clients show them the page to sign in on. Only those who use
    /// this machine are shown one: the tokens are its user's, and the page leads back to it.
    pub(crate) fn landing(&self) -> Option<Landing> {
        let is_near = self
            .address()
            .is_none_or(|address| address.ip().is_loopback());
        is_near.then(Landing::default)
    }

    /// How every client is served; `options` says what is not up to these arguments.
    pub(crate) fn options(&self, mut options: Options) -> Options {
        options.served = self.era.into();
        if let Some(answer_time) = self.answer_time {
            options.answer_time = answer_time;
        }
        options
    }

    /// How HTTP is served.
    pub(crate) fn http_options(&self) -> HttpOptions {
        let mut options = HttpOptions::default();
        if let Some(path) = &self.path {
            options.path.clone_from(path);
        }
        options.sse = self.sse.then(SsePaths::default);
        options.allowed_hosts.clone_from(&self.allow_host);
        options.allowed_origins.clone_from(&self.allow_origin);
        options
    }

    /// Refuses what each argument allows but all together do not.
    fn check(&self) -> Result<(), clap::Error> {
        let usage = |message| Cli::command().error(ErrorKind::ArgumentConflict, message);
        if self.address().is_none()
            && let Some(flag) = self.first_for_http()
        {
            return Err(usage(format!(
                "{flag} is about HTTP, which --stdio alone does not serve; add --http \
                 {DEFAULT_ADDRESS} to serve both"
            )));
        }
        let HttpOptions { path, sse, .. } = self.http_options();
        let taken = sse.is_some_and(|sse| [sse.stream, sse.messages].contains(&path));
        if taken {
            return Err(usage(format!("--sse needs the path {path} for itself")));
        }
        Ok(())
    }

    fn first_for_http(&self) -> Option<&'static str> {
        let given = [
            ("--sse", self.sse),
            ("--path", self.path.is_some()),
            ("--allow-host", !self.allow_host.is_empty()),
            ("--allow-origin", !self.allow_origin.is_empty()),
        ];
        given
            .into_iter()
            .chain(self.access.given())
            .find_map(|(flag, given)| given.then_some(flag))
    }
}

#[cfg(test)]
mod tests;
