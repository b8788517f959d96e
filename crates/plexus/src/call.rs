//! `plexus call`: calls one tool.

use std::io::{self, Read};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use plexus_mcp_core::{CallToolResult, Entry, LogLevel, Raw, Section};
use plexus_mcp_hub::Origin;
use plexus_mcp_hub::names::may_own;
use plexus_mcp_protocol::method;
use plexus_mcp_wire::Object;

use crate::ad_hoc::ServerChoiceArgs;
use crate::conversation::{CallEnd, Conversation};
use crate::output::{ConsentNeeded, Misuse, print, print_data};
use crate::session::{self, Session};
use crate::suggest::{alike, did_you_mean};
use crate::terminal_prompts::TerminalPrompts;
use crate::tools::entries;
use crate::{announce, arguments, content};

pub(crate) const EXAMPLES: &str = "\
Examples:
  plexus call echo_once message=hello
  plexus call git__git_log repo_path=. max_count=3
  plexus call files__edit path=a.txt 'edits:=[{\"line\": 1, \"text\": \"new\"}]'
  plexus call shop__order '{\"item\": \"tea\"}' --json | jq .structuredContent
  jq .order cart.json | plexus call shop__order --json-args -
  plexus call charts__draw --save pictures < /dev/null
  plexus call --server 'npx -y @modelcontextprotocol/server-memory' read_graph

Values are typed by the tool's schema: count=3 is a number where the tool wants one. A key that is
given several times makes an array, and key:=JSON is taken as it is. A JSON object alone stands for
all arguments. Questions that a tool asks during the call are asked at the terminal; without one they
are declined. Ctrl-C cancels the call.

To type a call is to agree to it: you are asked only if a rule in plexus.toml says \"ask\".

The exit code is 0 if the tool succeeded, 1 if it failed or could not be called, 2 for wrong usage,
wrong arguments of the tool included, 3 if a rule says \"ask\" and there is neither a terminal nor
--yes, and 130 if the call was cancelled.";

/// The longest arguments that are read from standard input.
const MAX_INPUT_BYTES: u64 = 16 * 1024 * 1024;

/// Arguments of `plexus call`.
#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    #[command(flatten)]
    servers: ServerChoiceArgs,

    /// The tool, by any of its names: as listed, or as server.tool.
    tool: String,

    /// An argument of the tool, or all of them as one JSON object.
    #[arg(
        value_name = "KEY=VALUE | KEY:=JSON | OBJECT",
        conflicts_with = "json_args"
    )]
    arguments: Vec<String>,

    /// The arguments as one JSON object; - reads it from standard input.
    #[arg(long, value_name = "JSON")]
    json_args: Option<String>,

    /// Agree to the call if a rule of the policy says that you must be asked.
    ///
    /// Rules that deny calls hold nevertheless, and questions of the tool are not answered.
    #[arg(long, short)]
    yes: bool,

    /// Print the result as JSON, as the server gave it.
    #[arg(long)]
    json: bool,

    /// Save images, audio and other binary content to this folder.
    #[arg(long, value_name = "FOLDER")]
    save: Option<PathBuf>,

    /// Show log messages of the server from this level on.
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = levels())]
    log_level: LogLevel,
}

/// Runs `plexus call`.
pub(crate) fn run(arguments: &CallArgs) -> anyhow::Result<ExitCode> {
    let given = arguments.given()?;
    session::run_chosen(&arguments.servers, async |session| {
        let Some(origin) = session.find(Section::Tools, &arguments.tool).await? else {
            bail!(unknown(session, &arguments.tool));
        };
        let tool =
            entry(session, &origin).context("the tool was removed by its server meanwhile")?;
        let typed = match &given {
            Some(given) => given.clone(),
            None => arguments::typed(
                &arguments.arguments,
                &arguments::schema_of(&tool.definition),
            )
            .map_err(|wrong| {
                Misuse(format!(
                    "{wrong}\n\n  tip: 'plexus explain {}' says what it takes",
                    tool.key
                ))
            })?,
        };
        if let Some(reason) = session.hub.question_about(&origin, &typed, &session.peer) {
            if arguments.yes {
                session.agree_to_all();
            } else if !TerminalPrompts::can_ask() {
                bail!(ConsentNeeded(format!(
                    "{} was not called: you must be asked because of {reason}, and there is no \
                     terminal to ask at\n\n  tip: --yes agrees to this call",
                    tool.key
                )));
            }
        }
        let mut params = Object::new();
        params.set("name", Raw::string(&tool.key));
        params.set("arguments", typed);
        let conversation = Conversation::about(&format!("calling {}", tool.key), arguments.json);
        let level = Some(arguments.log_level);
        let ended = conversation
            .call(session, method::TOOLS_CALL, params, level)
            .await;
        show(ended, arguments)
    })
}

impl CallArgs {
    /// The arguments of `--json-args`.
    fn given(&self) -> anyhow::Result<Option<Raw>> {
        let Some(text) = &self.json_args else {
            return Ok(None);
        };
        let text = if text == "-" {
            let mut read = String::new();
            let mut input = io::stdin().lock().take(MAX_INPUT_BYTES);
            input
                .read_to_string(&mut read)
                .context("cannot read the arguments")?;
            read
        } else {
            text.clone()
        };
        let given = arguments::object(&text);
        let given = given.map_err(|wrong| Misuse(format!("--json-args {wrong}")))?;
        Ok(Some(given))
    }
}

/// The catalogue entry of the tool.
pub(crate) fn entry(session: &Session, origin: &Origin) -> Option<Entry> {
    let mut tools = entries(session, Section::Tools).into_iter();
    tools.find_map(|(entry, of)| (of == *origin).then_some(entry))
}

/// The error for an unknown tool, with suggestions.
pub(crate) fn unknown(session: &Session, wrong: &str) -> String {
    let members = session.hub.status();
    let selects = |name: &str| match &session.selected {
        Some(_) => session.selects(name),
        None => may_own(name, wrong),
    };
    let mut named = members.iter().filter(|member| selects(&member.name));
    let unlisted =
        named.find_map(|member| Some((&member.name, member.list_problem(Section::Tools)?)));
    if let Some((server, problem)) = unlisted {
        return format!(
            "the tool {wrong:?} is unknown: the server {server:?} is connected, but {problem}"
        );
    }
    let mut named = members.iter().filter(|member| selects(&member.name));
    if let Some(server) = named.find(|member| session::failure(member).is_some()) {
        return format!(
            "the tool {wrong:?} is unknown, because the server {:?} is not connected",
            &*server.name
        );
    }
    let mut tools = entries(session, Section::Tools);
    tools.retain(|(_, origin)| session.selects(&origin.member));
    let names = tools.iter().map(|(entry, _)| &*entry.key);
    let hint = did_you_mean(&alike(wrong, names));
    if let (None, Some(service)) = (&session.selected, session.gateway.left_out(wrong)) {
        let service = service.as_str();
        return format!(
            "there is no tool {wrong:?}{hint}\n\n  tip: {service} is built in, but not among what \
             is offered; --builtin {service} offers it, and builtin under [hub] in plexus.toml"
        );
    }
    if let Some(owner) = session.disabled_owner(wrong) {
        return format!("the tool {wrong:?} is unknown; {owner}");
    }
    let list = session.list_with("tools");
    format!("there is no tool {wrong:?}{hint}\n\n  tip: {list} all tools")
}

fn show(ended: CallEnd, arguments: &CallArgs) -> anyhow::Result<ExitCode> {
    let CallEnd { outcome, printed } = ended;
    let result = match outcome {
        Ok(result) => result,
        Err(fault) => {
            finish_line(&printed)?;
            bail!("the call failed: {fault}");
        }
    };
    let read: CallToolResult = result
        .decode()
        .context("the server's result cannot be read")?;
    let code = if read.is_error {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    };
    if arguments.json {
        print(&(result.as_str().to_owned() + "\n"))?;
        return Ok(code);
    }
    let mut text = content::text_of(&read.content, arguments.save.as_deref())?;
    if let (true, Some(data)) = (text.is_empty(), &read.structured_content) {
        text = serde_json::to_string_pretty(data)? + "\n";
    }
    if read.is_error {
        finish_line(&printed)?;
        announce::refusal(&text);
    } else if let Some(rest) = text.strip_prefix(&printed) {
        print_data(rest)?;
    } else {
        finish_line(&printed)?;
        print_data(&text)?;
    }
    Ok(code)
}

/// Ends the line of a partially printed result.
fn finish_line(printed: &str) -> io::Result<()> {
    if printed.is_empty() || printed.ends_with('\n') {
        return Ok(());
    }
    print("\n")
}

fn levels() -> impl TypedValueParser<Value = LogLevel> {
    PossibleValuesParser::new(LogLevel::ALL.map(LogLevel::as_str))
        .try_map(|name| name.parse::<LogLevel>())
}
