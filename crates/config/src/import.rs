//! Reads the configuration files of other clients.
//!
//! [`read`] converts one to definitions as in `.mcp.json`. Variables are not expanded, and unknown
//! members are kept.

mod codex;
mod jsonc;
mod rules;
mod variables;

use std::path::{Path, PathBuf};

use plexus_mcp_wire::{Object, Raw};

use self::rules::Rules;
use self::variables::Variables;
use super::locations::Locations;
use super::problem::ConfigProblem;
use super::{disk, json};

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
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Windsurf.
    Windsurf,
}

impl Client {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::VsCode,
        Self::Codex,
        Self::Gemini,
        Self::Windsurf,
    ];

    /// Its name on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Windsurf => "windsurf",
        }
    }

    /// The usual locations of its files, whether they exist or not.
    pub fn files(self, locations: &Locations) -> Vec<PathBuf> {
        let application_data = if cfg!(target_os = "macos") {
            "Library/Application Support"
        } else {
            ".config"
        };
        let (of_project, of_user): (Option<&str>, String) = match self {
            Self::ClaudeCode => (None, ".claude.json".into()),
            Self::ClaudeDesktop => {
                let file = "Claude/claude_desktop_config.json";
                (None, format!("{application_data}/{file}"))
            }
            Self::Cursor => (Some(".cursor/mcp.json"), ".cursor/mcp.json".into()),
            Self::VsCode => {
                let of_user = format!("{application_data}/Code/User/mcp.json");
                (Some(".vscode/mcp.json"), of_user)
            }
            Self::Codex => (Some(".codex/config.toml"), ".codex/config.toml".into()),
            Self::Gemini => (
                Some(".gemini/settings.json"),
                ".gemini/settings.json".into(),
            ),
            Self::Windsurf => (None, ".codeium/windsurf/mcp_config.json".into()),
        };
        let of_project = of_project.map(|file| locations.project_dir.join(file));
        let of_user = locations.home.as_ref().map(|home| home.join(of_user));
        of_project.into_iter().chain(of_user).collect()
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
}

impl std::fmt::Debug for ImportedServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let keys: Vec<_> = self.definition.iter().map(|(key, _)| key).collect();
        f.debug_struct("ImportedServer")
            .field("name", &self.name)
            .field("project", &self.project)
            .field("definition", &keys)
            .field("notes", &self.notes)
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
    let mut imported = Imported::default();
    let root = match client {
        Client::Codex => codex::parse(file, text),
        // These clients allow comments.
        Client::VsCode | Client::Cursor | Client::Gemini => {
            json::parse(file, &jsonc::to_json(text))
        }
        Client::ClaudeCode | Client::ClaudeDesktop | Client::Windsurf => json::parse(file, text),
    };
    let root = match root {
        Ok(root) => root,
        Err(problem) => {
            imported.problems.push(problem);
            return imported;
        }
    };
    let mut importing = Importing {
        client,
        file,
        variables: Variables::new(client, &root),
        imported,
    };
    importing.root(&root);
    importing.imported
}

struct Importing<'a> {
    client: Client,
    file: &'a Path,
    variables: Variables,
    imported: Imported,
}

impl Importing<'_> {
    fn root(&mut self, root: &Raw) {
        let key = match self.client {
            Client::VsCode => "servers",
            Client::Codex => "mcp_servers",
            _ => "mcpServers",
        };
        self.servers(root, key, None);
        if self.client == Client::ClaudeCode {
            let projects = member(root, "projects");
            let projects = projects.as_ref().and_then(json::members);
            for (project, settings) in projects.unwrap_or_default() {
                self.servers(&settings, key, Some(Path::new(&project)));
            }
        }
    }

    fn servers(&mut self, holder: &Raw, key: &str, project: Option<&Path>) {
        let Some(servers) = member(holder, key) else {
            return;
        };
        let Some(servers) = json::members(&servers) else {
            let problem = ConfigProblem::new(self.file, "an object is expected").key(key);
            return self.imported.problems.push(problem);
        };
        for (name, definition) in servers {
            match Object::parse(&definition) {
                Ok(definition) => self.server(name, &definition, project),
                Err(error) => {
                    let problem = ConfigProblem::new(self.file, error.to_string());
                    self.imported.problems.push(problem.server(name));
                }
            }
        }
    }

    fn server(&mut self, name: String, definition: &Object, project: Option<&Path>) {
        let mut notes = Vec::new();
        let definition = Rules::of(self.client).apply(definition, &mut notes);
        let definition = self.variables.translate(definition, &mut notes);
        self.imported.servers.push(ImportedServer {
            name,
            project: project.map(Path::to_owned),
            definition,
            notes,
        });
    }
}

/// The first member `key` of an object.
fn member(raw: &Raw, key: &str) -> Option<Raw> {
    let members = json::members(raw)?;
    let (_, value) = members.into_iter().find(|(name, _)| name == key)?;
    Some(value)
}

#[cfg(test)]
mod tests;
