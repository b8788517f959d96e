//! Probes with `server/discover` which era a server speaks (TRANSLATION §3).

use plexus_mcp_protocol::{Era, Revision, code, method};
use plexus_mcp_wire::{Object, Raw, RpcError};

use super::{ConnectAttempt, ConnectError, Quirk};
use crate::definition::Definition;
use crate::hop_metadata;
use crate::link::LinkError;
use crate::rpc::{Rpc, RpcFailure, Traits};
use crate::server_facts::{Discovered, ServerFacts};

/// The result of a probe.
pub(super) enum Probed {
    Stateless(Box<ServerFacts>),
    Handshake,
}

impl ConnectAttempt<'_> {
    /// Interprets the answer to a probe.
    pub(super) fn conclude(
        &self,
        probed: Result<Discovered, RpcFailure>,
        quirks: &mut Vec<Quirk>,
    ) -> Result<Probed, ConnectError> {
        match probed {
            Ok(discovered) => chosen(discovered),
            Err(RpcFailure::Error(error)) => {
                self.refused(error, quirks)?;
                Ok(Probed::Handshake)
            }
            Err(RpcFailure::Link(error)) => Err(error.into()),
        }
    }

    /// An error in answer to `server/discover` means a handshake-era server, unless only stateless
    /// servers send this error (VER26-16, VER26-17, VER26-19).
    fn refused(&self, error: RpcError, quirks: &mut Vec<Quirk>) -> Result<(), ConnectError> {
        if is_modern(error.code) {
            let supported = supported(error.data.as_ref());
            let handshake = |name: &String| {
                name.parse::<Revision>()
                    .is_ok_and(|revision| revision.era() == Era::Handshake)
            };
            if self.definition.era.is_none() && supported.iter().any(handshake) {
                return Ok(());
            }
            if !supported.is_empty() {
                return Err(ConnectError::NoCommonVersion(supported));
            }
        }
        if is_modern(error.code) || self.definition.era == Some(Era::Stateless) {
            let (code, message) = (error.code, error.message);
            return Err(ConnectError::Refused {
                method: method::DISCOVER,
                code,
                message,
            });
        }
        quirks.push(Quirk::RefusesDiscover { code: error.code });
        Ok(())
    }
}

/// Sends `server/discover` with the newest stateless revision. If the error names other revisions,
/// asks once more with one of those.
pub(super) async fn discover(rpc: &Rpc, definition: &Definition) -> Result<Discovered, RpcFailure> {
    let mut answer = ask(rpc, definition, Revision::NEWEST_STATELESS).await;
    if let Err(RpcFailure::Error(error)) = &answer
        && error.code == code::UNSUPPORTED_PROTOCOL_VERSION
    {
        let named = supported(error.data.as_ref());
        let stateless = |revision: &Revision| revision.era() == Era::Stateless;
        let other = named
            .iter()
            .filter_map(|name| name.parse().ok())
            .find(stateless);
        if let Some(other) = other {
            answer = ask(rpc, definition, other).await;
        }
    }
    // Some lenient handshake-era servers answer unknown methods with a result.
    let odd = || RpcError {
        code: code::METHOD_NOT_FOUND,
        message: "the answer is no DiscoverResult".to_owned(),
        data: None,
    };
    match answer {
        Err(RpcFailure::Link(LinkError::InvalidAnswer(_))) => Err(RpcFailure::Error(odd())),
        answer => ServerFacts::from_discover(&answer?).ok_or_else(|| RpcFailure::Error(odd())),
    }
}

async fn ask(rpc: &Rpc, definition: &Definition, revision: Revision) -> Result<Raw, RpcFailure> {
    let own = hop_metadata::StatelessMeta {
        revision,
        capabilities: &definition.capabilities,
        client_info: &definition.client_info.to_raw(),
        log_level: None,
    };
    let nothing = Object::new();
    let params = hop_metadata::stateless(&nothing, None, own).to_raw();
    let headers = hop_metadata::mirrored_headers(revision, method::DISCOVER, &nothing, None);
    let traits = Traits {
        uncancellable: true,
        ..Traits::default()
    };
    rpc.request(method::DISCOVER, Some(params), headers, traits)
        .await?
        .answer()
        .await
}

/// The newest revision that both sides speak: stateless if there is one, else by handshake.
fn chosen(discovered: Discovered) -> Result<Probed, ConnectError> {
    let mut common: Vec<Revision> = discovered
        .versions
        .iter()
        .filter_map(|name| name.parse().ok())
        .collect();
    common.sort_unstable();
    match common.last() {
        Some(newest) if newest.era() == Era::Stateless => {
            let newest = *newest;
            Ok(Probed::Stateless(Box::new(discovered.speaking(newest))))
        }
        Some(_) => Ok(Probed::Handshake),
        None => Err(ConnectError::NoCommonVersion(discovered.versions)),
    }
}

fn supported(data: Option<&Raw>) -> Vec<String> {
    let object = data.and_then(|data| Object::parse(data).ok());
    object
        .and_then(|object| object.get("supported")?.decode().ok())
        .unwrap_or_default()
}

/// Codes that only servers of the stateless era send (VER26-16).
pub(super) fn is_modern(code: i64) -> bool {
    matches!(
        code,
        code::HEADER_MISMATCH
            | code::MISSING_CLIENT_CAPABILITY
            | code::UNSUPPORTED_PROTOCOL_VERSION
    )
}
