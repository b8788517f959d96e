//! `plexus memory`: the context graph on the command line.

use std::io::{self, IsTerminal, Read};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use plexus_mcp_builtins::context::{Forget, Graph, NewNode, Node, Search};

use crate::data;
use crate::output::{as_json, if_nothing, print_data};
use crate::printable::one_line;
use crate::runtime::on_runtime;

pub(crate) const EXAMPLES: &str = "\
Examples:
  plexus memory store deploy-window No releases on Fridays
  plexus memory store mcp-research --namespace contextgraph/ghost-system < research.md
  plexus memory retrieve mcp-research --namespace contextgraph/ghost-system
  plexus memory search when can I deploy
  plexus memory forget deploy-window";

/// The actor in the graph's audit trail.
const CALLER: &str = "plexus memory";

/// More than the graph accepts, so that the graph reports the error.
const MAX_INPUT_BYTES: u64 = 11 * 1024 * 1024;

/// How much of each hit is shown.
const MAX_EXCERPT_CHARS: usize = 100;

/// Arguments of `plexus memory`.
#[derive(Debug, Args)]
pub(crate) struct MemoryArgs {
    #[command(subcommand)]
    command: MemoryCommand,

    /// Print JSON, as the tools return it.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum MemoryCommand {
    /// Store a text under a key, and print its id.
    ///
    /// A text that is already stored under the key is replaced.
    Store {
        /// The key.
        key: String,
        /// The text; standard input by default.
        content: Vec<String>,
        /// The namespace of the key.
        #[arg(long, value_name = "NAME", default_value = "default")]
        namespace: String,
        /// A label to find it by. This may be repeated.
        #[arg(long = "tag", value_name = "TAG")]
        tags: Vec<String>,
        /// How important it is, from 0 to 1.
        #[arg(long, value_name = "NUMBER", default_value_t = 0.5)]
        importance: f64,
    },
    /// Print the text that is stored under a key.
    Retrieve {
        /// The key.
        key: String,
        /// The namespace of the key.
        #[arg(long, value_name = "NAME", default_value = "default")]
        namespace: String,
    },
    /// List the texts that match a query, the best first.
    Search {
        /// The query.
        #[arg(required = true)]
        query: Vec<String>,
        /// Only in this namespace.
        #[arg(long, value_name = "NAME")]
        namespace: Option<String>,
        /// Only with this label. This may be repeated.
        #[arg(long = "tag", value_name = "TAG")]
        tags: Vec<String>,
        /// Only texts stored in the last NUMBER days.
        #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=36_500))]
        days: Option<u32>,
        /// The most texts to print.
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100))]
        limit: u32,
    },
    /// List the stored texts, the newest first.
    List {
        /// Only in this namespace.
        #[arg(long, value_name = "NAME")]
        namespace: Option<String>,
        /// The most texts to print.
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
    },
    /// Delete the text that is stored under a key, and print its id.
    ///
    /// It can be restored for 30 days.
    Forget {
        /// The key.
        key: String,
        /// The namespace of the key.
        #[arg(long, value_name = "NAME", default_value = "default")]
        namespace: String,
    },
    /// Restore a deleted text.
    Restore {
        /// The id that `forget` printed.
        id: String,
    },
}

/// Runs `plexus memory`.
pub(crate) fn run(arguments: MemoryArgs) -> anyhow::Result<ExitCode> {
    on_runtime(async {
        let data = data::when_needed()?;
        let answer = answer(&data.builtins.context, arguments).await?;
        print_data(if_nothing(&answer, "nothing found\n"))?;
        Ok(ExitCode::SUCCESS)
    })
}

async fn answer(graph: &Graph, arguments: MemoryArgs) -> anyhow::Result<String> {
    let MemoryArgs { command, json } = arguments;
    match command {
        MemoryCommand::Store {
            key,
            content,
            namespace,
            tags,
            importance,
        } => {
            let content = if content.is_empty() {
                from_input()?
            } else {
                content.join(" ")
            };
            let mut node = NewNode::new(content).namespace(namespace).key(key);
            node.tags = tags;
            node.importance = importance;
            let stored = graph.store(node, CALLER).await?;
            if json {
                as_json(&stored)
            } else {
                Ok(stored.id + "\n")
            }
        }
        MemoryCommand::Retrieve { key, namespace } => {
            let found = graph.retrieve(&namespace, &key).await?;
            if json {
                return as_json(&found);
            }
            let content = &found.node.content;
            let end = if content.ends_with('\n') { "" } else { "\n" };
            Ok(format!("{content}{end}"))
        }
        MemoryCommand::Search {
            query,
            namespace,
            tags,
            days,
            limit,
        } => {
            let mut search = Search::new(query.join(" "));
            search.namespace = namespace;
            search.tags = tags;
            search.last_days = days;
            search.limit = limit;
            let found = graph.search(search).await?;
            if json {
                as_json(&found)
            } else {
                Ok(found.results.iter().map(|hit| line(&hit.node)).collect())
            }
        }
        MemoryCommand::List { namespace, limit } => {
            let nodes = graph.newest(namespace, limit).await?;
            if json {
                as_json(&nodes)
            } else {
                Ok(nodes.iter().map(line).collect())
            }
        }
        MemoryCommand::Forget { key, namespace } => {
            let id = graph.retrieve(&namespace, &key).await?.node.id;
            let forgotten = graph.forget(Forget::new(id), CALLER).await?;
            if json {
                as_json(&forgotten)
            } else {
                Ok(forgotten.id + "\n")
            }
        }
        MemoryCommand::Restore { id } => {
            let restored = graph.restore(&id, CALLER).await?;
            if json {
                as_json(&restored)
            } else {
                Ok(restored.id + "\n")
            }
        }
    }
}

fn from_input() -> anyhow::Result<String> {
    let mut input = io::stdin().lock();
    if input.is_terminal() {
        bail!("there is no text to store; give it after the key, or pipe it in");
    }
    let mut content = String::new();
    let read = input
        .by_ref()
        .take(MAX_INPUT_BYTES)
        .read_to_string(&mut content);
    read.context("cannot read the text to store")?;
    Ok(content)
}

/// One node in one line, without terminal control characters.
fn line(node: &Node) -> String {
    let name = node.key.as_ref().unwrap_or(&node.id);
    let words: Vec<&str> = node.content.split_whitespace().collect();
    let content: String = words.join(" ").chars().take(MAX_EXCERPT_CHARS).collect();
    let shown = format!("{}/{name}  {content}", node.namespace);
    one_line(&shown) + "\n"
}
