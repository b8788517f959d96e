//! The facts about a call that a policy decides on.

use std::borrow::Cow;

use plexus_mcp_core::{Peer, Principal, Scopes};
use plexus_mcp_protocol::messages::ToolAnnotations;
use plexus_mcp_wire::Raw;

/// The facts about a tool and its caller that a policy decides on.
#[derive(Debug, Clone)]
pub struct ToolFacts<'a> {
    server: &'a str,
    /// The name that users see, then the others.
    names: Vec<String>,
    trusted: bool,
    ours: bool,
    annotations: Annotations,
    principal: Principal,
    scopes: Option<Scopes>,
}

/// The annotations of a tool.
#[derive(Debug, Clone)]
enum Annotations {
    Known(ToolAnnotations),
    /// In this definition of the tool. Few decisions need them, so they are decoded when one does.
    In(Raw),
}

impl<'a> ToolFacts<'a> {
    /// The tool `tool` of `server`, shown to clients as `shown`.
    pub fn new(shown: &str, server: &'a str, tool: &str) -> Self {
        Self {
            server,
            names: vec![
                shown.to_owned(),
                format!("mcp__{server}__{tool}"),
                format!("{server}.{tool}"),
                // Differs from the name above if the server's name has characters that are
                // replaced.
                format!("mcp__{shown}"),
            ],
            trusted: false,
            ours: false,
            annotations: Annotations::Known(ToolAnnotations::default()),
            principal: Principal::anonymous(),
            scopes: None,
        }
    }

    /// A tool that is part of the program and belongs to no server. Only a rule with its own name
    /// matches it, so `mcp__*` does not.
    pub fn of_program(name: &'a str) -> Self {
        Self {
            names: vec![name.to_owned()],
            ..Self::new(name, name, name)
        }
    }

    /// Adds a name by which rules may match it.
    #[must_use]
    pub fn also_named(mut self, name: &str) -> Self {
        self.names.push(name.to_owned());
        self
    }

    /// Adds the annotations that the server gives the tool, and whether they are trusted.
    #[must_use]
    pub fn annotated(mut self, annotations: ToolAnnotations, trusted: bool) -> Self {
        self.annotations = Annotations::Known(annotations);
        self.trusted = trusted;
        self
    }

    /// The same, with the definition of the tool, which has its annotations.
    #[must_use]
    pub(crate) fn defined_by(mut self, definition: Raw, trusted: bool) -> Self {
        self.annotations = Annotations::In(definition);
        self.trusted = trusted;
        self
    }

    /// Adds the caller; without it, a caller that was asked for no token is assumed.
    #[must_use]
    pub fn called_by(mut self, peer: &Peer) -> Self {
        self.principal = peer.principal.clone();
        self.scopes.clone_from(&peer.scopes);
        self
    }

    /// Marks it as one of the tools that manage servers: it belongs to no server, and only a rule
    /// with its shown name matches it (S001-58).
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

    /// The scopes of the caller's token; `None` if the caller was asked for none.
    pub(super) fn scopes(&self) -> Option<&Scopes> {
        self.scopes.as_ref()
    }

    /// The server that has the tool.
    pub(super) fn server(&self) -> &str {
        self.server
    }

    /// The name that clients see.
    pub(super) fn shown(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }

    /// Every name by which a rule may match it.
    pub(crate) fn names(&self) -> &[String] {
        match self.names.as_slice() {
            [shown, ..] if self.ours => std::slice::from_ref(shown),
            names => names,
        }
    }

    /// Whether it is read-only, according to a trusted server.
    pub(super) fn is_harmless(&self) -> bool {
        self.trusted && self.annotations().read_only_hint == Some(true)
    }

    /// Whether it may be destructive, according to any server: a server gains nothing by claiming
    /// this.
    pub(super) fn is_destructive(&self) -> bool {
        self.annotations().destructive_hint == Some(true) && !self.is_harmless()
    }

    /// The annotations; hints that cannot be parsed are ignored.
    fn annotations(&self) -> Cow<'_, ToolAnnotations> {
        #[derive(serde::Deserialize)]
        struct Annotated {
            annotations: Option<ToolAnnotations>,
        }
        match &self.annotations {
            Annotations::Known(annotations) => Cow::Borrowed(annotations),
            Annotations::In(definition) => {
                let read = definition.decode::<Annotated>().ok();
                Cow::Owned(read.and_then(|tool| tool.annotations).unwrap_or_default())
            }
        }
    }
}
