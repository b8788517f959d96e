//! The command line. Help, completions and checks are generated from these types.

mod access;
mod reading;
mod serving;
mod settings;
mod values;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use serving::{BRIDGE_EXAMPLES, SERVE_EXAMPLES};
pub(crate) use serving::{BridgeArgs, DEFAULT_ADDRESS, DownstreamArgs, ServeArgs};
pub(crate) use values::{Compat, LogFormat, Profile, existing_file, parse_header, server_era};

use crate::auth::{self, AuthArgs};
use crate::backup::{self, BackupArgs};
use crate::call::{self, CallArgs};
use crate::config::{self, ConfigArgs};
use crate::doctor::{self, DoctorArgs};
use crate::explain::{self, ExplainArgs};
use crate::healthcheck::{self, HealthcheckArgs};
use crate::import::{self, ImportArgs};
use crate::man::{self, ManArgs};
use crate::mcp::{self, McpArgs};
use crate::memory::{self, MemoryArgs};
use crate::probe::{self, ProbeArgs};
use crate::prompts::{self, PromptArgs, PromptsArgs};
use crate::resources::{self, ReadArgs, ResourcesArgs, SubscribeArgs};
use crate::run::{self, RunArgs};
use crate::servers::{self, ServersArgs};
use crate::setup::{self, SetupArgs};
use crate::status::{self, StatusArgs};
use crate::task::{self, TaskArgs};
use crate::token::{self, TokenArgs};
use crate::tools::{self, ToolsArgs};
use crate::trust::{self, TrustArgs};

const EXAMPLES: &str = "\
Examples:
  plexus serve                        Serve HTTP at http://127.0.0.1:4445/mcp
  plexus serve --stdio                Serve the client that starts this process
  plexus serve --http 127.0.0.1:0     Serve HTTP on a port that the system chooses
  plexus probe mcp-server-git         Examine an MCP server";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  plexus completions bash > ~/.local/share/bash-completion/completions/plexus
  plexus completions zsh > ~/.zfunc/_plexus
  plexus completions fish > ~/.config/fish/completions/plexus.fish";

/// Plexus connects every MCP client to every MCP server: any revision, any transport, one binary.
#[derive(Debug, Parser)]
#[command(
    name = "plexus",
    version,
    override_usage = "plexus <COMMAND>",
    after_help = EXAMPLES,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Option<Command>,

    // The spelling of the S003 document: alone, `serve --stdio --native` (S003-58); with `--mcp`,
    // `serve --stdio` (S003-59).
    #[arg(long, hide = true)]
    stdio: bool,
    #[arg(long, hide = true, requires = "stdio")]
    mcp: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve MCP to clients of every revision.
    ///
    /// It serves all configured MCP servers as one, and built-in tools: health, echo for testing a
    /// client, task for a task list, context for storing and finding texts. With --builtin it also
    /// offers arbor for conversation trees and cone for conversations with language models. To the
    /// client that starts this process it can also offer bash for shell commands, claudecode for
    /// sessions of Claude Code, and loopback for permission requests of agents. Their data is in
    /// the folder that `PLEXUS_DATA_DIR` names, by default the system's data directory.
    ///
    /// The servers are those of `plexus mcp list`. Servers defined by a project are not started
    /// until you approve them with `plexus trust`. Changes of the files take effect at once.
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeArgs),
    /// Serve one MCP server to clients of every revision, over any transport.
    ///
    /// The server is a program that speaks MCP on its standard input and output, or the URL of an
    /// HTTP server. Names are unchanged, and no configuration is needed.
    #[command(after_help = BRIDGE_EXAMPLES)]
    Bridge(BridgeArgs),
    /// List the tools of all configured servers, or of one server.
    ///
    /// The servers are connected for this command, and closed afterwards. A server need not be
    /// configured: see --server.
    #[command(after_help = tools::EXAMPLES)]
    Tools(ToolsArgs),
    /// Call a tool of a server.
    ///
    /// Only the server that has the tool is started, if the tool's name shows which one it is. A
    /// server need not be configured: see --server.
    #[command(after_help = call::EXAMPLES)]
    Call(CallArgs),
    /// List the resources of all configured servers, or of one server.
    #[command(after_help = resources::EXAMPLES)]
    Resources(ResourcesArgs),
    /// Print a resource.
    ///
    /// Text is printed unchanged. Binary content is described on a terminal, and written unchanged
    /// to a pipe or a file.
    #[command(after_help = resources::READ_EXAMPLES)]
    Read(ReadArgs),
    /// Print a line whenever a resource changes, until Ctrl-C.
    #[command(after_help = resources::SUBSCRIBE_EXAMPLES)]
    Subscribe(SubscribeArgs),
    /// List the prompts of all configured servers, or of one server.
    #[command(after_help = prompts::EXAMPLES)]
    Prompts(PromptsArgs),
    /// Print a prompt of a server, with its arguments filled in.
    #[command(after_help = prompts::PROMPT_EXAMPLES)]
    Prompt(PromptArgs),
    /// Have an agent carry out a prompt with the tools of all servers, and print its answer.
    #[command(after_help = run::EXAMPLES)]
    Run(RunArgs),
    /// Show where a tool comes from, whether clients see it, and whether a call is allowed.
    #[command(after_help = explain::EXAMPLES)]
    Explain(ExplainArgs),
    /// Show the status of the servers.
    #[command(after_help = status::EXAMPLES)]
    Status(StatusArgs),
    /// Enable, disable, reconnect or replace servers of running gateways.
    #[command(after_help = servers::EXAMPLES)]
    Servers(ServersArgs),
    /// Find problems of the configuration, the servers and this machine.
    ///
    /// Each finding says how to fix it. All servers are started for this command, and closed
    /// afterwards.
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(DoctorArgs),
    /// Examine an MCP server: its revisions, capabilities, latency, and violations of the protocol.
    ///
    /// The server is a program that speaks MCP on its standard input and output, or the URL of an
    /// HTTP server. It is connected, listed and closed; none of its tools is called.
    #[command(after_help = probe::EXAMPLES)]
    Probe(ProbeArgs),
    /// List, add and remove MCP servers in the configuration files.
    ///
    /// The arguments are like those of `claude mcp`. The files are ./.claude/settings.local.json (scope
    /// local), ./.mcp.json (project) and ~/.config/plexus/servers.json (user); `list`, `get` and
    /// `remove` also use ~/.claude/settings.local.json and ~/.mcp.json. Other files of Claude Code, such as ~/.claude.json, are not
    /// read or written: `plexus import claude-code` copies servers from there.
    #[command(after_help = mcp::EXAMPLES)]
    Mcp(McpArgs),
    /// Show the settings in effect, and check configuration files.
    #[command(after_help = config::EXAMPLES)]
    Config(ConfigArgs),
    /// Sign in to remote servers, and out again.
    #[command(after_help = auth::EXAMPLES)]
    Auth(AuthArgs),
    /// Create and revoke tokens for clients that connect to this machine over HTTP.
    ///
    /// With an authorization server, its tokens are accepted instead: see --issuer in `plexus serve
    /// --help`.
    #[command(after_help = token::EXAMPLES)]
    Token(TokenArgs),
    /// Copy MCP servers from the configuration of other clients.
    ///
    /// The servers found are shown, and added to ~/.config/plexus/servers.json if you agree.
    #[command(after_help = import::EXAMPLES)]
    Import(ImportArgs),
    /// Put Plexus in front of the MCP servers of the agents on this machine.
    ///
    /// It finds the agents, shows what it would do, and if you agree: copies their servers as
    /// `plexus import` does, adds Plexus to each agent, turns the servers off there, and runs `plexus
    /// doctor`. All of this can be undone.
    #[command(after_help = setup::EXAMPLES)]
    Setup(SetupArgs),
    /// Approve the MCP servers of a project, and what its settings files allow.
    ///
    /// Servers defined by a project, in its .mcp.json or .claude/settings.local.json, are not
    /// started until you approve them with this command. Servers that you add with `plexus mcp add`
    /// are approved. Rules in its .claude/settings.json and .claude/settings.local.json that allow
    /// tools hold only once you approve them.
    #[command(after_help = trust::EXAMPLES)]
    Trust(TrustArgs),
    /// Show and change the task list that agents and users share.
    ///
    /// It is the list of the built-in task tools.
    #[command(after_help = task::EXAMPLES)]
    Task(TaskArgs),
    /// Store texts by key, and find them again.
    ///
    /// They are the texts of the built-in context tools.
    #[command(after_help = memory::EXAMPLES)]
    Memory(MemoryArgs),
    /// Back up Plexus's databases, while it runs.
    ///
    /// The copy is a consistent snapshot, even if other processes write.
    #[command(after_help = backup::EXAMPLES)]
    Backup(BackupArgs),
    /// Ask whether a gateway answers over HTTP, for the health check of a container.
    #[command(after_help = healthcheck::EXAMPLES, hide = true)]
    Healthcheck(HealthcheckArgs),
    /// Write manual pages.
    #[command(after_help = man::EXAMPLES)]
    Man(ManArgs),
    /// Print a completion script for a shell.
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell.
        #[arg(value_enum)]
        shell: Shell,
    },
}

/// A usage error of the subcommand at `path`, with the usage of that subcommand.
pub(crate) fn usage_error(path: &[&str], message: impl std::fmt::Display) -> clap::Error {
    let mut command = Cli::command();
    // Names the subcommands by their whole path.
    command.build();
    for name in path {
        if let Some(subcommand) = command.find_subcommand(name) {
            command = subcommand.clone();
        }
    }
    command.error(ErrorKind::ArgumentConflict, message)
}

#[cfg(test)]
mod tests;
