//! `plexus explain`: where a tool comes from, whether clients see it, and whether a call is
//! allowed.

mod place;
mod verdict;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use plexus_mcp_core::{Entry, Raw, Section, ToolAnnotations};
use plexus_mcp_hub::Origin;
use plexus_mcp_hub::names::may_own;
use serde::{Deserialize, Serialize};

use crate::call::{entry, unknown};
use crate::mcp::show::summary;
use crate::output::{Misuse, as_json, print};
use crate::printable::{Printable, one_line};
use crate::session::{self, BUILTIN, ConfigArgs, Session};
use crate::terminal::{Canvas, Tone};
use crate::{arguments, tools};
use verdict::Verdict;

pub(crate) const EXAMPLES: &str = "\
Examples:
  plexus explain git__git_log
  plexus explain shell__run command='rm -r build'      Which rule is for this call?
  plexus explain git__git_commit --json | jq .policy

The exit code is 0 if the tool can be seen by clients, 1 if not, and 2 for wrong usage.";

/// Width of the label column.
const LABEL_WIDTH: usize = 13;

/// Arguments of `plexus explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    config: ConfigArgs,

    /// The tool, by any of its names, also if it is not listed.
    tool: String,

    /// An argument of the call, or all of them as one JSON object, for rules that depend on
    /// arguments.
    #[arg(value_name = "KEY=VALUE | KEY:=JSON | OBJECT")]
    arguments: Vec<String>,

    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Everything that is known about a tool.
#[derive(Serialize)]
struct Explanation {
    /// The name that clients see, if they see it.
    name: Option<String>,
    /// Whether clients see it.
    visible: bool,
    /// Why clients do not see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    server: String,
    /// The server's own name for the tool.
    tool: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<Source>,
    other_names: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<Verdict>,
    #[serde(skip_serializing_if = "Option::is_none")]
    definition: Option<Raw>,
}

/// The place in the configuration of the tool's server.
#[derive(Serialize)]
struct Source {
    file: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    scope: &'static str,
    /// The program or URL, without secrets.
    target: String,
}

/// The descriptive parts of a definition.
#[derive(Default, Deserialize)]
struct ToolDescription {
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    annotations: Option<ToolAnnotations>,
}

/// Runs `plexus explain`.
pub(crate) fn run(arguments: &ExplainArgs) -> anyhow::Result<ExitCode> {
    session::run(&arguments.config, async |session| {
        let origin = session.find(Section::Tools, &arguments.tool).await?;
        let origin = match origin {
            None => by_own_name(session, &arguments.tool)?,
            found => found,
        };
        let explanation = match origin {
            Some(origin) => explain_visible(session, &origin, &arguments.arguments)?,
            None => match explain_invisible(session, &arguments.tool) {
                Some(explanation) => explanation,
                None => bail!(unknown(session, &arguments.tool)),
            },
        };
        print(if arguments.json {
            as_json(&explanation)?.into()
        } else {
            explanation.text(Canvas::output())
        })?;
        Ok(if explanation.visible {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    })
}

/// Explains a tool that clients see.
fn explain_visible(
    session: &Session,
    origin: &Origin,
    words: &[String],
) -> anyhow::Result<Explanation> {
    let Some(tool) = entry(session, origin) else {
        bail!("the tool was removed by its server meanwhile");
    };
    let given = if words.is_empty() {
        Raw::empty_object()
    } else {
        arguments::typed(words, &arguments::schema_of(&tool.definition)).map_err(Misuse)?
    };
    let policy = Verdict::of(session, &tool, origin, &given);
    let mut explanation = Explanation::new(session, &origin.member, &origin.name);
    explanation.name = Some(tool.key.to_string());
    explanation.visible = true;
    explanation.policy = Some(policy);
    explanation.definition = Some(tool.definition);
    Ok(explanation)
}

/// The visible tool whose server calls it `name`.
///
/// # Errors
/// There are several.
fn by_own_name(session: &Session, name: &str) -> anyhow::Result<Option<Origin>> {
    let mut tools = tools::entries(session, Section::Tools);
    tools.retain(|(_, origin)| *origin.name == *name);
    if tools.len() > 1 {
        let names: Vec<_> = tools.iter().map(|(entry, _)| &*entry.key).collect();
        bail!(Misuse(format!(
            "several servers have a tool {name:?}; name one of: {}",
            names.join(", ")
        )));
    }
    Ok(tools.pop().map(|(_, origin)| origin))
}

/// Explains a tool that clients do not see, if a server has it.
fn explain_invisible(session: &Session, name: &str) -> Option<Explanation> {
    for member in session.hub.status() {
        let offer = session.hub.offer_of(&member.name)?;
        let mut entries = offer.list(Section::Tools).entries().iter();
        if let Some(entry) = entries.find(|entry| is_called(&member.name, &entry.key, name)) {
            return Some(explain_hidden(session, &member.name, entry));
        }
        let quarantined = member.report.iter().flat_map(|report| &report.quarantined);
        let mut quarantined = quarantined.filter(|entry| entry.section == Section::Tools);
        if let Some(entry) = quarantined.find(|entry| is_called(&member.name, &entry.name, name)) {
            let reason = format!(
                "its definition cannot be shown to clients: {}; report it to the authors of the server",
                entry.reason
            );
            return Some(
                Explanation::new(session, &member.name, &entry.name).with_hidden_reason(reason),
            );
        }
    }
    // No connected server has it; a server that is not connected may.
    let absent = session.configured.iter().find_map(|server| {
        may_own(&server.name, name).then_some(())?;
        Some((server.name.as_str(), session.absence(server)?))
    });
    let (server, reason) = absent?;
    let explanation = Explanation::new(session, server, "");
    Some(explanation.with_hidden_reason(format!("the tools of its server are not known: {reason}")))
}

/// Explains a tool that its server offers, and that is hidden.
fn explain_hidden(session: &Session, server: &str, entry: &Entry) -> Explanation {
    let configured = session.configured(server);
    let reason = match configured {
        Some(server) if server.disabled => {
            format!("its server is disabled: {}", session::disabled(server))
        }
        Some(server) if !server.tools.admits(&entry.key) => {
            let globs = |key, globs: &[String]| match globs {
                [] => None,
                some => Some(format!("{key}: {}", some.join(", "))),
            };
            let filter = &server.tools;
            let filter = [globs("allow", filter.allow()), globs("deny", filter.deny())];
            let filter: Vec<_> = filter.into_iter().flatten().collect();
            let filter = filter.join("; ");
            format!("the filter of its server leaves it out ({filter})")
        }
        _ => "its server is disabled".to_owned(),
    };
    let mut explanation = Explanation::new(session, server, &entry.key).with_hidden_reason(reason);
    explanation.definition = Some(entry.definition.clone());
    explanation
}

/// Whether `name` may mean this tool of this server.
fn is_called(server: &str, tool: &str, name: &str) -> bool {
    name == tool || other_names(server, tool).iter().any(|other| other == name)
}

/// Every name of a server's tool.
fn other_names(server: &str, tool: &str) -> Vec<String> {
    let shown = plexus_mcp_hub::names::Names::default().add(server, tool, ());
    vec![
        shown.to_string(),
        format!("{server}.{tool}"),
        format!("mcp__{server}__{tool}"),
    ]
}

impl Explanation {
    fn new(session: &Session, server: &str, tool: &str) -> Self {
        let configured = session.configured(server);
        let source = configured.map(|server| Source {
            file: server.source.file.clone(),
            line: place::line_of(&server.source.file, &server.name),
            scope: server.source.scope.as_str(),
            target: summary(server),
        });
        Self {
            name: None,
            visible: false,
            reason: None,
            server: server.to_owned(),
            tool: tool.to_owned(),
            source,
            other_names: if server == BUILTIN || tool.is_empty() {
                Vec::new()
            } else {
                other_names(server, tool)
            },
            policy: None,
            definition: None,
        }
    }

    fn with_hidden_reason(mut self, reason: String) -> Self {
        self.reason = Some(reason);
        self
    }

    fn text(&self, canvas: Canvas) -> Printable {
        let name = self.name.as_deref().unwrap_or(&self.tool);
        let name = if name.is_empty() { &self.server } else { name };
        let mut lines = vec![canvas.paint(Tone::Bold, one_line(name))];
        let words: ToolDescription = self
            .definition
            .as_ref()
            .and_then(|definition| definition.decode().ok())
            .unwrap_or_default();
        if let Some(text) = words.description.as_ref().or(words.title.as_ref()) {
            lines.push(format!("  {}", tools::first_line(text)).into());
        }
        let mut row = |label: &str, tone: Tone, text: &str| {
            let text = canvas.wrap(&one_line(text), LABEL_WIDTH + 2);
            let label = Printable::from(format!("  {label:<LABEL_WIDTH$}"));
            lines.push(label + canvas.paint(tone, text));
        };
        match &self.reason {
            Some(reason) => row("visible", Tone::Bad, &format!("no: {reason}")),
            None => row("visible", Tone::Good, "yes"),
        }
        if !self.tool.is_empty() {
            row("tool", Tone::Plain, &self.tool);
        }
        match &self.source {
            Some(source) => {
                row(
                    "server",
                    Tone::Plain,
                    &format!("{}  {}", self.server, source.target),
                );
                let line = source.line.map(|line| format!(":{line}"));
                let (file, line) = (source.file.display(), line.unwrap_or_default());
                let scope = source.scope;
                row(
                    "configured",
                    Tone::Plain,
                    &format!("{file}{line} ({scope} scope)"),
                );
            }
            None => row("server", Tone::Plain, &format!("{}  built in", self.server)),
        }
        let shown = self.name.as_deref().unwrap_or_default();
        let others = self.other_names.iter().filter(|other| *other != shown);
        let others: Vec<_> = others.map(String::as_str).collect();
        if !others.is_empty() && self.visible {
            row("other names", Tone::Plain, &others.join(", "));
        }
        if let Some(policy) = &self.policy {
            row("a call is", policy.tone(), &policy.to_string());
        }
        if let Some(annotations) = words.annotations {
            let hints = hints(&annotations);
            if !hints.is_empty() {
                row(
                    "its server",
                    Tone::Plain,
                    &format!("says that it {}", hints.join(", ")),
                );
            }
        }
        let schema = self.definition.as_ref().map(arguments::schema_of);
        let takes = schema
            .as_ref()
            .map(arguments::described)
            .unwrap_or_default();
        if !takes.is_empty() {
            lines.push("  arguments".into());
            let wrapped = takes.iter().map(|line| canvas.wrap(&one_line(line), 6));
            lines.extend(wrapped.map(|line| format!("    {line}").into()));
        }
        lines.into_iter().map(|line| line + "\n").collect()
    }
}

/// The annotations of a tool, in words.
fn hints(annotations: &ToolAnnotations) -> Vec<&'static str> {
    let hints = [
        (
            annotations.read_only_hint,
            "changes nothing",
            "changes something",
        ),
        (
            annotations.destructive_hint,
            "may destroy something",
            "destroys nothing",
        ),
        (
            annotations.idempotent_hint,
            "may be repeated safely",
            "must not be repeated",
        ),
        (
            annotations.open_world_hint,
            "reaches the outside world",
            "stays inside",
        ),
    ];
    hints
        .into_iter()
        .filter_map(|(hint, yes, no)| hint.map(|hint| if hint { yes } else { no }))
        .collect()
}
