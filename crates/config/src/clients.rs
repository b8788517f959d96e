//! The configuration files of other MCP clients.
//!
//! [`read`] converts a file to definitions as in `.mcp.json`. Members with a counterpart are
//! translated, all others are listed in [`ImportedServer::left_out`]. Variables are not expanded.
//! [`ClientFile`] adds Plexus to a file, and turns its own servers off.
//!
//! Each client is one [`ClientFormat`], which names the source of the format.

mod content;
mod edit_json;
mod edit_toml;
mod edit_yaml;
mod formats;
mod jsonc;
mod programs;
mod reader;
mod rules;
mod shapes;
mod toml;
mod variables;
mod writer;
mod yaml;

use std::path::{Path, PathBuf};

use plexus_mcp_wire::Object;

use super::disk;
use super::locations::Locations;
use super::problem::ConfigProblem;

pub use self::formats::{ClientFormat, UNSUPPORTED, UnsupportedClient};
pub use self::programs::{AddCommand, AgentProgram};
use self::reader::Reading;
pub use self::writer::{ClientFile, Edit, PLEXUS, TakenBack};

/// A client whose configuration can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Client {
    /// Claude Code's own file, `~/.claude.json`.
    ClaudeCode,
    /// Claude Desktop.
    ClaudeDesktop,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    VsCode,
    /// Windsurf.
    Windsurf,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Zed.
    Zed,
    /// opencode.
    OpenCode,
    /// goose.
    Goose,
    /// Cline.
    Cline,
    /// Copilot CLI.
    CopilotCli,
    /// Continue.
    Continue,
    /// Junie.
    Junie,
    /// Kiro.
    Kiro,
    /// Qwen Code.
    QwenCode,
    /// Amp.
    Amp,
    /// LM Studio.
    LmStudio,
    /// Warp.
    Warp,
}

impl Client {
    /// All of them.
    pub const ALL: [Self; 19] = [
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::VsCode,
        Self::Windsurf,
        Self::Codex,
        Self::Gemini,
        Self::Zed,
        Self::OpenCode,
        Self::Goose,
        Self::Cline,
        Self::CopilotCli,
        Self::Continue,
        Self::Junie,
        Self::Kiro,
        Self::QwenCode,
        Self::Amp,
        Self::LmStudio,
        Self::Warp,
    ];

    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        self.format().name
    }

    /// The user's own files, whether they exist or not.
    pub fn user_files(self, locations: &Locations) -> Vec<PathBuf> {
        let places = self.format().user_files.iter();
        places.flat_map(|place| place.files(locations)).collect()
    }

    /// Its program, if it has one at a terminal.
    pub fn program(self) -> Option<&'static AgentProgram> {
        self.format().program.as_ref()
    }

    /// The files of the project, whether they exist or not.
    pub fn project_files(self, locations: &Locations) -> Vec<PathBuf> {
        let files = self.format().project_files.iter();
        files.map(|file| locations.project_dir.join(file)).collect()
    }
}

/// The content of another client's file.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Imported {
    /// Its servers, in order.
    pub servers: Vec<ImportedServer>,
    /// The problems found.
    pub problems: Vec<ConfigProblem>,
}

/// A server of another client. Its definition may hold secrets, which its debug form does not show.
#[derive(Clone)]
#[non_exhaustive]
pub struct ImportedServer {
    /// Its name.
    pub name: String,
    /// The project that it is for, if it is for one only.
    pub project: Option<PathBuf>,
    /// Its definition, as in `.mcp.json`.
    pub definition: Object,
    /// Steps that the user must take before it works.
    pub notes: Vec<String>,
    /// The members without a counterpart, as paths: `oauth.scopes`. They are not in the definition.
    pub left_out: Vec<String>,
    /// Why it cannot be taken over, for example because it is a part of the client.
    pub refused: Option<String>,
    /// Whether it is Plexus itself.
    pub is_plexus: bool,
}

impl std::fmt::Debug for ImportedServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let keys: Vec<_> = self.definition.iter().map(|(key, _)| key).collect();
        f.debug_struct("ImportedServer")
            .field("name", &self.name)
            .field("project", &self.project)
            .field("definition", &keys)
            .field("notes", &self.notes)
            .field("left_out", &self.left_out)
            .field("refused", &self.refused)
            .field("is_plexus", &self.is_plexus)
            .finish()
    }
}

/// Reads a file of `client` from the disk; `None` if there is no such file.
pub fn read_file(client: Client, file: &Path) -> Option<Imported> {
    match disk::read(file) {
        Ok(text) => Some(read(client, file, &text?)),
        Err(problem) => Some(Imported {
            servers: Vec::new(),
            problems: vec![problem],
        }),
    }
}

/// Reads a file of `client`.
pub fn read(client: Client, file: &Path, text: &str) -> Imported {
    match client.format().syntax.parse(file, text) {
        Ok(root) => Reading::new(client.format(), file, &root).finish(&root),
        Err(problem) => Imported {
            servers: Vec::new(),
            problems: vec![problem],
        },
    }
}

#[cfg(test)]
mod tests;
