use std::collections::HashSet;

use super::*;
use crate::edit::Document;
use crate::{Kind, Locations, load};

fn sample_text(client: Client) -> &'static str {
    match client {
        Client::ClaudeCode => include_str!("samples/claude-code.json"),
        Client::ClaudeDesktop => include_str!("samples/claude-desktop.json"),
        Client::Cursor => include_str!("samples/cursor.json"),
        Client::VsCode => include_str!("samples/vscode.json"),
        Client::Codex => include_str!("samples/codex.toml"),
        Client::Gemini => include_str!("samples/gemini.json"),
        Client::Windsurf => include_str!("samples/windsurf.json"),
    }
}

fn sample(client: Client) -> Imported {
    let imported = read(client, Path::new("sample"), sample_text(client));
    assert_eq!(imported.problems, [], "{client:?}");
    imported
}

fn definition(imported: &Imported, name: &str) -> String {
    let server = imported.servers.iter().find(|server| server.name == name);
    json::compact(&server.unwrap().definition.clone().to_raw())
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

#[test]
fn claude_desktop_needs_no_translation() {
    let imported = sample(Client::ClaudeDesktop);
    assert_eq!(
        definition(&imported, "memory"),
        r#"{"command":"docker","args":["run","-i","--rm","mcp/memory"],"env":{"MEMORY_FILE":"/data/memory.json"},"future":{"exact":1.50}}"#
    );
}

#[test]
fn cursor_has_comments_and_variables_of_its_own() {
    let imported = sample(Client::Cursor);
    assert_eq!(
        definition(&imported, "local"),
        r#"{"type":"stdio","command":"python","args":["${PWD:-.}/tools/server.py","${HOME}/data"],"env":{"API_KEY":"${API_KEY}"},"env_file":".env"}"#
    );
    assert_eq!(
        definition(&imported, "remote"),
        r#"{"url":"https://mcp.example.com/${TENANT}","headers":{"X-Key":"${REMOTE_KEY}"},"auth":{"CLIENT_ID":"${env:ID}","scopes":["read","write"],"redirect":"http://localhost:1/*"}}"#
    );
}

#[test]
fn questions_of_vs_code_become_variables() {
    let imported = sample(Client::VsCode);
    assert_eq!(
        definition(&imported, "perplexity"),
        r#"{"type":"stdio","command":"npx","args":["-y","server-perplexity"],"env":{"PERPLEXITY_API_KEY":"${PERPLEXITY_KEY}","AGAIN":"x${PERPLEXITY_KEY}","N":"${_2ND}"},"dev":{"watch":"src/**/*.ts","debug":{"type":"node"}}}"#
    );
    assert_eq!(
        imported.servers[0].notes,
        [
            "set the environment variable PERPLEXITY_KEY: Perplexity API key",
            "set the environment variable _2ND",
        ]
    );
    assert_eq!(
        definition(&imported, "fetch"),
        r#"{"type":"http","url":"https://example.com/mcp","gallery":true,"version":"1.0.0"}"#
    );
}

#[test]
fn codex_names_variables_and_seconds() {
    let imported = sample(Client::Codex);
    let docs = Object::parse(&imported.servers[0].definition.clone().to_raw()).unwrap();
    let get = |key: &str| docs.get(key).map(Raw::as_str);
    assert_eq!(get("timeout_ms"), Some("2500"));
    assert_eq!(get("disabled"), Some("true"));
    assert_eq!(get("enabled"), None);
    assert_eq!(get("allow"), Some(r#"["search"]"#));
    assert_eq!(get("deny"), Some(r#"["delete"]"#));
    assert_eq!(get("startup_timeout_sec"), Some("20"));
    let figma = &imported.servers[1].definition;
    assert_eq!(
        figma.get("headers").unwrap().as_str(),
        r#"{"X-Region":"eu","X-Team":"${FIGMA_TEAM}","Authorization":"Bearer ${FIGMA_TOKEN}"}"#
    );
    assert_eq!(
        figma.get("future").unwrap().as_str(),
        r#"[1,{"deep":true}]"#
    );
    assert!(!figma.contains("disabled"));
    // JSON has neither dates nor infinity.
    let dotted = &imported.servers[2];
    assert_eq!(dotted.name, "with.dots and spaces");
    let get = |key: &str| dotted.definition.get(key).map(Raw::as_str);
    assert_eq!(get("since"), Some("\"2026-01-31T12:00:00Z\""));
    assert_eq!(get("most"), Some("\"inf\""));
}

#[test]
fn gemini_has_a_member_for_each_transport() {
    let imported = sample(Client::Gemini);
    assert_eq!(
        definition(&imported, "python"),
        r#"{"command":"python","args":["-m","server","--port","${PORT}"],"cwd":"./tools","env":{"DATABASE_URL":"${DB_URL}","PRICE":"5$","KEY":"${KEY}"},"timeout_ms":15000,"trust":true,"allow":["safe_tool"],"deny":["drop"]}"#
    );
    assert_eq!(
        definition(&imported, "stream"),
        r#"{"headers":{"Authorization":"Bearer ${TOKEN}"},"url":"https://example.com/mcp","type":"http"}"#
    );
    assert_eq!(
        definition(&imported, "events"),
        r#"{"url":"https://example.com/sse","type":"sse"}"#
    );
    let both = imported.servers.iter().find(|server| server.name == "both");
    assert_eq!(both.unwrap().notes.len(), 1);
}

#[test]
fn windsurf_calls_an_address_server_url() {
    let imported = sample(Client::Windsurf);
    assert_eq!(
        definition(&imported, "remote"),
        r#"{"url":"https://example.com/mcp","headers":{"API_KEY":"Bearer ${AUTH_TOKEN}"},"disabled":true,"deny":["delete_*"],"alwaysAllow":[]}"#
    );
}

/// The members that each client names or writes differently; all others must be unchanged.
fn translated(client: Client) -> &'static [&'static str] {
    match client {
        Client::ClaudeCode | Client::ClaudeDesktop => &[],
        Client::Cursor | Client::VsCode => &["envFile"],
        Client::Codex => &[
            "http_headers",
            "env_http_headers",
            "bearer_token_env_var",
            "enabled",
            "enabled_tools",
            "disabled_tools",
            "tool_timeout_sec",
        ],
        Client::Gemini => &["timeout", "includeTools", "excludeTools", "url", "httpUrl"],
        Client::Windsurf => &["serverUrl", "disabledTools"],
    }
}

/// No member is lost and no value is rewritten, whatever the formatting of the file.
#[test]
fn every_member_comes_along_to_the_letter() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("sample");
    for client in Client::ALL {
        let text = sample_text(client);
        for text in [
            text.to_owned(),
            format!("\u{feff}{}", text.replace('\n', "\r\n")),
        ] {
            std::fs::write(&file, &text).unwrap();
            let imported = read_file(client, &file).unwrap();
            assert_eq!(imported.problems, [], "{client:?}");
            let (root, key) = match client {
                Client::Codex => (
                    codex::parse(&file, disk::without_mark(&text)),
                    "mcp_servers",
                ),
                Client::VsCode => (parse_with_comments(&text), "servers"),
                _ => (parse_with_comments(&text), "mcpServers"),
            };
            let servers = json::members(&member(&root.unwrap(), key).unwrap()).unwrap();
            assert!(servers.len() > 1, "{client:?}");
            for (name, written) in servers {
                let server = imported.servers.iter().find(|server| server.name == name);
                let definition = &server.unwrap().definition;
                for (key, value) in json::members(&written).unwrap() {
                    if translated(client).contains(&&*key) || value.as_str().contains('$') {
                        continue;
                    }
                    let kept = definition.get(&key).map(json::compact);
                    assert_eq!(kept, Some(json::compact(&value)), "{client:?} {name} {key}");
                }
            }
        }
    }
}

fn parse_with_comments(text: &str) -> Result<Raw, ConfigProblem> {
    json::parse(Path::new("x"), &jsonc::to_json(disk::without_mark(text)))
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
        for server in &imported.servers {
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
        assert_eq!(loaded.servers.len(), imported.servers.len(), "{client:?}");
        let usable = |kind: &Kind| !matches!(kind, Kind::Unsupported(_));
        assert!(loaded.servers.iter().all(|server| usable(&server.kind)));
    }
}

#[test]
fn what_is_wrong_is_said_and_the_rest_imported() {
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
fn every_client_has_a_name_and_files() {
    let locations = Locations::of("/project", &|_| Some("/home/ada".to_owned()));
    let names: HashSet<_> = Client::ALL.iter().map(|client| client.as_str()).collect();
    assert_eq!(names.len(), Client::ALL.len());
    for client in Client::ALL {
        let files = client.files(&locations);
        assert!(
            files.iter().any(|file| file.starts_with("/home/ada")),
            "{client:?}"
        );
    }
}

#[test]
fn secrets_are_not_shown() {
    let text = r#"{"mcpServers": {"a": {"url": "http://x", "headers": {"K": "hunter2"}}}}"#;
    let imported = read(Client::Windsurf, Path::new("w.json"), text);
    let shown = format!("{imported:?}");
    assert!(!shown.contains("hunter2"), "{shown}");
}
