mod expected;
mod writing;

use std::collections::HashSet;

use plexus_mcp_wire::Raw;

use super::reader::member;
use super::*;
use crate::edit::Document;
use crate::{Kind, Locations, json, load};

fn sample_text(client: Client) -> &'static str {
    match client {
        Client::ClaudeCode => include_str!("samples/claude-code.json"),
        Client::ClaudeDesktop => include_str!("samples/claude-desktop.json"),
        Client::Cursor => include_str!("samples/cursor.json"),
        Client::VsCode => include_str!("samples/vscode.json"),
        Client::Windsurf => include_str!("samples/windsurf.json"),
        Client::Codex => include_str!("samples/codex.toml"),
        Client::Gemini => include_str!("samples/gemini.json"),
        Client::Zed => include_str!("samples/zed.json"),
        Client::OpenCode => include_str!("samples/opencode.json"),
        Client::Goose => include_str!("samples/goose.yaml"),
        Client::Cline => include_str!("samples/cline.json"),
        Client::CopilotCli => include_str!("samples/copilot-cli.json"),
        Client::Continue => include_str!("samples/continue.yaml"),
        Client::Junie => include_str!("samples/junie.json"),
        Client::Kiro => include_str!("samples/kiro.json"),
        Client::QwenCode => include_str!("samples/qwen-code.json"),
        Client::Amp => include_str!("samples/amp.json"),
        Client::LmStudio => include_str!("samples/lm-studio.json"),
        Client::Warp => include_str!("samples/warp.json"),
    }
}

fn sample(client: Client) -> Imported {
    let imported = read(client, Path::new("sample"), sample_text(client));
    assert_eq!(imported.problems, [], "{client:?}");
    imported
}

fn server<'a>(imported: &'a Imported, name: &str) -> &'a ImportedServer {
    let mut servers = imported.servers.iter();
    servers.find(|server| server.name == name).unwrap()
}

fn left_out(imported: &Imported, name: &str) -> String {
    server(imported, name).left_out.join(" ")
}

fn definition(imported: &Imported, name: &str) -> String {
    json::compact(&server(imported, name).definition.clone().to_raw())
}

#[test]
fn claude_code_has_servers_for_all_and_for_one_project() {
    let imported = sample(Client::ClaudeCode);
    let found: Vec<_> = imported
        .servers
        .iter()
        .map(|server| (server.name.as_str(), server.project.as_deref()))
        .collect();
    let expected = [
        ("github", None),
        ("café \"A\"", None),
        ("events", None),
        ("db", Some(Path::new("/home/ada/shop"))),
    ];
    assert_eq!(found, expected);
    assert_eq!(
        definition(&imported, "github"),
        r#"{"type":"http","url":"https://api.example.com/mcp/","headers":{"Authorization":"Bearer ${GITHUB_TOKEN}"},"oauth":{"clientId":"abc","callbackPort":8080}}"#
    );
}

/// Every server of every sample: its name, its definition, and what is left out.
#[test]
fn servers_are_translated() {
    for (client, servers) in expected::SERVERS {
        let imported = sample(*client);
        let names: Vec<_> = imported
            .servers
            .iter()
            .map(|server| &*server.name)
            .collect();
        let expected: Vec<_> = servers.iter().map(|(name, ..)| *name).collect();
        assert_eq!(names, expected, "{client:?}");
        for (name, expected, without) in *servers {
            assert_eq!(definition(&imported, name), *expected, "{client:?} {name}");
            assert_eq!(left_out(&imported, name), *without, "{client:?} {name}");
        }
    }
}

#[test]
fn steps_for_the_user_are_told() {
    let cases: &[(Client, &str, &[&str])] = &[
        (
            Client::VsCode,
            "perplexity",
            &[
                "set the environment variable PERPLEXITY_KEY: Perplexity API key",
                "set the environment variable _2ND",
            ],
        ),
        (
            Client::Gemini,
            "both",
            &["its second address, for HTTP+SSE, is left out"],
        ),
        (
            Client::OpenCode,
            "everything",
            &["put the content of {file:~/.token} in its place"],
        ),
        (
            Client::Goose,
            "filesystem",
            &["set the environment variable FS_TOKEN: goose has it in its keyring"],
        ),
        (
            Client::Continue,
            "web",
            &["set the environment variable WEB_TOKEN: it is in Continue"],
        ),
    ];
    for (client, name, notes) in cases {
        assert_eq!(server(&sample(*client), name).notes, *notes, "{client:?}");
    }
}

/// What is a part of the client, and Plexus itself, are not taken over, and say so.
#[test]
fn some_servers_are_refused() {
    let refused = |client, name: &str| server(&sample(client), name).refused.clone();
    let part = Some("it is a part of goose".to_owned());
    assert_eq!(refused(Client::Goose, "developer"), part);
    assert_eq!(refused(Client::Goose, "todo"), part);
    assert_eq!(refused(Client::Goose, "filesystem"), None);
    let extension = Some("it is an extension of Zed".to_owned());
    assert_eq!(refused(Client::Zed, "context7"), extension);
    assert_eq!(refused(Client::Zed, "older"), None);

    let text = r#"{"mcpServers": {
        "a": {"command": "/usr/bin/plexus", "args": ["serve", "--stdio"]},
        "b": {"command": "npx", "args": ["-y", "plexus-mcp@latest", "serve", "--stdio"]},
        "c": {"command": "plexus", "args": ["bridge", "--stdio", "https://example.com/mcp"]},
        "d": {"command": "docker", "args": ["serve"]}
    }}"#;
    let imported = read(Client::Warp, Path::new("w.json"), text);
    let refused: Vec<_> = imported
        .servers
        .iter()
        .map(|server| server.refused.is_some())
        .collect();
    assert_eq!(refused, [true, true, false, false]);
}

/// Every member comes along to the letter, is translated, or is listed as left out, whatever the
/// formatting of the file.
#[test]
fn no_member_is_lost_silently() {
    // Members whose structure differs, in some client.
    let reshaped = [
        "type",
        "command",
        "oauth",
        "httpUrl",
        "url",
        "env_http_headers",
        "bearer_token_env_var",
        "env_keys",
        "tools",
        "oauthClientId",
    ];
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("sample");
    for client in Client::ALL {
        let format = client.format();
        let text = sample_text(client);
        for text in [
            text.to_owned(),
            format!("\u{feff}{}", text.replace('\n', "\r\n")),
        ] {
            std::fs::write(&file, &text).unwrap();
            let imported = read_file(client, &file).unwrap();
            assert_eq!(imported.problems, [], "{client:?}");
            let root = format
                .syntax
                .parse(&file, disk::without_mark(&text))
                .unwrap();
            let servers = format
                .servers
                .iter()
                .fold(root, |raw, key| member(&raw, key).unwrap());
            let servers = json::members(&servers).unwrap_or_else(|| {
                let listed = servers.elements().unwrap();
                let named =
                    |server: Raw| (member(&server, "name").unwrap().decode().unwrap(), server);
                listed.map(named).collect()
            });
            assert!(servers.len() > 1, "{client:?}");
            for (name, written) in servers {
                let server = server(&imported, &name);
                for (key, value) in json::members(&written).unwrap() {
                    let is_translated = format.rules.iter().any(|(theirs, _)| *theirs == key)
                        || reshaped.contains(&&*key)
                        || value.as_str().contains(['$', '{'])
                        || value.as_str() == "null";
                    let parts = format!("{key}.");
                    let mut listed = server.left_out.iter();
                    if is_translated || listed.any(|left| *left == key || left.starts_with(&parts))
                    {
                        continue;
                    }
                    let kept = server.definition.get(&key).map(json::compact);
                    assert_eq!(kept, Some(json::compact(&value)), "{client:?} {name} {key}");
                }
            }
        }
    }
}

/// The servers imported from each client can be written to `.mcp.json` and loaded from there.
#[test]
fn imports_can_be_loaded() {
    for client in Client::ALL {
        let imported = sample(client);
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(".env"), "").unwrap();
        let file = directory.path().join(".mcp.json");
        let mut document = Document::open(&file).unwrap();
        let taken = imported.servers.iter();
        let taken: Vec<_> = taken.filter(|server| server.refused.is_none()).collect();
        for server in &taken {
            let definition = server.definition.clone().to_raw();
            document.add(&server.name, &definition).unwrap();
        }
        crate::edit::write(&file, &document.text()).unwrap();
        let locations = Locations {
            project_dir: directory.path().to_owned(),
            ..Locations::default()
        };
        let loaded = load(&locations, &|_| Some("x".to_owned()));
        assert_eq!(loaded.problems, [], "{client:?}");
        assert_eq!(loaded.servers.len(), taken.len(), "{client:?}");
        let usable = |kind: &Kind| !matches!(kind, Kind::Unsupported(_));
        assert!(loaded.servers.iter().all(|server| usable(&server.kind)));
    }
}

#[test]
fn invalid_servers_are_reported_and_the_rest_imported() {
    let text = r#"{"mcpServers": {"a": 1, "b": {"command": "x"}, "c": {"k":1,"k":2}}}"#;
    let imported = read(Client::Windsurf, Path::new("w.json"), text);
    assert_eq!(imported.servers.len(), 1);
    let problems: Vec<_> = imported.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            r#"w.json: server "a": not an object"#,
            r#"w.json: server "c": duplicate key "k""#,
        ]
    );
    let broken = [
        (Client::Codex, "[mcp_servers", "w.json:1:"),
        (Client::Gemini, "{\n x", "w.json:2:2: not JSON"),
        (
            Client::Windsurf,
            r#"{"mcpServers": []}"#,
            "w.json: mcpServers",
        ),
    ];
    for (client, text, start) in broken {
        let imported = read(client, Path::new("w.json"), text);
        let shown = imported.problems[0].to_string();
        assert!(shown.starts_with(start), "{shown}");
    }
}

#[test]
fn every_client_has_a_name_files_and_a_source() {
    let locations = Locations::of("/project", &|name| {
        (name == "HOME").then(|| "/home/ada".to_owned())
    });
    let names: HashSet<_> = Client::ALL.iter().map(|client| client.as_str()).collect();
    assert_eq!(names.len(), Client::ALL.len());
    for client in Client::ALL {
        let format = client.format();
        let files = client.user_files(&locations);
        assert!(!files.is_empty(), "{client:?}");
        assert!(
            files.iter().all(|file| file.starts_with("/home/ada")),
            "{client:?}"
        );
        let files = client.project_files(&locations);
        assert!(
            files.iter().all(|file| file.starts_with("/project")),
            "{client:?}"
        );
        assert!(format.source.contains(['/', '.']), "{client:?}");
        assert!(!format.title.is_empty(), "{client:?}");
    }
}

/// The documentation has every client, its files and the source of its format.
#[test]
fn the_documentation_lists_every_client() {
    let page = include_str!("../../../../docs/clients.md");
    for client in Client::ALL {
        let format = client.format();
        let row = format!("| {} | `{}` |", format.title, format.name);
        let row = page.lines().find(|line| line.starts_with(&row));
        let row = row.unwrap_or_else(|| panic!("docs/clients.md has no row for {}", format.name));
        for place in format.user_files {
            assert!(row.contains(place.path()), "{row}");
        }
        for file in format.project_files {
            assert!(row.contains(file), "{row}");
        }
        for source in format
            .source
            .split([',', ' '])
            .filter(|word| word.contains("://"))
        {
            assert!(row.contains(source), "{row}: {source}");
        }
    }
    for client in UNSUPPORTED {
        assert!(page.contains(client.title), "{}", client.title);
    }
}

#[test]
fn secrets_are_not_shown() {
    let text = r#"{"mcpServers": {"a": {"url": "http://x", "headers": {"K": "hunter2"}}}}"#;
    let imported = read(Client::Windsurf, Path::new("w.json"), text);
    let shown = format!("{imported:?}");
    assert!(!shown.contains("hunter2"), "{shown}");
}
