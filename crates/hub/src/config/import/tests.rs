use std::collections::HashSet;

use super::*;
use crate::config::edit::Document;
use crate::config::{Kind, Locations, load};

fn sample(client: Client) -> Imported {
    let text = match client {
        Client::ClaudeCode => include_str!("samples/claude-code.json"),
        Client::ClaudeDesktop => include_str!("samples/claude-desktop.json"),
        Client::Cursor => include_str!("samples/cursor.json"),
        Client::VsCode => include_str!("samples/vscode.json"),
        Client::Codex => include_str!("samples/codex.toml"),
        Client::Gemini => include_str!("samples/gemini.json"),
        Client::Windsurf => include_str!("samples/windsurf.json"),
    };
    let imported = read(client, Path::new("sample"), text);
    assert_eq!(imported.problems, [], "{client:?}");
    imported
}

fn definition(imported: &Imported, name: &str) -> String {
    let server = imported.servers.iter().find(|server| server.name == name);
    json::compact(&server.unwrap().definition.clone().into_raw())
}

#[test]
fn claude_code_has_servers_for_all_and_for_one_project() {
    let imported = sample(Client::ClaudeCode);
    let found: Vec<_> = imported
        .servers
        .iter()
        .map(|server| (server.name.as_str(), server.project.as_deref()))
        .collect();
    let expected = [("github", None), ("db", Some(Path::new("/home/ada/shop")))];
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
        r#"{"url":"https://mcp.example.com/${TENANT}","headers":{"X-Key":"${REMOTE_KEY}"},"auth":{"CLIENT_ID":"${env:ID}"}}"#
    );
}

#[test]
fn questions_of_vs_code_become_variables() {
    let imported = sample(Client::VsCode);
    assert_eq!(
        definition(&imported, "perplexity"),
        r#"{"type":"stdio","command":"npx","args":["-y","server-perplexity"],"env":{"PERPLEXITY_API_KEY":"${PERPLEXITY_KEY}","AGAIN":"x${PERPLEXITY_KEY}","N":"${_2ND}"},"dev":{"watch":"src/**/*.ts"}}"#
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
        r#"{"type":"http","url":"https://example.com/mcp","gallery":true}"#
    );
}

#[test]
fn codex_names_variables_and_seconds() {
    let imported = sample(Client::Codex);
    let docs = Object::parse(&imported.servers[0].definition.clone().into_raw()).unwrap();
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
    assert_eq!(imported.servers[3].notes.len(), 1);
}

#[test]
fn windsurf_calls_an_address_server_url() {
    let imported = sample(Client::Windsurf);
    assert_eq!(
        definition(&imported, "remote"),
        r#"{"url":"https://example.com/mcp","headers":{"API_KEY":"Bearer ${AUTH_TOKEN}"},"disabled":true,"deny":["delete_*"],"alwaysAllow":[]}"#
    );
}

/// What is imported from each client can be written to `.mcp.json` and loaded from there.
#[test]
fn imports_can_be_loaded() {
    for client in Client::ALL {
        let imported = sample(client);
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(".env"), "").unwrap();
        let file = directory.path().join(".mcp.json");
        let mut document = Document::open(&file).unwrap();
        for server in &imported.servers {
            let definition = server.definition.clone().into_raw();
            document.add(&server.name, &definition).unwrap();
        }
        crate::config::edit::write(&file, &document.text()).unwrap();
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
