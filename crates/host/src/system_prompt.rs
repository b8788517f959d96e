//! The part of the system prompt about MCP servers (S004-08).

use std::fmt::Write;

use plexus_mcp_client::ServerState;

/// The longest instructions of one server that the model is shown, in bytes.
const MAX_INSTRUCTIONS_BYTES: usize = 2048;

/// A configured server, as the prompt mentions it.
#[derive(Debug, Clone)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers construct it with a struct literal"
)]
pub struct PromptServer {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: ServerState,
    /// What it tells models about itself, if it is connected.
    pub instructions: Option<String>,
}

/// The section about servers; empty without servers.
pub fn section(servers: &[PromptServer]) -> String {
    if servers.is_empty() {
        return String::new();
    }
    let listed: Vec<_> = servers
        .iter()
        .map(|server| format!("{} ({})", server.name, server.state.as_str()))
        .collect();
    let mut text = format!(
        "# MCP servers\n\nThese MCP servers are configured: {}. Their tools are named \
         mcp__<server>__<tool>. Use ListMcpResources and ReadMcpResource for their resources.",
        listed.join(", ")
    );
    for server in servers {
        let connected = server.state == ServerState::Connected;
        let instructions = server.instructions.as_deref().map(str::trim);
        if let Some(instructions) = instructions.filter(|text| connected && !text.is_empty()) {
            let shown = beginning(instructions, MAX_INSTRUCTIONS_BYTES);
            let written = write!(
                text,
                "\n\nInstructions that the server {} gives, not the user:\n{shown}",
                server.name
            );
            debug_assert!(written.is_ok(), "writing to a string does not fail");
        }
    }
    text
}

/// At most so many bytes of a text.
fn beginning(text: &str, most_bytes: usize) -> String {
    if text.len() <= most_bytes {
        return text.to_owned();
    }
    let cut = text.floor_char_boundary(most_bytes);
    let (kept, _) = text.split_at(cut);
    format!("{kept} [cut off]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(name: &str, state: ServerState, instructions: Option<&str>) -> PromptServer {
        PromptServer {
            name: name.to_owned(),
            state,
            instructions: instructions.map(str::to_owned),
        }
    }

    /// S004-08.
    #[test]
    fn there_is_no_section_without_servers() {
        assert_eq!(section(&[]), "");
    }

    #[test]
    fn one_server_is_named_with_its_instructions() {
        let text = section(&[server("git", ServerState::Connected, Some(" Ask first. "))]);
        assert_eq!(
            text,
            "# MCP servers\n\nThese MCP servers are configured: git (connected). Their tools are \
             named mcp__<server>__<tool>. Use ListMcpResources and ReadMcpResource for their \
             resources.\n\nInstructions that the server git gives, not the user:\nAsk first."
        );
    }

    #[test]
    fn of_two_servers_the_failed_one_gives_no_instructions() {
        let text = section(&[
            server("git", ServerState::Connected, None),
            server("db", ServerState::Failed, Some("Old instructions")),
        ]);
        assert_eq!(
            text,
            "# MCP servers\n\nThese MCP servers are configured: git (connected), db (failed). Their \
             tools are named mcp__<server>__<tool>. Use ListMcpResources and ReadMcpResource for \
             their resources."
        );
    }

    #[test]
    fn long_instructions_are_cut_between_characters() {
        let long = "ü".repeat(2000);
        let text = section(&[server("git", ServerState::Connected, Some(&long))]);
        assert!(text.ends_with("ü [cut off]"), "{text}");
        assert!(text.len() < 2048 + 400, "{}", text.len());
    }
}
