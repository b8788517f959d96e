//! The tools of MCP servers: the only module of the host that knows servers.
//!
//! [`Servers`] registers the tools of connected servers, and removes them when they are gone. The
//! model sees a tool of a server as `mcp__SERVER__TOOL`, and a service of this process by its own
//! names (C11).

mod management;
mod server_tool;

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use plexus_mcp_client::ServerState;
use plexus_mcp_core::{
    Client, Entry, Implementation, Presence, QuestionHandler, Section, Service, Tool,
};
use plexus_mcp_hub::names::Names;
use plexus_mcp_hub::{Hub, MemberStatus, Origin};

use crate::registry::Registry;
use crate::schema::SetupError;
use crate::system_prompt::PromptServer;
use management::{ManagementTool, Needs};
use server_tool::ServerTool;

/// The prefix of the names of servers' tools.
const PREFIX: &str = "mcp__";

/// The servers of a hub, whose tools are in a registry.
pub struct Servers {
    hub: Hub,
    client: Client,
    registry: Arc<Registry>,
    presence: Presence,
    /// Servers whose annotations are believed.
    trusted: HashSet<String>,
    /// The registered tools, by name, with what they were made from.
    registered: Mutex<BTreeMap<String, Registered>>,
}

/// What a registered tool was made from.
#[derive(PartialEq)]
struct Registered {
    origin: Origin,
    definition: plexus_mcp_wire::Raw,
}

impl Servers {
    /// The servers of `hub`. `handler` answers the questions that they ask during calls.
    pub fn new(
        hub: Hub,
        registry: &Arc<Registry>,
        handler: impl QuestionHandler,
        identity: &Implementation,
        trusted: impl IntoIterator<Item = String>,
    ) -> Self {
        let presence = Presence::new();
        let client = hub.client().with_handler(handler).with_info(identity);
        Self {
            client: client.present(presence.clone()),
            hub,
            registry: Arc::clone(registry),
            presence,
            trusted: trusted.into_iter().collect(),
            registered: Mutex::default(),
        }
    }

    /// The hub.
    pub fn hub(&self) -> &Hub {
        &self.hub
    }

    /// Connects the servers of which nothing is known, and waits for them for a while, as lists do.
    pub async fn settle(&self) {
        self.hub.connect_unknown_in_background();
        if let Some(settling) = self.hub.settling() {
            settling.await;
        }
    }

    /// Registers the tools that the servers have now, and removes those that are gone.
    pub fn register_tools(&self) {
        let catalogue = self.hub.catalogue();
        let catalogue = Arc::clone(&catalogue.borrow());
        let local = self.local_services();
        let mut names = Names::default();
        let mut current = Vec::new();
        for entry in catalogue.list(Section::Tools).entries() {
            let Some(origin) = self.hub.origin(Section::Tools, &entry.key) else {
                continue;
            };
            // The management tools are registered apart.
            if &*origin.member == plexus_mcp_hub::manage::NAME {
                continue;
            }
            let is_local = local.contains(&*origin.member);
            let name = if is_local {
                names.add_plain(&entry.key, ())
            } else {
                let server = format!("{PREFIX}{}", origin.member);
                Some(names.add(server, &*origin.name, ()))
            };
            if let Some(name) = name {
                current.push((name.to_string(), origin, entry.clone(), is_local));
            }
        }
        let mut registered = self
            .registered
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        registered.retain(|name, _| {
            let is_kept = current.iter().any(|(current, ..)| current == name);
            if !is_kept {
                self.registry.unregister(name);
            }
            is_kept
        });
        for (name, origin, entry, is_local) in current {
            let new = Registered {
                origin: origin.clone(),
                definition: entry.definition.clone(),
            };
            if registered.get(&name) != Some(&new)
                && let Some(tool) = self.tool(&name, &origin, &entry, is_local)
            {
                self.registry.register(Arc::new(tool));
                registered.insert(name, new);
            }
        }
    }

    /// Registers the tools with which a model lists, reads and watches resources (S001-17…23): the
    /// two for resources always, the others if a server is configured (C58).
    ///
    /// # Errors
    /// A tool cannot be offered; this is a mistake in the program.
    pub fn register_management_tools(self: &Arc<Self>) -> Result<(), SetupError> {
        for tool in ManagementTool::all(self)? {
            if tool.needs() == Needs::Nothing || self.has_servers() {
                self.registry.register(Arc::new(tool));
            }
        }
        Ok(())
    }

    /// Keeps the registered tools up to date for as long as it is polled.
    pub async fn follow(&self) {
        let mut catalogue = self.hub.catalogue();
        while catalogue.changed().await.is_ok() {
            self.register_tools();
        }
    }

    /// What the model's subscriptions and polls found since the last call.
    pub fn take_news(&self) -> Vec<String> {
        let news = self.hub.take_news(&self.presence);
        news.into_iter()
            .map(|text| format!("[plexus] {text}"))
            .collect()
    }

    /// The configured servers, for the system prompt.
    pub fn for_prompt(&self) -> Vec<PromptServer> {
        let members = self.hub.status().into_iter().filter(is_server);
        members
            .map(|member| {
                let catalogue = self.hub.offer_of(&member.name);
                PromptServer {
                    state: member.state(),
                    instructions: catalogue.and_then(|offer| offer.instructions.clone()),
                    name: member.name.to_string(),
                }
            })
            .collect()
    }

    /// The servers whose tools are not available, each with the reason.
    pub fn unavailable(&self) -> Vec<(String, String)> {
        let members = self.hub.status().into_iter().filter(is_server);
        members
            .filter_map(|member| {
                let reason = match member.state() {
                    ServerState::Failed | ServerState::NeedsAuth => member
                        .reason()
                        .unwrap_or("it cannot be connected")
                        .to_owned(),
                    ServerState::Connected => member.list_problem(Section::Tools)?.to_string(),
                    _ => return None,
                };
                Some((member.name.to_string(), reason))
            })
            .collect()
    }

    fn has_servers(&self) -> bool {
        self.hub.status().iter().any(is_server)
    }

    /// The names of the services of this process.
    fn local_services(&self) -> HashSet<String> {
        let members = self.hub.status().into_iter();
        let local = members.filter(|member| !is_server(member));
        local.map(|member| member.name.to_string()).collect()
    }

    fn tool(
        &self,
        name: &str,
        origin: &Origin,
        entry: &Entry,
        is_local: bool,
    ) -> Option<ServerTool> {
        let tool: Tool = entry
            .definition
            .decode()
            .inspect_err(|error| {
                tracing::warn!(tool = name, %error, "a tool cannot be shown to the model");
            })
            .ok()?;
        Some(ServerTool {
            client: self.client.clone(),
            shown: entry.key.to_string(),
            name: name.to_owned(),
            is_trusted: is_local || self.trusted.contains(&*origin.member),
            origin: (!is_local).then(|| origin.clone()),
            tool,
        })
    }
}

/// Polls and subscriptions of the model end with the host.
impl Drop for Servers {
    fn drop(&mut self) {
        self.presence.end();
    }
}

impl std::fmt::Debug for Servers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Servers").finish_non_exhaustive()
    }
}

/// Whether a member is a server, and not a service of this process.
fn is_server(member: &MemberStatus) -> bool {
    member.status.is_some()
}
