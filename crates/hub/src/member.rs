//! One server of a hub.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plexus_client::{Definition, State, Upstream};
use plexus_service::{Catalogue, Fault, Service};
use tokio_util::sync::CancellationToken;

/// A server that is to be part of a hub.
#[non_exhaustive]
pub struct MemberSpec {
    /// Its name, which its entries' names begin with.
    pub name: String,
    /// What it is.
    pub kind: MemberKind,
    /// Changes whenever its connection must be made anew.
    pub fingerprint: [u8; 32],
    /// It is configured, but turned off.
    pub disabled: bool,
    /// It is connected again when it is lost.
    pub auto_restart: bool,
    /// Which of its tools are shown.
    pub shows_tool: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    /// Its names are shown as they are, unless another has them already.
    pub plain_names: bool,
}

impl MemberSpec {
    /// A server that is turned on, shown whole, and connected once.
    pub fn new(name: impl Into<String>, kind: MemberKind, fingerprint: [u8; 32]) -> Self {
        Self {
            name: name.into(),
            kind,
            fingerprint,
            disabled: false,
            auto_restart: false,
            shows_tool: Arc::new(|_| true),
            plain_names: false,
        }
    }
}

/// What a member is.
#[expect(clippy::exhaustive_enums, reason = "there is no third kind of member")]
pub enum MemberKind {
    /// A server that is connected.
    Upstream(Box<Definition>),
    /// A service in this process.
    Local(Arc<dyn Service>),
}

impl std::fmt::Debug for MemberKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Upstream(definition) => f.debug_tuple("Upstream").field(definition).finish(),
            Self::Local(_) => f.write_str("Local(..)"),
        }
    }
}

impl std::fmt::Debug for MemberSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemberSpec")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A server that is part of a hub.
pub(crate) struct Member {
    pub(crate) name: Arc<str>,
    pub(crate) fingerprint: [u8; 32],
    pub(crate) service: Arc<dyn Service>,
    pub(crate) upstream: Option<Upstream>,
    pub(crate) shows_tool: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    pub(crate) plain_names: bool,
    enabled: AtomicBool,
    auto_restart: bool,
    /// Fires when it is no longer part of the hub.
    pub(crate) over: CancellationToken,
}

impl Member {
    pub(crate) fn new(spec: MemberSpec) -> Self {
        let (service, upstream): (Arc<dyn Service>, _) = match spec.kind {
            MemberKind::Local(service) => (service, None),
            MemberKind::Upstream(definition) => {
                let upstream = Upstream::new(*definition);
                (Arc::new(upstream.clone()), Some(upstream))
            }
        };
        Self {
            name: spec.name.into(),
            fingerprint: spec.fingerprint,
            service,
            upstream,
            shows_tool: spec.shows_tool,
            plain_names: spec.plain_names,
            enabled: AtomicBool::new(!spec.disabled),
            auto_restart: spec.auto_restart,
            over: CancellationToken::new(),
        }
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled.load(Ordering::Relaxed)
    }

    /// Turns it on or off. Its connection stays (C39).
    pub(crate) fn enable(&self, enabled: bool) {
        self.enabled.store(enabled, Ordering::Relaxed);
    }

    /// What it offers, as far as is known.
    pub(crate) fn catalogue(&self) -> Arc<Catalogue> {
        Arc::clone(&self.service.catalogue().borrow())
    }

    /// The service, connected if it never was: the first call starts a server that waits for it.
    pub(crate) async fn ready(&self) -> Result<Arc<dyn Service>, Fault> {
        if !self.is_enabled() {
            return Err(Fault::Internal(format!(
                "the server {:?} is turned off",
                &*self.name
            )));
        }
        if let Some(upstream) = &self.upstream {
            let state = upstream.status().borrow().state;
            if state == State::Pending {
                let connected = upstream.connect().await;
                connected.map_err(|error| self.failure(&error.to_string()))?;
            }
        }
        Ok(Arc::clone(&self.service))
    }

    fn failure(&self, reason: &str) -> Fault {
        Fault::Internal(format!(
            "the server {:?} cannot be connected: {reason}",
            &*self.name
        ))
    }

    /// Connects it now, and again when it is lost, if it is to be.
    pub(crate) async fn keep_connected(self: Arc<Self>) {
        let Some(upstream) = &self.upstream else {
            return;
        };
        if self.auto_restart {
            upstream.keep_connected().await;
        } else {
            // A failure is its status.
            drop(upstream.connect().await);
        }
    }
}
