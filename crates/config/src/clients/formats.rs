//! The table of clients: where their files are, and how a server is written in them.

use std::fs;
use std::path::{Path, PathBuf};

use plexus_mcp_wire::Raw;

use super::programs::{self, AgentProgram};
use super::rules::Rule::{Enabled, Implied, Millis, OAuth, Rename, Seconds};
use super::rules::{Rule, Translation};
use super::variables::Notation;
use super::writer::CommandKeys::{Joined, Split};
use super::writer::Disabling::{Key, Removal};
use super::writer::Writing;
use super::{Client, jsonc, shapes, toml, yaml};
use crate::json;
use crate::locations::Locations;
use crate::problem::ConfigProblem;

/// The files of a client, and how a server is written in them.
#[derive(Debug)]
#[non_exhaustive]
pub struct ClientFormat {
    /// The name on the command line.
    pub name: &'static str,
    /// The name of the product.
    pub title: &'static str,
    /// Where the format is described: the address of the documentation, or a package with its
    /// version.
    pub source: &'static str,
    pub(super) user_files: &'static [Place],
    /// Files in a project.
    pub(super) project_files: &'static [&'static str],
    pub(super) syntax: Syntax,
    /// The keys that lead to the servers.
    pub(super) servers: &'static [&'static str],
    pub(super) notation: Notation,
    /// The keys that differ from ours.
    pub(super) rules: &'static [(&'static str, Rule)],
    /// Changes of the structure, made before the rules are applied.
    pub(super) shape: Option<fn(&mut Translation)>,
    pub(super) writing: Writing,
    /// The program at a terminal, by which the client is found before it has a file.
    pub(super) program: Option<AgentProgram>,
}

/// A client that is left out.
#[derive(Debug)]
#[non_exhaustive]
pub struct UnsupportedClient {
    /// The name of the product.
    pub title: &'static str,
    /// Why it is left out.
    pub reason: &'static str,
}

/// Clients that have servers, but no documented file.
pub const UNSUPPORTED: [UnsupportedClient; 1] = [UnsupportedClient {
    title: "JetBrains AI Assistant",
    reason: "its documentation describes a dialog, and no file: \
             https://www.jetbrains.com/help/ai-assistant/configure-an-mcp-server.html",
}];

/// The place of a file of a user.
#[derive(Debug)]
pub(super) enum Place {
    /// In the home directory.
    Home(&'static str),
    /// In `$XDG_CONFIG_HOME`, which is `~/.config` by default, also on macOS.
    Config(&'static str),
    /// In the directory in which desktop programs keep their data.
    Application(&'static str),
    /// All YAML and JSON files in a folder of the home directory.
    Folder(&'static str),
}

/// The syntax of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    Json,
    /// JSON with comments and trailing commas.
    Jsonc,
    Toml,
    Yaml,
}

impl Place {
    /// The path below its directory.
    #[cfg(test)]
    pub(super) fn path(&self) -> &'static str {
        match self {
            Self::Home(path)
            | Self::Config(path)
            | Self::Application(path)
            | Self::Folder(path) => path,
        }
    }

    /// The files, whether they exist or not; those of a folder exist.
    pub(super) fn files(&self, locations: &Locations) -> Vec<PathBuf> {
        let home = locations.home.as_deref();
        let config = || match locations.config_dir.as_deref().and_then(Path::parent) {
            Some(config) => Some(config.to_owned()),
            None => Some(home?.join(".config")),
        };
        let file = match self {
            Self::Home(file) => home.map(|home| home.join(file)),
            Self::Application(file) if cfg!(target_os = "macos") => {
                home.map(|home| home.join("Library/Application Support").join(file))
            }
            Self::Config(file) | Self::Application(file) => {
                config().map(|config| config.join(file))
            }
            Self::Folder(folder) => {
                return home.map_or_else(Vec::new, |home| definitions_in(&home.join(folder)));
            }
        };
        file.into_iter().collect()
    }
}

/// The YAML and JSON files of a folder, in the order of their names.
fn definitions_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries
        .map(|entry| entry.path())
        .filter(|file| {
            let ending = file.extension().and_then(|ending| ending.to_str());
            matches!(ending, Some("yaml" | "yml" | "json"))
        })
        .collect();
    files.sort();
    files
}

impl Syntax {
    /// The file as JSON.
    pub(super) fn parse(self, file: &Path, text: &str) -> Result<Raw, ConfigProblem> {
        match self {
            Self::Json => json::parse(file, text),
            Self::Jsonc => json::parse(file, &jsonc::to_json(text)),
            Self::Toml => toml::parse(file, text),
            Self::Yaml => yaml::parse(file, text),
        }
    }
}

const MCP_SERVERS: &[&str] = &["mcpServers"];

impl Client {
    /// Its files and its notation.
    pub const fn format(self) -> &'static ClientFormat {
        match self {
            Self::ClaudeCode => &CLAUDE_CODE,
            Self::ClaudeDesktop => &CLAUDE_DESKTOP,
            Self::Cursor => &CURSOR,
            Self::VsCode => &VS_CODE,
            Self::Windsurf => &WINDSURF,
            Self::Codex => &CODEX,
            Self::Gemini => &GEMINI,
            Self::Zed => &ZED,
            Self::OpenCode => &OPENCODE,
            Self::Goose => &GOOSE,
            Self::Cline => &CLINE,
            Self::CopilotCli => &COPILOT_CLI,
            Self::Continue => &CONTINUE,
            Self::Junie => &JUNIE,
            Self::Kiro => &KIRO,
            Self::QwenCode => &QWEN_CODE,
            Self::Amp => &AMP,
            Self::LmStudio => &LM_STUDIO,
            Self::Warp => &WARP,
        }
    }
}

/// The common notation, which is that of `.mcp.json`.
const COMMON: ClientFormat = ClientFormat {
    name: "",
    title: "",
    source: "",
    user_files: &[],
    project_files: &[],
    syntax: Syntax::Json,
    servers: MCP_SERVERS,
    notation: Notation::Ours,
    rules: &[],
    shape: None,
    writing: COMMON_WRITING,
    program: None,
};

/// The program and its arguments, and no key that turns a server off.
const COMMON_WRITING: Writing = Writing {
    head: &[],
    command: Split("command"),
    tail: &[],
    disabling: Removal,
    is_list: false,
};

const STDIO: &[(&str, &str)] = &[("type", "\"stdio\"")];

/// The files of its projects are those of Plexus, so only its own file is read.
static CLAUDE_CODE: ClientFormat = ClientFormat {
    name: "claude-code",
    title: "Claude Code",
    source: "@anthropic-ai/claude-code 2.1.325, https://code.claude.com/docs/en/mcp",
    user_files: &[Place::Home(".claude.json")],
    rules: &[("timeout", Rename("timeout_ms"))],
    writing: Writing {
        head: STDIO,
        ..COMMON_WRITING
    },
    program: Some(programs::CLAUDE_CODE),
    ..COMMON
};

static CLAUDE_DESKTOP: ClientFormat = ClientFormat {
    name: "claude-desktop",
    title: "Claude Desktop",
    source: "https://modelcontextprotocol.io/docs/develop/connect-local-servers",
    user_files: &[Place::Application("Claude/claude_desktop_config.json")],
    ..COMMON
};

static CURSOR: ClientFormat = ClientFormat {
    name: "cursor",
    title: "Cursor",
    source: "https://cursor.com/docs/context/mcp",
    user_files: &[Place::Home(".cursor/mcp.json")],
    project_files: &[".cursor/mcp.json"],
    syntax: Syntax::Jsonc,
    notation: Notation::Editor,
    rules: CURSOR_RULES,
    writing: Writing {
        head: STDIO,
        ..COMMON_WRITING
    },
    ..COMMON
};

const CURSOR_RULES: &[(&str, Rule)] = &[
    ("envFile", Rename("env_file")),
    (
        "auth",
        OAuth(&[("CLIENT_ID", "clientId"), ("CLIENT_SECRET", "clientSecret")]),
    ),
];

static VS_CODE: ClientFormat = ClientFormat {
    name: "vscode",
    title: "Visual Studio Code",
    source: "https://code.visualstudio.com/docs/copilot/reference/mcp-configuration",
    user_files: &[Place::Application("Code/User/mcp.json")],
    project_files: &[".vscode/mcp.json"],
    syntax: Syntax::Jsonc,
    servers: &["servers"],
    notation: Notation::Editor,
    rules: &[("envFile", Rename("env_file"))],
    writing: Writing {
        head: STDIO,
        ..COMMON_WRITING
    },
    ..COMMON
};

static WINDSURF: ClientFormat = ClientFormat {
    name: "windsurf",
    title: "Windsurf",
    source: "https://docs.windsurf.com/windsurf/cascade/mcp",
    user_files: &[Place::Home(".codeium/windsurf/mcp_config.json")],
    notation: Notation::Editor,
    rules: &[
        ("serverUrl", Rename("url")),
        ("disabledTools", Rename("deny")),
    ],
    writing: Writing {
        disabling: Key("disabled", true),
        ..COMMON_WRITING
    },
    ..COMMON
};

static CODEX: ClientFormat = ClientFormat {
    name: "codex",
    title: "Codex",
    source: "@openai/codex 0.166.0, https://developers.openai.com/codex/mcp",
    user_files: &[Place::Home(".codex/config.toml")],
    project_files: &[".codex/config.toml"],
    syntax: Syntax::Toml,
    servers: &["mcp_servers"],
    rules: &[
        ("http_headers", Rename("headers")),
        ("enabled_tools", Rename("allow")),
        ("disabled_tools", Rename("deny")),
        ("enabled", Enabled),
        ("startup_timeout_sec", Rename("startup_timeout")),
        ("startup_timeout_ms", Millis("startup_timeout")),
        ("tool_timeout_sec", Seconds("timeout_ms")),
        (
            "oauth",
            OAuth(&[("client_id", "clientId"), ("callback_port", "callbackPort")]),
        ),
        // Programs get all variables of Plexus.
        ("env_vars", Implied),
    ],
    shape: Some(shapes::codex),
    writing: Writing {
        disabling: Key("enabled", false),
        ..COMMON_WRITING
    },
    program: Some(programs::CODEX),
    ..COMMON
};

static GEMINI: ClientFormat = ClientFormat {
    name: "gemini",
    title: "Gemini CLI",
    source: "@google/gemini-cli 0.61.0 (docs/tools/mcp-server.md)",
    user_files: &[Place::Home(".gemini/settings.json")],
    project_files: &[".gemini/settings.json"],
    rules: GEMINI_RULES,
    program: Some(programs::GEMINI),
    ..GEMINI_FAMILY
};

/// Gemini CLI and its descendant.
const GEMINI_FAMILY: ClientFormat = ClientFormat {
    syntax: Syntax::Jsonc,
    notation: Notation::Shell,
    shape: Some(shapes::gemini),
    ..COMMON
};

const GEMINI_RULES: &[(&str, Rule)] = &[
    ("timeout", Rename("timeout_ms")),
    ("trust", Rename("trusted")),
    ("includeTools", Rename("allow")),
    ("excludeTools", Rename("deny")),
];

static ZED: ClientFormat = ClientFormat {
    name: "zed",
    title: "Zed",
    source: "https://zed.dev/docs/ai/mcp, zed-industries/zed crates/settings_content/src/project.rs",
    user_files: &[Place::Config("zed/settings.json")],
    project_files: &[".zed/settings.json"],
    syntax: Syntax::Jsonc,
    servers: &["context_servers"],
    rules: &[
        ("source", Implied),
        ("enabled", Enabled),
        ("timeout", Seconds("timeout_ms")),
        (
            "oauth",
            OAuth(&[("client_id", "clientId"), ("client_secret", "clientSecret")]),
        ),
    ],
    shape: Some(shapes::zed),
    writing: Writing {
        head: &[("source", "\"custom\"")],
        disabling: Key("enabled", false),
        ..COMMON_WRITING
    },
    ..COMMON
};

static OPENCODE: ClientFormat = ClientFormat {
    name: "opencode",
    title: "opencode",
    source: "@opencode-ai/sdk 1.19.3 (McpLocalConfig), https://opencode.ai/docs/mcp-servers",
    user_files: &[
        Place::Config("opencode/opencode.json"),
        Place::Config("opencode/opencode.jsonc"),
    ],
    project_files: &["opencode.json", "opencode.jsonc"],
    syntax: Syntax::Jsonc,
    servers: &["mcp"],
    notation: Notation::OpenCode,
    rules: &[
        ("environment", Rename("env")),
        ("enabled", Enabled),
        // Its time for the list of tools.
        ("timeout", Millis("startup_timeout")),
    ],
    shape: Some(shapes::opencode),
    writing: Writing {
        head: &[("type", "\"local\"")],
        command: Joined,
        tail: &[("enabled", "true")],
        disabling: Key("enabled", false),
        ..COMMON_WRITING
    },
    program: Some(programs::OPENCODE),
    ..COMMON
};

static GOOSE: ClientFormat = ClientFormat {
    name: "goose",
    title: "goose",
    source: "https://goose-docs.ai/docs/guides/config-files, \
             aaif-goose/goose crates/goose/src/agents/extension.rs",
    user_files: &[Place::Config("goose/config.yaml")],
    syntax: Syntax::Yaml,
    servers: &["extensions"],
    notation: Notation::Shell,
    rules: &[
        ("name", Implied),
        ("bundled", Implied),
        ("cmd", Rename("command")),
        ("envs", Rename("env")),
        ("uri", Rename("url")),
        ("enabled", Enabled),
        ("timeout", Seconds("timeout_ms")),
        ("available_tools", Rename("allow")),
    ],
    shape: Some(shapes::goose),
    writing: Writing {
        head: &[
            ("type", "\"stdio\""),
            ("name", "\"plexus\""),
            ("enabled", "true"),
        ],
        command: Split("cmd"),
        tail: &[("description", "\"All MCP servers\""), ("timeout", "300")],
        disabling: Key("enabled", false),
        ..COMMON_WRITING
    },
    program: Some(programs::GOOSE),
    ..COMMON
};

/// The first file is that of all its programs, the second one of older versions.
static CLINE: ClientFormat = ClientFormat {
    name: "cline",
    title: "Cline",
    source: "cline/cline src/services/mcp/schemas.ts, https://docs.cline.bot/mcp",
    user_files: &[
        Place::Home(".cline/data/settings/cline_mcp_settings.json"),
        Place::Application(
            "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        ),
    ],
    notation: Notation::Editor,
    rules: &[
        ("timeout", Seconds("timeout_ms")),
        ("transportType", Implied),
    ],
    shape: Some(shapes::cline),
    writing: Writing {
        disabling: Key("disabled", true),
        ..COMMON_WRITING
    },
    ..COMMON
};

static COPILOT_CLI: ClientFormat = ClientFormat {
    name: "copilot-cli",
    title: "Copilot CLI",
    source: "https://docs.github.com/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers",
    user_files: &[Place::Home(".copilot/mcp-config.json")],
    project_files: &[".github/mcp.json"],
    rules: &[
        ("timeout", Rename("timeout_ms")),
        ("tools", Rename("allow")),
    ],
    shape: Some(shapes::copilot),
    writing: Writing {
        head: &[("type", "\"local\"")],
        tail: &[("tools", "[\"*\"]")],
        ..COMMON_WRITING
    },
    program: Some(programs::COPILOT_CLI),
    ..COMMON
};

static CONTINUE: ClientFormat = ClientFormat {
    name: "continue",
    title: "Continue",
    source: "@continuedev/config-yaml 1.42.0 (schemas/mcp), https://docs.continue.dev/reference",
    user_files: &[
        Place::Home(".continue/config.yaml"),
        Place::Folder(".continue/mcpServers"),
    ],
    syntax: Syntax::Yaml,
    notation: Notation::Continue,
    rules: &[
        ("name", Implied),
        ("connectionTimeout", Millis("startup_timeout")),
    ],
    shape: Some(shapes::continue_dev),
    writing: Writing {
        head: &[("name", "\"plexus\"")],
        is_list: true,
        ..COMMON_WRITING
    },
    ..COMMON
};

static JUNIE: ClientFormat = ClientFormat {
    name: "junie",
    title: "JetBrains Junie",
    source: "https://junie.jetbrains.com/docs/junie-cli-mcp-configuration.html",
    user_files: &[Place::Home(".junie/mcp/mcp.json")],
    project_files: &[".junie/mcp/mcp.json"],
    ..COMMON
};

static KIRO: ClientFormat = ClientFormat {
    name: "kiro",
    title: "Kiro",
    source: "https://kiro.dev/docs/mcp/configuration",
    user_files: &[Place::Home(".kiro/settings/mcp.json")],
    project_files: &[".kiro/settings/mcp.json"],
    rules: &[("disabledTools", Rename("deny"))],
    writing: Writing {
        disabling: Key("disabled", true),
        ..COMMON_WRITING
    },
    ..COMMON
};

static QWEN_CODE: ClientFormat = ClientFormat {
    name: "qwen-code",
    title: "Qwen Code",
    source: "@qwen-code/qwen-code 0.24.4 (docs/features/mcp.md)",
    user_files: &[Place::Home(".qwen/settings.json")],
    project_files: &[".qwen/settings.json"],
    rules: &[
        ("timeout", Rename("timeout_ms")),
        ("trust", Rename("trusted")),
        ("includeTools", Rename("allow")),
        ("excludeTools", Rename("deny")),
        ("discoveryTimeoutMs", Millis("startup_timeout")),
    ],
    program: Some(programs::QWEN_CODE),
    ..GEMINI_FAMILY
};

static AMP: ClientFormat = ClientFormat {
    name: "amp",
    title: "Amp",
    source: "https://ampcode.com/manual",
    user_files: &[
        Place::Config("amp/settings.json"),
        Place::Config("amp/settings.jsonc"),
    ],
    project_files: &[".amp/settings.json", ".amp/settings.jsonc"],
    syntax: Syntax::Jsonc,
    // One key with a dot in it.
    servers: &["amp.mcpServers"],
    rules: &[("includeTools", Rename("allow"))],
    program: Some(programs::AMP),
    ..COMMON
};

/// Its documentation: "currently follows Cursor's mcp.json notation".
static LM_STUDIO: ClientFormat = ClientFormat {
    name: "lm-studio",
    title: "LM Studio",
    source: "https://lmstudio.ai/docs/app/mcp",
    user_files: &[Place::Home(".lmstudio/mcp.json")],
    syntax: Syntax::Jsonc,
    notation: Notation::Editor,
    rules: CURSOR_RULES,
    ..COMMON
};

static WARP: ClientFormat = ClientFormat {
    name: "warp",
    title: "Warp",
    source: "https://docs.warp.dev/agent-platform/capabilities/mcp",
    user_files: &[Place::Home(".warp/.mcp.json")],
    project_files: &[".warp/.mcp.json"],
    rules: &[("working_directory", Rename("cwd"))],
    ..COMMON
};
