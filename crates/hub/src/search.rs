//! Tools that are found instead of listed.
//!
//! A client that asked for a small list is shown three tools: `SearchTools` finds tools by what
//! they do, `DescribeTool` shows the definition of one, and `CallTool` calls it. A call through
//! `CallTool` is treated as a call of the tool that it names: policy, progress, questions and
//! cancellation apply to that tool. Tools that a client's filter hides are not found either.
//!
//! The three tools never change, so such a client gets no change notifications for its tools, and
//! needs no session.

mod index;

use std::sync::Arc;

use plexus_mcp_core::{Catalogue, Entry, Fault, List, Section};
use plexus_mcp_wire::{Object, Raw};
use serde::Deserialize;
use serde_json::json;

pub(crate) use index::Index;

/// Finds tools.
pub(crate) const SEARCH: &str = "SearchTools";
/// Says what a tool takes.
pub(crate) const DESCRIBE: &str = "DescribeTool";
/// Calls a tool.
pub(crate) const CALL: &str = "CallTool";

/// The most tools that a search returns if it sets no limit.
const DEFAULT_RESULTS: usize = 10;
const MAX_RESULTS: usize = 50;
/// The longest description that a search shows of a tool, in characters.
const MAX_DESCRIPTION_CHARS: usize = 200;

/// What to look for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchArguments {
    pub(crate) query: String,
    pub(crate) server: Option<String>,
    limit: Option<usize>,
}

impl SearchArguments {
    pub(crate) fn limit(&self) -> usize {
        self.limit.unwrap_or(DEFAULT_RESULTS).clamp(1, MAX_RESULTS)
    }
}

/// Which tool to describe.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DescribeArguments {
    pub(crate) name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallArguments {
    name: Raw,
    arguments: Option<Raw>,
}

/// Decodes the arguments of a call of one of the three tools.
///
/// # Errors
/// The arguments do not match the tool's schema.
pub(crate) fn arguments<T: for<'de> Deserialize<'de>>(params: &Object) -> Result<T, Fault> {
    let given = params.get("arguments").cloned();
    let given = given.unwrap_or_else(Raw::empty_object);
    given
        .decode()
        .map_err(|error| Fault::InvalidArguments(format!("arguments: {error}")))
}

/// The parameters of the call that a call of `CallTool` contains.
///
/// # Errors
/// The arguments do not match the schema of `CallTool`.
pub(crate) fn unwrapped(params: &Object) -> Result<Object, Fault> {
    let CallArguments { name, arguments } = arguments(params)?;
    let mut params = params.clone();
    params.set("name", name);
    params.set("arguments", arguments.unwrap_or_else(Raw::empty_object));
    Ok(params)
}

/// The catalogue for a client that searches: `whole` with the three tools instead of its own, and
/// instructions that name `servers`, followed by the notice of the hub.
pub(crate) fn shown(whole: &Catalogue, servers: &[Arc<str>], notice: Option<&str>) -> Catalogue {
    let mut shown = whole.clone();
    let entries = definitions().into_iter();
    let entries = entries.filter_map(|tool| Entry::new(Section::Tools, tool).ok());
    let list = List::new(entries.collect()).unwrap_or_default();
    shown.set_list(Section::Tools, list);
    let mut instructions = format!(
        "The tools of these servers are not listed: {}. Find the ones you need with {SEARCH}, see \
         what one takes with {DESCRIBE}, and call it with {CALL}.",
        servers.join(", ")
    );
    if let Some(notice) = notice {
        instructions.extend(["\n\n", notice]);
    }
    shown.instructions = Some(instructions);
    shown.cache.public = false;
    shown
}

/// A tool in one line.
pub(crate) fn line(entry: &Entry) -> String {
    #[derive(Deserialize, Default)]
    struct DescribedTool {
        title: Option<String>,
        description: Option<String>,
    }
    let DescribedTool { title, description } = entry.definition.decode().unwrap_or_default();
    let text = description.or(title).unwrap_or_default();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut short: String = text.chars().take(MAX_DESCRIPTION_CHARS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("{}: {short}", entry.key)
}

fn definitions() -> Vec<Raw> {
    let text = |description: &str| json!({"type": "string", "description": description});
    let search = json!({
        "name": SEARCH,
        "title": "Search tools",
        "description": "Finds tools by what they do. Say in a few words what you want to do; the \
                        tools that fit best come first, each with its name and what it is for.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": text("Words for what the tool is to do, or parts of its name."),
                "server": text("Only tools of this server."),
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_RESULTS,
                    "default": DEFAULT_RESULTS,
                    "description": "The most tools to show.",
                },
            },
            "required": ["query"],
            "additionalProperties": false,
        },
        "annotations": {"readOnlyHint": true, "openWorldHint": false},
    });
    let describe = json!({
        "name": DESCRIBE,
        "title": "Describe a tool",
        "description": "Says what a tool does and takes, with the JSON Schema of its arguments, \
                        and what its server says about the use of its tools.",
        "inputSchema": {
            "type": "object",
            "properties": {"name": text("The tool's name, as SearchTools gives it.")},
            "required": ["name"],
            "additionalProperties": false,
        },
        "annotations": {"readOnlyHint": true, "openWorldHint": false},
    });
    let call = json!({
        "name": CALL,
        "title": "Call a tool",
        "description": "Calls a tool that SearchTools found. DescribeTool says which arguments it \
                        takes.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "name": text("The tool's name, as SearchTools gives it."),
                "arguments": {
                    "type": "object",
                    "description": "The arguments of that tool.",
                },
            },
            "required": ["name"],
            "additionalProperties": false,
        },
    });
    let encoded = |tool| Raw::encode(tool).ok();
    [&search, &describe, &call]
        .into_iter()
        .filter_map(encoded)
        .collect()
}
