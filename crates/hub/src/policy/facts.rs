//! What a policy knows of a call.

use plexus_mcp::messages::ToolAnnotations;
use plexus_service::{Peer, Principal, Scopes};

/// What a policy knows of a tool, and of who calls it.
#[derive(Debug, Clone)]
pub struct ToolFacts<'a> {
    server: &'a str,
    names: [String; 4],
    trusted: bool,
    ours: bool,
    annotations: ToolAnnotations,
    principal: Principal,
    scopes: Option<Scopes>,
}

impl<'a> ToolFacts<'a> {
    /// The tool that `server` calls `tool`, and that is shown as `shown`.
    pub fn new(shown: &str, server: &'a str, tool: &str) -> Self {
        Self {
            server,
            names: [
                shown.to_owned(),
                format!("mcp__{server}__{tool}"),
                format!("{server}.{tool}"),
                // Differs from the above if the server's name has characters that are not shown.
                format!("mcp__{shown}"),
            ],
            trusted: false,
            ours: false,
            annotations: ToolAnnotations::default(),
            principal: Principal::anonymous(),
            scopes: None,
        }
    }

    /// What the server says of the tool, and whether that is believed.
    #[must_use]
    pub fn annotated(mut self, annotations: ToolAnnotations, trusted: bool) -> Self {
        self.annotations = annotations;
        self.trusted = trusted;
        self
    }

    /// Who calls it; somebody who was not asked, if it is not said.
    #[must_use]
    pub fn called_by(mut self, peer: &Peer) -> Self {
        self.principal = peer.principal.clone();
        self.scopes.clone_from(&peer.scopes);
        self
    }

    /// Makes it one of the tools that manage servers: no server has it, and only a rule that names
    /// it as it is shown is about it (S001-58).
    #[must_use]
    pub(crate) fn ours(mut self) -> Self {
        self.ours = true;
        self
    }

    /// Whether it is one of the tools that manage servers.
    pub(super) fn is_ours(&self) -> bool {
        self.ours
    }

    pub(super) fn principal(&self) -> &str {
        self.principal.as_str()
    }

    /// What the caller's token allows; `None` if it was asked for none.
    pub(super) fn scopes(&self) -> Option<&Scopes> {
        self.scopes.as_ref()
    }

    /// The server that has the tool.
    pub(super) fn server(&self) -> &str {
        self.server
    }

    /// The name under which clients see it.
    pub(super) fn shown(&self) -> &str {
        let [shown, ..] = &self.names;
        shown
    }

    /// Everything a rule may call it.
    pub(crate) fn names(&self) -> &[String] {
        match &self.names {
            [shown, ..] if self.ours => std::slice::from_ref(shown),
            names => names,
        }
    }

    /// Whether it changes nothing, according to a server that is believed.
    pub(super) fn is_harmless(&self) -> bool {
        self.trusted && self.annotations.read_only_hint == Some(true)
    }

    /// Whether it may destroy something, according to whomever: nobody says this to be let through.
    pub(super) fn is_destructive(&self) -> bool {
        self.annotations.destructive_hint == Some(true) && !self.is_harmless()
    }
}
