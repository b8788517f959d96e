//! `initialize`, and what old validators expect besides.

use std::borrow::Cow;
use std::sync::Arc;

use plexus_mcp_core::{Fault, Peer};
use plexus_mcp_protocol::messages::{ClientCapabilities, InitializeResult};
use plexus_mcp_protocol::{Era, Revision};
use plexus_mcp_wire::{Object, Raw};

use super::{Negotiated, Session, shown};
use crate::caller::CallerIdentity;
use crate::encoder::{complete, json};
use crate::exchange::Exchange;
use crate::options::Profile;
use crate::parsed_request::ParsedRequest;

impl Session {
    /// Negotiates the revision, and answers with our identity and capabilities (LIFE-02, LIFE-07).
    pub(super) fn initialize(
        &self,
        asked: &ParsedRequest,
        caller: Option<&CallerIdentity>,
    ) -> Result<Exchange, Fault> {
        let invalid = |what: &str| Fault::InvalidParams(format!("initialize: {what}"));
        let params = asked.raw.as_ref();
        let params = params.ok_or_else(|| invalid("params are missing"))?;
        let params = Object::parse(params).map_err(|error| invalid(&error.to_string()))?;
        let requested = params
            .text("protocolVersion")
            .map(Cow::into_owned)
            .ok_or_else(|| invalid("protocolVersion must be a string"))?;
        let capabilities = match params.get("capabilities") {
            // Detached, because the capabilities are kept as long as the session.
            Some(raw) => ClientCapabilities::from_raw(&raw.detached())
                .map_err(|error| invalid(&error.to_string()))?,
            None => ClientCapabilities::none(),
        };
        let revision = self.negotiate(requested)?;
        let capabilities = capabilities.within(revision.features());
        let client_info = params.get("clientInfo").map(Raw::detached);
        let principal = self.principal.clone();
        let peer = Peer::new(revision, capabilities, client_info, principal);
        let peer = peer.present(self.presence.clone());
        let peer = shown(Arc::new(peer), caller);
        let catalogue = self.edge.catalogue_for(&peer);
        let encoder = self.edge.encoder(revision);
        let result = InitializeResult {
            protocol_version: revision.as_str().to_owned(),
            capabilities: catalogue.capabilities.to_raw(revision.features()),
            server_info: encoder.server_info.clone(),
            instructions: catalogue.instructions.clone(),
        };

        let mut state = self.state();
        state.lifecycle.initialize()?;
        state.negotiated = Some(Negotiated { peer, encoder });
        state.known = Some(catalogue);
        drop(state);
        Ok(Exchange::Answered(complete(&asked.id, &result.to_raw())))
    }

    /// The requested revision if a handshake can open it, else the newest that it can (C03).
    fn negotiate(&self, requested: String) -> Result<Revision, Fault> {
        let newest = self.edge.options.newest_handshake;
        match requested.parse::<Revision>() {
            Ok(revision) if revision.era() == Era::Handshake => Ok(revision.min(newest)),
            _ if self.edge.options.profile == Profile::Substrate => {
                let supported = Revision::supported(&[Era::Handshake]);
                Err(Fault::UnsupportedVersion {
                    requested,
                    supported,
                })
            }
            _ => Ok(newest),
        }
    }

    fn server_info(&self) -> Raw {
        let mut info = Object::parse(&self.edge.catalogue().identity.to_raw()).unwrap_or_default();
        info.set(
            "supportedVersions",
            json(&Revision::supported(&[Era::Handshake])),
        );
        info.to_raw()
    }

    /// C51: methods that no revision has, for a validator that needs them.
    pub(super) fn compatibility(&self, method: &str) -> Option<Raw> {
        if !self.edge.options.mcp_validator {
            return None;
        }
        match method {
            "server/info" => Some(self.server_info()),
            "shutdown" => Some(Raw::empty_object()),
            _ => None,
        }
    }
}
