//! Tools that are found instead of listed.
//!
//! A client that asked for a small list is shown three tools: `SearchTools` finds tools by what
//! they do, `DescribeTool` says what one takes, and `CallTool` calls it. A call through `CallTool`
//! is the call that it stands for in every respect: policy, progress, questions and cancellation
//! are those of the tool that is meant. What a client's filter hides is not found either.
//!
//! The three never change, so that such a client is never told that its list did, and nothing of it
//! depends on a session.

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

/// How many tools a search finds, unless it says otherwise.
const LIMIT: usize = 10;
const MAX_LIMIT: usize = 50;
/// The longest description that a search shows of a tool, in characters.
const MAX_DESCRIPTION: usize = 200;

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
        self.limit.unwrap_or(LIMIT).clamp(1, MAX_LIMIT)
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

/// The arguments of one of the three.
///
/// # Errors
/// They are not what its schema says.
pub(crate) fn arguments<T: for<'de> Deserialize<'de>>(params: &Object) -> Result<T, Fault> {
    let given = params.get("arguments").cloned();
    let given = given.unwrap_or_else(Raw::empty_object);
    given
        .decode()
        .map_err(|error| Fault::InvalidArguments(format!("arguments: {error}")))
}

/// The parameters of the call that a call of `CallTool` stands for.
///
/// # Errors
/// It stands for none.
pub(crate) fn unwrapped(params: &Object) -> Result<Object, Fault> {
    let CallArguments { name, arguments } = arguments(params)?;
    let mut params = params.clone();
    params.set("name", name);
    params.set("arguments", arguments.unwrap_or_else(Raw::empty_object));
    Ok(params)
}

/// What a client that searches is shown of `whole`, in which these servers have tools for it.
pub(crate) fn shown(whole: &Catalogue, servers: &[Arc<str>]) -> Catalogue {
    let mut shown = whole.clone();
    let entries = definitions().into_iter();
    let entries = entries.filter_map(|tool| Entry::new(Section::Tools, tool).ok());
    let list = List::new(entries.collect()).unwrap_or_default();
    shown.set_list(Section::Tools, list);
    shown.instructions = Some(format!(
        "The tools of these servers are not listed: {}. Find the ones you need with {SEARCH}, see \
         what one takes with {DESCRIBE}, and call it with {CALL}.",
        servers.join(", ")
    ));
    shown.cache.public = false;
    shown
}

/// A tool in one line.
pub(crate) fn line(entry: &Entry) -> String {
    #[derive(Deserialize, Default)]
    struct Described {
        title: Option<String>,
        description: Option<String>,
    }
    let Described { title, description } = entry.definition.decode().unwrap_or_default();
    let text = description.or(title).unwrap_or_default();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut short: String = text.chars().take(MAX_DESCRIPTION).collect();
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
                    "maximum": MAX_LIMIT,
                    "default": LIMIT,
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
