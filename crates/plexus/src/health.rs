//! How the servers are doing, for the built-in tool `health`.

use plexus_activations::ServerHealth;
use plexus_client::State;
use plexus_hub::Hub;

/// What the servers of a hub are up to; the built-in ones are not among them.
pub(crate) fn report(hub: &Hub) -> Vec<ServerHealth> {
    let servers = hub.status().into_iter().filter_map(|member| {
        let status = member.status?;
        let state = if member.enabled {
            status.state
        } else {
            State::Disabled
        };
        Some(ServerHealth {
            name: member.name.as_ref().to_owned(),
            state: state.as_str().to_owned(),
            tools: member.tools as u64,
            error: status.reason,
        })
    });
    servers.collect()
}
