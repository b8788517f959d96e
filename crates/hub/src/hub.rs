//! Many servers as one service.

mod answer;
mod management;
mod permission;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};

use futures_util::future::join_all;
use plexus_client::{Report, State, Status};
use plexus_mcp::messages::{CallToolResult, Implementation, ServerCapabilities};
use plexus_mcp::method;
use plexus_service::{Boxed, Call, Catalogue, Fault, Outcome, Peer, Section, Service, Updates};
use plexus_wire::{Object, Raw};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use management::WeakHub;

use crate::clients::Clients;
use crate::config::ToolFilter;
use crate::manage::Desk;
use crate::member::{Member, MemberSpec};
use crate::policy::{Gate, Policy};
use crate::routes::{Offer, Owner, Routes, merge};

/// Many servers as one [`Service`]. Cheap to clone: all clones are one.
#[derive(Clone)]
pub struct Hub {
    inner: Arc<Inner>,
}

struct Inner {
    identity: Implementation,
    members: RwLock<Vec<Arc<Member>>>,
    routes: RwLock<Arc<Routes>>,
    catalogue: watch::Sender<Arc<Catalogue>>,
    gate: Gate,
    clients: Clients,
    desk: OnceLock<Arc<Desk>>,
    changed: Arc<Notify>,
    /// One merges at a time.
    merging: Mutex<()>,
    tasks: TaskTracker,
    /// Fires when the hub is gone.
    gone: CancellationToken,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.gone.cancel();
    }
}

/// What [`Hub::set_members`] did (S004-53, C38).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SetMembers {
    /// New members.
    pub added: Vec<String>,
    /// Members that are gone.
    pub removed: Vec<String>,
    /// Members whose definition changed, which are connected anew.
    pub updated: Vec<String>,
}

/// How one member is doing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MemberStatus {
    /// Its name.
    pub name: Arc<str>,
    /// Whether it is turned on.
    pub enabled: bool,
    /// Its connection; `None` for a service in this process, which is always there.
    pub status: Option<Status>,
    /// What is known of it, while it is connected.
    pub report: Option<Report>,
    /// How many tools it offers.
    pub tools: usize,
}

impl Hub {
    /// A hub without members.
    pub fn new(identity: Implementation) -> Self {
        let nothing = Catalogue::new(identity.clone(), ServerCapabilities::default());
        let hub = Self {
            inner: Arc::new(Inner {
                identity,
                members: RwLock::default(),
                routes: RwLock::default(),
                catalogue: watch::Sender::new(Arc::new(nothing)),
                gate: Gate::default(),
                clients: Clients::default(),
                desk: OnceLock::new(),
                changed: Arc::default(),
                merging: Mutex::default(),
                tasks: TaskTracker::new(),
                gone: CancellationToken::new(),
            }),
        };
        let inner = &hub.inner;
        let (changed, gone) = (Arc::clone(&inner.changed), inner.gone.clone());
        inner
            .tasks
            .spawn(keep_merged(Arc::downgrade(inner), changed, gone));
        hub
    }

    /// Makes these the members, in this order. Members that stay as they were are not touched:
    /// their connections and calls go on. New ones are not connected before they are needed, or
    /// [`Hub::connect_all`] is called.
    pub async fn set_members(&self, specs: Vec<MemberSpec>) -> SetMembers {
        let mut changes = SetMembers::default();
        let mut leaving: HashMap<Arc<str>, Arc<Member>> = self
            .members()
            .into_iter()
            .map(|member| (Arc::clone(&member.name), member))
            .collect();
        let mut members = Vec::with_capacity(specs.len());
        let mut ended = Vec::new();
        for spec in specs {
            match leaving.remove(spec.name.as_str()) {
                Some(member) if member.fingerprint == spec.fingerprint => members.push(member),
                Some(old) => {
                    changes.updated.push(spec.name.clone());
                    // Whoever turned it off wants the new one off, too (C38).
                    let enabled = old.is_enabled() && !spec.disabled;
                    ended.push(old);
                    let member = self.admit(spec);
                    member.enable(enabled);
                    members.push(member);
                }
                None => {
                    changes.added.push(spec.name.clone());
                    members.push(self.admit(spec));
                }
            }
        }
        changes.removed = leaving.keys().map(ToString::to_string).collect();
        changes.removed.sort_unstable();
        *self
            .inner
            .members
            .write()
            .unwrap_or_else(PoisonError::into_inner) = members;
        self.inner.merge();
        join_all(leaving.into_values().chain(ended).map(end)).await;
        changes
    }

    /// Makes this the policy for calls of tools from now on; until the first, every call is
    /// allowed. What humans allowed for always stays allowed where the same rule asks again.
    pub fn set_policy(&self, policy: Policy) {
        self.inner.gate.set(policy);
    }

    /// Shows each client that is named only the tools that its filter lets through, from now on;
    /// what a client is not shown, it cannot call either.
    pub fn set_clients(&self, filters: BTreeMap<String, ToolFilter>) {
        let inner = &self.inner;
        let merging = inner.merging.lock().unwrap_or_else(PoisonError::into_inner);
        let whole = Arc::clone(&inner.catalogue.borrow());
        inner.clients.set(filters, &whole, &self.routes());
        drop(merging);
        // Whoever has a filter now, or has none any more, is to compare.
        inner.catalogue.send_modify(|_whole| {});
    }

    /// Connects every member that is turned on, all at once; when this returns, each is connected
    /// or has failed by itself.
    pub async fn connect_all(&self) {
        let members = self
            .members()
            .into_iter()
            .filter(|member| member.is_enabled());
        let connecting = members.filter_map(|member| {
            let upstream = member.upstream.clone()?;
            Some(async move { upstream.connect().await })
        });
        // Each failure is its member's status.
        drop(join_all(connecting).await);
        self.inner.merge();
    }

    /// Waits until every member that is turned on is connected or has failed.
    pub async fn settled(&self) {
        let members = self
            .members()
            .into_iter()
            .filter(|member| member.is_enabled());
        let settling = members.filter_map(|member| {
            let mut status = member.upstream.as_ref()?.status();
            Some(async move {
                drop(
                    status
                        .wait_for(|status| status.state != State::Pending)
                        .await,
                );
            })
        });
        join_all(settling).await;
        self.inner.merge();
    }

    /// Begins to connect every member that is turned on, in the background, and keeps those
    /// connected that are to be.
    pub fn connect_in_background(&self) {
        for member in self.members() {
            if member.is_enabled() && member.upstream.is_some() {
                let over = member.over.clone();
                self.inner.tasks.spawn(async move {
                    over.run_until_cancelled(member.keep_connected()).await;
                });
            }
        }
    }

    /// Ends a member's connection and makes a new one (S004-51).
    ///
    /// # Errors
    /// There is no such member, or it cannot be connected.
    pub async fn reconnect(&self, name: &str) -> Result<(), Fault> {
        let member = self.member(name)?;
        let Some(upstream) = &member.upstream else {
            return Ok(());
        };
        upstream
            .reconnect()
            .await
            .map_err(|error| Fault::Internal(error.to_string()))
    }

    /// Turns a member on or off (S004-52). Its connection stays; what it offers is shown or not.
    ///
    /// # Errors
    /// There is no such member.
    pub fn toggle(&self, name: &str, enabled: bool) -> Result<(), Fault> {
        self.member(name)?.enable(enabled);
        self.inner.merge();
        Ok(())
    }

    /// How every member is doing, in order (S004-54).
    pub fn status(&self) -> Vec<MemberStatus> {
        let members = self.members();
        let status = |member: &Arc<Member>| MemberStatus {
            name: Arc::clone(&member.name),
            enabled: member.is_enabled(),
            status: member
                .upstream
                .as_ref()
                .map(|upstream| upstream.status().borrow().clone()),
            report: member
                .upstream
                .as_ref()
                .and_then(plexus_client::Upstream::report),
            tools: member.catalogue().list(Section::Tools).entries().len(),
        };
        members.iter().map(status).collect()
    }

    /// Ends all connections.
    pub async fn close(&self) {
        self.set_members(Vec::new()).await;
    }

    fn admit(&self, spec: MemberSpec) -> Arc<Member> {
        let member = Arc::new(Member::new(spec));
        let mut catalogue = member.service.catalogue();
        let inner = Arc::downgrade(&self.inner);
        let over = member.over.clone();
        self.inner
            .tasks
            .spawn(over.run_until_cancelled_owned(async move {
                while catalogue.changed().await.is_ok() {
                    let Some(inner) = inner.upgrade() else { return };
                    inner.changed.notify_one();
                }
            }));
        member
    }

    fn members(&self) -> Vec<Arc<Member>> {
        self.inner
            .members
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn member(&self, name: &str) -> Result<Arc<Member>, Fault> {
        let found = self
            .members()
            .into_iter()
            .find(|member| &*member.name == name);
        found.ok_or_else(|| Fault::InvalidParams(format!("there is no server {name:?}")))
    }

    fn routes(&self) -> Arc<Routes> {
        Arc::clone(
            &self
                .inner
                .routes
                .read()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    /// Passes a call on to whoever it is for.
    async fn pass_on(self, mut call: Call) -> Outcome {
        let (member, params) = self.address(&call)?;
        if let Some(params) = params {
            call.params = params;
        }
        if let Some(refusal) = self.refusal(&call, &member).await? {
            return Ok(CallToolResult::error(refusal).to_raw());
        }
        if !member.plain_names {
            call.events = call.events.naming(&member.name);
        }
        member.ready().await?.call(call).await
    }

    /// Whom a call is for, and its parameters if they must change on the way there.
    fn address(&self, call: &Call) -> Result<(Arc<Member>, Option<Raw>), Fault> {
        let invalid = |why: String| Fault::InvalidParams(format!("params: {why}"));
        let mut params = Object::parse(&call.params).map_err(|error| invalid(error.to_string()))?;
        let routes = self.routes();
        let text = |params: &Object, member: &str| -> Result<String, Fault> {
            let value = params.get(member).and_then(|value| value.decode().ok());
            value.ok_or_else(|| invalid(format!("{member} must be a string")))
        };
        let (owner, member) = match &*call.method {
            method::TOOLS_CALL => {
                let name = text(&params, "name")?;
                let clients = &self.inner.clients;
                (
                    routes
                        .tool(&name)
                        .filter(|owner| clients.shows(call.peer(), &routes, owner))
                        .cloned()
                        .ok_or(Fault::UnknownTool(name))?,
                    "name",
                )
            }
            method::PROMPTS_GET => {
                let name = text(&params, "name")?;
                (
                    routes
                        .prompt(&name)
                        .cloned()
                        .ok_or(Fault::UnknownPrompt(name))?,
                    "name",
                )
            }
            method::RESOURCES_READ => {
                let uri = text(&params, "uri")?;
                (
                    routes.resource(&uri).ok_or(Fault::ResourceNotFound(uri))?,
                    "uri",
                )
            }
            method::COMPLETE => return self.address_completion(&routes, params),
            // A method that we do not know can only be meant for the one server there is.
            other => {
                let only = self.only_server();
                let unknown = || Fault::MethodNotFound(other.to_owned());
                return Ok((only.ok_or_else(unknown)?, None));
            }
        };
        params.set(
            member,
            Raw::encode(&*owner.key).map_err(|error| invalid(error.to_string()))?,
        );
        Ok((self.member(&owner.member)?, Some(params.into_raw())))
    }

    /// A completion is for whoever owns the prompt or the template that it refers to.
    fn address_completion(
        &self,
        routes: &Routes,
        mut params: Object,
    ) -> Result<(Arc<Member>, Option<Raw>), Fault> {
        let invalid = || Fault::InvalidParams("params.ref names no prompt or resource".to_owned());
        let mut reference = params
            .get("ref")
            .and_then(|raw| Object::parse(raw).ok())
            .ok_or_else(invalid)?;
        let text = |member: &str| {
            reference
                .get(member)
                .and_then(|raw| raw.decode::<String>().ok())
        };
        let (owner, member): (Owner, _) = match (text("name"), text("uri")) {
            (Some(name), _) => (
                routes
                    .prompt(&name)
                    .cloned()
                    .ok_or(Fault::UnknownPrompt(name))?,
                "name",
            ),
            (None, Some(uri)) => (
                routes.template(&uri).ok_or(Fault::ResourceNotFound(uri))?,
                "uri",
            ),
            (None, None) => return Err(invalid()),
        };
        reference.set(
            member,
            Raw::encode(&*owner.key).map_err(|_error| invalid())?,
        );
        params.set("ref", reference.into_raw());
        Ok((self.member(&owner.member)?, Some(params.into_raw())))
    }
}

impl Inner {
    /// Makes one catalogue of what the members offer now.
    fn merge(&self) {
        // Two at once could store what is no longer so.
        let _one_at_a_time = self.merging.lock().unwrap_or_else(PoisonError::into_inner);
        let members = self
            .members
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let enabled = members.iter().filter(|member| member.is_enabled());
        let offers: Vec<Offer> = enabled
            .map(|member| Offer {
                member: Arc::clone(&member.name),
                catalogue: member.catalogue(),
                shows_tool: Arc::clone(&member.shows_tool),
                plain_names: member.plain_names,
            })
            .collect();
        let (merged, routes) = merge(self.identity.clone(), &offers);
        self.clients.refresh(&merged, &routes);
        *self.routes.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(routes);
        self.catalogue.send_if_modified(|known| {
            let differs = merged.differs_from(known);
            if differs {
                *known = Arc::new(merged);
            }
            differs
        });
    }
}

/// Merges again whenever a member's offer changes, until the hub is gone.
async fn keep_merged(inner: Weak<Inner>, changed: Arc<Notify>, gone: CancellationToken) {
    while gone.run_until_cancelled(changed.notified()).await.is_some() {
        let Some(inner) = inner.upgrade() else { return };
        inner.merge();
    }
}

async fn end(member: Arc<Member>) {
    member.over.cancel();
    if let Some(upstream) = &member.upstream {
        upstream.disconnect().await;
    }
}

impl Service for Hub {
    fn catalogue(&self) -> watch::Receiver<Arc<Catalogue>> {
        self.inner.catalogue.subscribe()
    }

    fn catalogue_for(&self, peer: &Peer) -> Option<watch::Receiver<Arc<Catalogue>>> {
        self.inner.clients.catalogue(peer)
    }

    fn call(&self, call: Call) -> Boxed<Outcome> {
        Box::pin(self.clone().answer(call))
    }

    fn subscribe(&self, peer: &Arc<Peer>, uri: &str) -> Boxed<Result<Updates, Fault>> {
        let (hub, peer, uri) = (self.clone(), Arc::clone(peer), uri.to_owned());
        Box::pin(async move {
            let owner = hub
                .routes()
                .resource(&uri)
                .ok_or(Fault::ResourceNotFound(uri))?;
            let service = hub.member(&owner.member)?.ready().await?;
            service.subscribe(&peer, &owner.key).await
        })
    }
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self
            .members()
            .iter()
            .map(|member| Arc::clone(&member.name))
            .collect();
        f.debug_struct("Hub")
            .field("members", &names)
            .finish_non_exhaustive()
    }
}
