//! `plexus resources`, `plexus read` and `plexus subscribe`: resources of servers.

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

use crate::ad_hoc::ServerChoiceArgs;
use crate::content;
use crate::conversation::Conversation;
use crate::live::StatusLine;
use crate::output::{self, as_json, print, print_data, print_while_read, unread, write_bytes};
use crate::printable::{Printable, one_line};
use crate::session::{self, Session};
use crate::suggest::{alike, did_you_mean};
use crate::terminal::{Canvas, Cell, Tone};
use crate::tools::{Failed, disabled, entries, failed, first_line, note_disabled};

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
  plexus read --server https://example.com/mcp docs://style-guide

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
    servers: ServerChoiceArgs,

    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Arguments of `plexus read`.
#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    #[command(flatten)]
    servers: ServerChoiceArgs,

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
    servers: ServerChoiceArgs,

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
    /// Servers whose resources are not listed, because their definitions disable them.
    disabled: Vec<String>,
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
    session::run_chosen(&arguments.servers, async |session| {
        session.connect_selected().await?;
        let listings = |section| {
            let entries = entries(session, section).into_iter();
            let listings = entries.map(|(entry, origin)| ResourceListing::new(&entry, &origin));
            let listings = listings.filter(|listing| session.selects(&listing.server));
            listings.collect::<Vec<_>>()
        };
        let output = ResourcesOutput {
            resources: listings(Section::Resources),
            templates: listings(Section::Templates),
            failed: failed(session),
            disabled: disabled(session),
        };
        print(if arguments.json {
            as_json(&output)?.into()
        } else {
            output.text()
        })?;
        if !arguments.json {
            note_disabled(session)?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Runs `plexus read`.
pub(crate) fn read(arguments: &ReadArgs) -> anyhow::Result<ExitCode> {
    session::run_chosen(&arguments.servers, async |session| {
        let (_, uri) = find(session, &arguments.uri).await?;
        let mut params = Object::new();
        params.set("uri", Raw::string(&uri));
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
    session::run_chosen(&arguments.servers, async |session| {
        let (origin, uri) = find(session, &arguments.uri).await?;
        let uri = uri.as_str();
        let subscribed = session.hub.subscribe(&session.peer, uri).await;
        let mut updates = subscribed.with_context(|| format!("{uri} cannot be watched"))?;
        let mut status_line = StatusLine::new(format!("watching {}", one_line(uri)));
        loop {
            let lost = lost(session, &origin);
            let updated = tokio::select! {
                updated = status_line.during(updates.next()) => updated,
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
                format!("changed: {}\n", one_line(uri))
            })?;
            if arguments.once || !is_read {
                return Ok(ExitCode::SUCCESS);
            }
        }
    })
}

/// Finds the server that has a resource, and the URI by which clients read it.
async fn find(session: &Session, uri: &str) -> anyhow::Result<(Origin, String)> {
    let origin = session.find(Section::Resources, uri).await?;
    let resources = entries(session, Section::Resources);
    let Some(origin) = origin else {
        let selected = resources
            .iter()
            .filter(|(_, origin)| session.selects(&origin.member));
        let hint = did_you_mean(&alike(uri, selected.map(|(entry, _)| &*entry.key)));
        bail!(
            "there is no resource {uri:?}{hint}{}\n\n  tip: {} all resources",
            disabled_owners(session),
            session.list_with("resources")
        );
    };
    // One that is made from a template is not listed.
    let listed = resources.iter().find(|(_, other)| *other == origin);
    let uri = listed.map_or(uri, |(entry, _)| &*entry.key).to_owned();
    Ok((origin, uri))
}

/// The addition to an error about an unknown resource: disabled servers may have it.
fn disabled_owners(session: &Session) -> String {
    let disabled = session.disabled();
    let names: Vec<_> = disabled.iter().map(|server| server.name.as_str()).collect();
    match names.as_slice() {
        [] => String::new(),
        names => format!("; these servers are disabled: {}", names.join(", ")),
    }
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
        output::is_terminal(),
    ) && let Some(bytes) = content::bytes_of(only)
    {
        return Ok(write_bytes(&bytes)?);
    }
    for contents in &read.contents {
        let text = content::resource_text(contents, arguments.save.as_deref())?;
        let end = if text.ends_with('\n') { "" } else { "\n" };
        print_data(&(text + end))?;
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
            Cell::new(Tone::Bold, &self.uri),
            Cell::plain(first_line(text)),
        ]
    }
}

impl ResourcesOutput {
    fn text(&self) -> Printable {
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
            text.extend([if text.is_empty() { "" } else { "\n" }]);
            text.extend(["templates, in which braces stand for a part of your choice:\n"]);
            text = text + table(&self.templates);
        }
        if text.is_empty() {
            "there are no resources\n".into()
        } else {
            text
        }
    }
}
