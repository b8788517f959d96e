//! Health of the servers, for the built-in tool `health`.

use plexus_mcp_builtins::ServerHealth;
use plexus_mcp_client::ServerState;
use plexus_mcp_hub::Hub;

/// The health of the servers of a hub, without the built-in ones.
pub(crate) fn report(hub: &Hub) -> Vec<ServerHealth> {
    let servers = hub.status().into_iter().filter_map(|member| {
        let status = member.status?;
        let state = if member.enabled {
            status.state
        } else {
            ServerState::Disabled
        };
        Some(ServerHealth {
            name: member.name.as_ref().to_owned(),
            state: state.as_str().to_owned(),
            tools: member.tools.entries().len() as u64,
            error: status.reason,
        })
    });
    servers.collect()
}
