//! Arguments of the commands that serve clients: `plexus serve` and `plexus bridge`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use http::{HeaderName, HeaderValue};
use plexus_mcp_agents::{Builtin, Extras};
use plexus_mcp_client::Era;
use plexus_mcp_config::listen_address;
use plexus_mcp_server::http::{HttpOptions, SsePaths};
use plexus_mcp_server::net::{Host, Origin};
use plexus_mcp_server::{Options, ServedEras};

use super::access::AccessArgs;
use super::usage_error;
use super::values::{
    self, Compat, LogFormat, LogLevel, Profile, ServerAffinity, existing_file, parse_header,
    parse_path, parse_seconds, server_era,
};
use crate::auth::SignInCallbacks;
use crate::extras::{self, BuiltinArgs};
use crate::gateway::GatewayOptions;

pub(crate) const DEFAULT_ADDRESS: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4445);

pub(super) const SERVE_EXAMPLES: &str = "\
Examples:
  Serve HTTP, and let Claude Code connect to it:
    plexus serve
    claude mcp add --transport http plexus http://127.0.0.1:4445/mcp

  Let Claude Code start Plexus by itself:
    claude mcp add plexus -- plexus serve --stdio

  Keep the context of a model small, however many servers there are:
    claude mcp add plexus -- plexus serve --stdio --tool-search

  Serve other machines; every client needs a token:
    plexus token add laptop
    plexus serve --http 0.0.0.0:4445

  Let people sign in at an authorization server:
    plexus serve --http 0.0.0.0:4445 --issuer https://auth.example.com \
      --resource https://plexus.example.com/mcp

  Serve clients that know only HTTP+SSE as well, with details in the log:
    plexus serve --sse --log-level debug

The exit code is 0 if the client disconnected or after a graceful shutdown, 1 if it could not be
served, 2 for wrong usage, and 128 and the signal's number if a second signal ended it at once.";

pub(super) const BRIDGE_EXAMPLES: &str = "\
Examples:
  Serve a program over HTTP:
    plexus bridge --http 127.0.0.1:8080 -- npx -y @modelcontextprotocol/server-memory

  Let a client that only starts programs use a remote server:
    plexus bridge --stdio --header 'Authorization: Bearer ${TOKEN}' https://example.com/mcp

  Give a server of the handshake era to clients of 2026-07-28, and the other way round:
    plexus bridge --stdio -- mcp-server-git --repository .

The exit codes are those of plexus serve.";

/// How clients connect.
#[derive(Debug, Clone, Args)]
pub(crate) struct DownstreamArgs {
    /// Serve the client on standard input and output.
    ///
    /// The process ends when its input is closed.
    #[arg(long)]
    pub(crate) stdio: bool,

    /// Serve HTTP on this address; by default on 127.0.0.1:4445, if no transport is given.
    ///
    /// localhost is 127.0.0.1, and port 0 lets the system choose a port. This option may be combined
    /// with --stdio. On an address that other machines can reach, every caller needs a token.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen_address)]
    pub(super) http: Option<SocketAddr>,

    /// Serve HTTP+SSE at /sse as well.
    ///
    /// This is the HTTP transport of 2024-11-05, which some clients still use.
    #[arg(long)]
    pub(super) sse: bool,

    /// Serve the HTTP endpoint at this path instead of /mcp.
    ///
    /// It must begin with a slash.
    #[arg(long, value_name = "PATH", value_parser = parse_path)]
    pub(super) path: Option<String>,

    /// Answer HTTP requests for this host name.
    ///
    /// On a loopback address, requests for this machine are always answered, and others only if
    /// their host is named here. This option may be repeated.
    #[arg(long, value_name = "HOST")]
    pub(super) allow_host: Vec<Host>,

    /// Allow requests of web pages with this origin.
    ///
    /// Pages of this server itself are always allowed; on a loopback address with tokens, so are pages
    /// that this machine serves at other ports. This option may be repeated.
    #[arg(long, value_name = "ORIGIN")]
    pub(super) allow_origin: Vec<Origin>,

    #[command(flatten)]
    pub(crate) access: AccessArgs,

    /// Speak the revisions of this era.
    ///
    /// Every message shows which era it belongs to, so both can be served side by side.
    #[arg(long, value_parser = values::served(), value_name = "ERA", default_value = ServedEras::Both.as_str())]
    pub(crate) era: ServedEras,

    /// Give a client so many seconds to answer a question; 300 by default.
    ///
    /// A call whose question is not answered in this time is cancelled. `answer_timeout_seconds`
    /// under `[limits]` in plexus.toml sets another default.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(super) answer_time: Option<Duration>,

    /// The log level.
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

    /// Write logs as text, or as one JSON object for each line.
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        env = "PLEXUS_LOG_FORMAT",
        hide_env_values = true,
        default_value_t
    )]
    pub(crate) log_format: LogFormat,
}

/// Arguments of `plexus serve`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) downstream: DownstreamArgs,

    /// Serve the MCP servers of this file as well.
    ///
    /// The file has the format of .mcp.json. The tools of a server called git are shown as git__….
    /// Servers of a file named here take precedence over servers of the same name in other files,
    /// and a later file over an earlier one. This option may be repeated.
    #[arg(long, value_name = "FILE", value_parser = existing_file())]
    pub(crate) mcp_config: Vec<PathBuf>,

    #[command(flatten)]
    builtin: BuiltinArgs,

    /// Show three tools to find, describe and call all others, instead of a list of all tools.
    ///
    /// This keeps a model's context small, however many servers there are. For some clients only:
    /// `search = true` under `[clients.NAME]` in plexus.toml.
    #[arg(long)]
    tool_search: bool,

    /// Show the tools and names of this system.
    ///
    /// This is only for clients that were made for one of the systems that preceded Plexus. Each
    /// has all of its tools, whatever --builtin says.
    #[arg(long, value_enum, value_name = "PROFILE", default_value_t)]
    pub(crate) profile: Profile,

    /// Let clients call tools as methods of their own, without a handshake.
    ///
    /// This is the native protocol: a call of health.check is answered with the number of a stream,
    /// whose events follow as they happen. It is spoken on standard input, and over HTTP at /native.
    /// MCP is spoken as well.
    #[arg(long)]
    pub(crate) native: bool,

    /// Add behaviour that no revision of MCP requires, for a validator that does.
    #[arg(long, value_enum, value_name = "WHOSE")]
    pub(crate) compat: Option<Compat>,

    /// Offer bash, for shell commands, over HTTP as well.
    ///
    /// Every client that can reach the server can then run any command on this machine, as you.
    /// Over --stdio alone, --builtin is enough: the client that starts Plexus already runs on this
    /// machine, as you.
    #[arg(long)]
    pub(crate) allow_bash: bool,

    /// Offer claudecode, for agents that work on this machine, and loopback, for permission
    /// requests of agents, over HTTP as well.
    ///
    /// Every client that can reach the server can then run an agent on this machine, as you, and
    /// give it permissions. Over --stdio alone, --builtin is enough.
    #[arg(long)]
    pub(crate) allow_claudecode: bool,

    /// The agent that claudecode runs: Claude Code, or a compatible program.
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
    /// The options of the gateway.
    pub(crate) fn gateway_options(&self, callbacks: Option<SignInCallbacks>) -> GatewayOptions {
        GatewayOptions {
            profile: self.profile,
            files: self.mcp_config.clone(),
            extras: self.extras(),
            choice: self.builtin.choice(),
            also: self.also(),
            tool_search: self.tool_search,
            callbacks,
            endpoint: None,
            ad_hoc: None,
        }
    }

    /// The built-in services that have flags of their own.
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

    /// The built-in services that are not offered to all callers.
    pub(super) fn extras(&self) -> Extras {
        let only_stdio = self.downstream.address().is_none();
        let mut extras = extras::all(Some(&self.claude));
        extras.bash &= self.allow_bash || only_stdio;
        if !self.allow_claudecode && !only_stdio {
            extras.claudecode = None;
        }
        extras
    }
}

/// Arguments of `plexus bridge`.
#[derive(Debug, Args)]
pub(crate) struct BridgeArgs {
    #[command(flatten)]
    pub(crate) downstream: DownstreamArgs,

    /// Send this header with every request to the server.
    ///
    /// ${NAME} is replaced by the environment variable NAME, so that a secret need not be written
    /// here. This option may be repeated.
    #[arg(long, value_name = "NAME: VALUE", value_parser = parse_header)]
    pub(crate) header: Vec<(HeaderName, HeaderValue)>,

    /// The era that the server speaks; detected by default.
    #[arg(long, value_parser = server_era(), value_name = "ERA")]
    pub(crate) server_era: Option<Era>,

    /// Which clients share a session with the server: all, or those of one principal with the same
    /// capabilities.
    ///
    /// This matters for servers of the handshake era, which learn their client's capabilities once.
    /// By default a program is shared, and over HTTP clients that differ have sessions of their
    /// own.
    #[arg(long, value_enum, value_name = "AFFINITY")]
    pub(crate) affinity: Option<ServerAffinity>,

    /// Ask each client for its roots before its first call.
    ///
    /// Some servers of the handshake era request the roots outside of any call, when no client can
    /// be asked.
    #[arg(long)]
    pub(crate) prime_roots: bool,

    /// The server: its URL, or the program to start with its arguments.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "URL | COMMAND"
    )]
    pub(crate) server: Vec<String>,
}

impl DownstreamArgs {
    /// The address for HTTP, if it is served.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.http.or((!self.stdio).then_some(DEFAULT_ADDRESS))
    }

    /// The listeners for sign-in redirects of users whose own MCP clients show the sign-in page.
    /// Only clients on this machine are offered one: the tokens are its user's, and the redirect
    /// leads to this machine.
    pub(crate) fn callbacks(&self) -> Option<SignInCallbacks> {
        let is_near = self
            .address()
            .is_none_or(|address| address.ip().is_loopback());
        is_near.then(SignInCallbacks::default)
    }

    /// The options of the server edge; `options` has those that these arguments do not set.
    pub(crate) fn options(&self, mut options: Options) -> Options {
        options.served = self.era;
        if let Some(answer_time) = self.answer_time {
            options.answer_time = answer_time;
        }
        options
    }

    /// The options of HTTP.
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

    /// Rejects combinations of arguments of `command` that are valid only alone.
    pub(super) fn check(&self, command: &str) -> Result<(), clap::Error> {
        let usage = |message: String| usage_error(&[command], message);
        if self.address().is_none()
            && let Some(flag) = self.first_for_http()
        {
            return Err(usage(format!(
                "{flag} is for HTTP, which --stdio alone does not serve; add --http \
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
