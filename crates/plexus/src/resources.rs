//! `plexus resources`, `plexus read` and `plexus subscribe`: resources of servers.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;
use plexus_mcp_core::{Entry, Object, Raw, Section, Service};
use plexus_mcp_hub::Origin;
use plexus_mcp_protocol::messages::ReadResourceResult;
use plexus_mcp_protocol::method;
use serde::{Deserialize, Serialize};

use crate::content;
use crate::conversation::Conversation;
use crate::live::Live;
use crate::output::{as_json, print, print_while_read, printable, readable, unread};
use crate::session::{self, ConfigArgs, Session};
use crate::suggest::{alike, did_you_mean};
use crate::terminal::{Canvas, Cell, Tone};
use crate::tools::{Failed, connect, entries, failed, first_line};

pub(crate) const EXAMPLES: &str = "\
Examples:
  plexus resources
  plexus resources --server docs
  plexus resources --json | jq -r '.resources[].uri'

The exit code is 0 if they were listed, even if some server cannot be connected (a warning); 1 if
not; and 2 for wrong usage.";

pub(crate) const READ_EXAMPLES: &str = "\
Examples:
  plexus read docs://style-guide
  plexus read camera://front > front.jpg
  plexus read docs://style-guide --json | jq '.contents[0].mimeType'

The exit code is 0 if it was read, 1 if not, and 2 for wrong usage.";

pub(crate) const SUBSCRIBE_EXAMPLES: &str = "\
Examples:
  plexus subscribe file:///var/log/build.log
  plexus subscribe --once docs://style-guide && echo it changed
  plexus subscribe --json docs://style-guide | while read -r change; do make; done

The exit code is 0 after --once, 1 if the resource cannot be watched or its server is lost, 2 for
wrong usage, and 130 after Ctrl-C.";

/// Arguments of `plexus resources`.
#[derive(Debug, Args)]
pub(crate) struct ResourcesArgs {
    #[command(flatten)]
    config: ConfigArgs,

    /// Only resources of this server; no other is started.
    #[arg(long, value_name = "NAME")]
    server: Option<String>,

    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Arguments of `plexus read`.
#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    #[command(flatten)]
    config: ConfigArgs,

    /// The resource: a listed URI, or one made from a template.
    uri: String,

    /// Print the result as JSON, as the server gave it.
    #[arg(long)]
    json: bool,

    /// Save binary content to this folder.
    #[arg(long, value_name = "FOLDER")]
    save: Option<PathBuf>,
}

/// Arguments of `plexus subscribe`.
#[derive(Debug, Args)]
pub(crate) struct SubscribeArgs {
    #[command(flatten)]
    config: ConfigArgs,

    /// The resource.
    uri: String,

    /// End after the first change.
    #[arg(long)]
    once: bool,

    /// Print one JSON object for each change instead of text.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct ResourcesOutput {
    resources: Vec<ResourceListing>,
    templates: Vec<ResourceListing>,
    /// Servers whose resources are not known.
    failed: Vec<Failed>,
}

#[derive(Serialize)]
struct ResourceListing {
    uri: String,
    server: String,
    definition: Raw,
    #[serde(skip)]
    words: ResourceText,
}

#[derive(Default, Deserialize)]
struct ResourceText {
    #[serde(default)]
    name: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    description: Option<String>,
}

/// A change of a resource.
#[derive(Serialize)]
struct ResourceChange<'a> {
    uri: &'a str,
    server: &'a str,
}

/// Runs `plexus resources`.
pub(crate) fn list(arguments: &ResourcesArgs) -> anyhow::Result<ExitCode> {
    session::run(&arguments.config, async |session| {
        connect(session, arguments.server.as_deref()).await?;
        let listings = |section| {
            let entries = entries(session, section).into_iter();
            let listings = entries.map(|(entry, origin)| ResourceListing::new(&entry, &origin));
            let server = arguments.server.as_deref();
            let listings =
                listings.filter(|listing| server.is_none_or(|name| listing.server == name));
            listings.collect::<Vec<_>>()
        };
        let output = ResourcesOutput {
            resources: listings(Section::Resources),
            templates: listings(Section::Templates),
            failed: failed(session),
        };
        print(&if arguments.json {
            as_json(&output)?
        } else {
            output.text()
        })?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Runs `plexus read`.
pub(crate) fn read(arguments: &ReadArgs) -> anyhow::Result<ExitCode> {
    session::run(&arguments.config, async |session| {
        find(session, &arguments.uri).await?;
        let mut params = Object::new();
        params.set("uri", Raw::string(&arguments.uri));
        let conversation =
            Conversation::about(&format!("reading {}", arguments.uri), arguments.json);
        let ended = conversation
            .call(session, method::RESOURCES_READ, params, None)
            .await;
        let result = ended
            .outcome
            .with_context(|| format!("{} cannot be read", arguments.uri))?;
        if arguments.json {
            print(&(result.as_str().to_owned() + "\n"))?;
            return Ok(ExitCode::SUCCESS);
        }
        let read: ReadResourceResult = result
            .decode()
            .context("the server's result cannot be read")?;
        show(&read, arguments)?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Runs `plexus subscribe`: prints each change until a signal arrives.
pub(crate) fn subscribe(arguments: &SubscribeArgs) -> anyhow::Result<ExitCode> {
    session::run(&arguments.config, async |session| {
        let uri = arguments.uri.as_str();
        let origin = find(session, uri).await?;
        let subscribed = session.hub.subscribe(&session.peer, uri).await;
        let mut updates = subscribed.with_context(|| format!("{uri} cannot be watched"))?;
        let mut live = Live::new(format!("watching {}", printable(uri)));
        loop {
            let lost = lost(session, &origin);
            let updated = tokio::select! {
                updated = live.during(updates.next()) => updated,
                () = lost => None,
                () = unread() => return Ok(ExitCode::SUCCESS),
            };
            if updated.is_none() {
                bail!(
                    "the server {:?} was lost, and with it the subscription",
                    &*origin.member
                );
            }
            let server = &*origin.member;
            let is_read = print_while_read(&if arguments.json {
                as_json(&ResourceChange { uri, server })?
            } else {
                format!("changed: {}\n", printable(uri))
            })?;
            if arguments.once || !is_read {
                return Ok(ExitCode::SUCCESS);
            }
        }
    })
}

/// Finds the server that has a resource.
async fn find(session: &Session, uri: &str) -> anyhow::Result<Origin> {
    if let Some(origin) = session.find(Section::Resources, uri).await {
        return Ok(origin);
    }
    let resources = entries(session, Section::Resources);
    let hint = did_you_mean(&alike(uri, resources.iter().map(|(entry, _)| &*entry.key)));
    bail!("there is no resource {uri:?}{hint}\n\n  tip: 'plexus resources' lists all resources")
}

/// Waits until the server's connection has ended.
async fn lost(session: &Session, origin: &Origin) {
    let mut catalogue = session.hub.catalogue();
    while session
        .status(&origin.member)
        .is_some_and(|member| crate::session::failure(&member).is_none())
    {
        // A lost server has an empty catalogue or a failed status; both are polled.
        let pause = std::time::Duration::from_secs(1);
        drop(tokio::time::timeout(pause, catalogue.changed()).await);
    }
}

fn show(read: &ReadResourceResult, arguments: &ReadArgs) -> anyhow::Result<()> {
    // Binary content goes to a file or a pipe unchanged.
    if let ([only], None, false) = (
        read.contents.as_slice(),
        &arguments.save,
        io::stdout().is_terminal(),
    ) && let Some(bytes) = content::bytes_of(only)
    {
        let mut output = io::stdout().lock();
        return match output.write_all(&bytes).and_then(|()| output.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(()),
        };
    }
    for contents in &read.contents {
        let text = content::resource_text(contents, arguments.save.as_deref())?;
        let end = if text.ends_with('\n') { "" } else { "\n" };
        print(&(readable(&text).into_owned() + end))?;
    }
    Ok(())
}

impl ResourceListing {
    fn new(entry: &Entry, origin: &Origin) -> Self {
        Self {
            uri: entry.key.to_string(),
            server: Arc::clone(&origin.member).to_string(),
            definition: entry.definition.clone(),
            words: entry.definition.decode().unwrap_or_default(),
        }
    }

    fn row(&self) -> Vec<Cell> {
        let ResourceText {
            name,
            title,
            description,
        } = &self.words;
        let text = description.as_ref().or(title.as_ref()).unwrap_or(name);
        vec![
            Cell::new(Tone::Bold, printable(&self.uri)),
            Cell::plain(first_line(text)),
        ]
    }
}

impl ResourcesOutput {
    fn text(&self) -> String {
        let canvas = Canvas::output();
        let table = |listings: &[ResourceListing]| {
            canvas.table(
                &listings
                    .iter()
                    .map(ResourceListing::row)
                    .collect::<Vec<_>>(),
            )
        };
        let mut text = table(&self.resources);
        if !self.templates.is_empty() {
            text += if text.is_empty() { "" } else { "\n" };
            text += "templates, in which braces stand for a part of your choice:\n";
            text += &table(&self.templates);
        }
        if text.is_empty() {
            "there are no resources\n".to_owned()
        } else {
            text
        }
    }
}
