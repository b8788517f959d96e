//! `plexus import`: imports the servers of other clients.

use serde_json::{Value, json};

use crate::home::Home;

const USER: &str = ".mcp.json";
const BACKUP: &str = ".config/plexus/last-import.json";

const CLAUDE: &str = r#"{
  "mcpServers": {
    "github": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer hunter2"}, "future": 1.50},
    "connector": {"type": "claudeai-proxy", "url": "https://example.com/x", "id": "x"}
  },
  "projects": {"/shop": {"mcpServers": {"db": {"command": "db", "args": ["--password", "hunter2"]}}}}
}"#;

const CODEX: &str = r#"
model = "x"
[mcp_servers.GitHub]
command = "other"
[mcp_servers.docs]
url = "https://example.com/docs"
bearer_token_env_var = "NOT_SET_ANYWHERE"
"#;

const EXISTING: &str = r#"{"mcpServers": {"old": {"command": "x"}}, "keep": 2.50}"#;

fn clients() -> Home {
    Home::with(&[
        (USER, EXISTING),
        (".claude.json", CLAUDE),
        (".codex/config.toml", CODEX),
        (
            ".cursor/mcp.json",
            "{\"mcpServers\": {\"old\": {\"command\": \"y\"}, /* no type */ \"odd\": {}}}",
        ),
        (
            "project/.vscode/mcp.json",
            r#"{"servers": {"mine": {"command": "z"}}}"#,
        ),
        (".gemini/settings.json", "{oops"),
    ])
}

fn outcome<'a>(report: &'a Value, name: &str, client: &str) -> &'a Value {
    let servers = report["servers"].as_array().unwrap();
    let server = servers
        .iter()
        .find(|server| server["name"] == name && server["client"] == client);
    &server.unwrap()["outcome"]
}

/// Without a terminal for the confirmation, nothing is written, and the output says so.
#[test]
fn without_a_terminal_it_is_only_shown() {
    let home = clients();
    for arguments in [&["import"][..], &["import", "--dry-run"]] {
        let ended = home.run(arguments);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let shown = ended.stdout.join("\n");
        for expected in [
            "+ github  http  https://example.com/mcp  (claude-code, ",
            "! connector  left out: unsupported",
            "! db  left out: it is only for the project /shop",
            "= GitHub  left out: there is one already",
            "+ docs  (codex, ",
            "note: headers.Authorization: the environment variable NOT_SET_ANYWHERE is not set",
            "= old  left out: there is one already in ",
            "! odd  left out: command: there is neither a command nor a url",
            "! mine  left out: it is only for the project ",
            "nothing was written; with --yes, 2 servers would be added: ",
        ] {
            assert!(shown.contains(expected), "{expected} in {shown}");
        }
        assert!(!shown.contains("hunter2"), "{shown}");
        assert_eq!(ended.stderr.len(), 1, "{ended:?}");
        assert!(ended.stderr[0].contains("settings.json:1:2: not JSON"));
        assert_eq!(home.read(USER), EXISTING);
        assert!(!home.path(BACKUP).exists());
    }
}

/// Known members are imported, unknown members are kept, and the import can be undone exactly.
#[test]
fn an_import_is_written_and_undone() {
    let home = clients();
    let report = home.json_output(&["import", "--yes", "--json"]);
    assert_eq!(report["written"], true);
    assert_eq!(outcome(&report, "github", "claude-code"), "added");
    assert_eq!(outcome(&report, "db", "claude-code"), "of_project");
    assert_eq!(outcome(&report, "connector", "claude-code"), "unsupported");
    assert_eq!(outcome(&report, "GitHub", "codex"), "exists");
    assert_eq!(outcome(&report, "docs", "codex"), "added");
    assert_eq!(report["problems"].as_array().unwrap().len(), 1);
    assert!(!report.to_string().contains("hunter2"), "{report}");

    let text = home.read(USER);
    assert!(text.contains("1.50") && text.contains("2.50"), "{text}");
    let servers = &home.json(USER)["mcpServers"];
    let mut names: Vec<_> = servers.as_object().unwrap().keys().collect();
    names.sort();
    assert_eq!(names, ["docs", "github", "old"]);
    assert_eq!(
        servers["docs"]["headers"],
        json!({"Authorization": "Bearer ${NOT_SET_ANYWHERE}"})
    );
    // A second import adds nothing, and can still be undone.
    let report = home.json_output(&["import", "--yes", "--json"]);
    assert_eq!(report["written"], false);

    let undone = home.json_output(&["import", "--undo", "--json"]);
    assert_eq!(undone["removed"], json!(["github", "docs"]));
    assert_eq!(home.read(USER), EXISTING);
    assert_eq!(home.read(".claude.json"), CLAUDE);
    let said = home.fails(&["import", "--undo"]);
    assert_eq!(said, "error: there is no import to undo");
}

/// Each client's file is found and only read, unknown members are imported, and undoing restores
/// the file byte for byte.
#[test]
fn every_client_is_found_and_nothing_is_lost() {
    macro_rules! sample {
        ($name:literal) => {
            include_str!(concat!("../../../config/src/import/samples/", $name))
        };
    }
    let application_data = if cfg!(target_os = "macos") {
        "Library/Application Support"
    } else {
        ".config"
    };
    let desktop = format!("{application_data}/Claude/claude_desktop_config.json");
    let vscode = format!("{application_data}/Code/User/mcp.json");
    let windsurf = ".codeium/windsurf/mcp_config.json";
    let cases = [
        (
            "claude-code",
            ".claude.json",
            sample!("claude-code.json"),
            "github",
            "oauth",
        ),
        (
            "claude-desktop",
            &desktop,
            sample!("claude-desktop.json"),
            "memory",
            "future",
        ),
        (
            "cursor",
            ".cursor/mcp.json",
            sample!("cursor.json"),
            "remote",
            "auth",
        ),
        (
            "vscode",
            &vscode,
            sample!("vscode.json"),
            "perplexity",
            "dev",
        ),
        (
            "codex",
            ".codex/config.toml",
            sample!("codex.toml"),
            "figma",
            "future",
        ),
        (
            "gemini",
            ".gemini/settings.json",
            sample!("gemini.json"),
            "python",
            "trust",
        ),
        (
            "windsurf",
            windsurf,
            sample!("windsurf.json"),
            "remote",
            "alwaysAllow",
        ),
    ];
    let existing =
        "\u{feff}{\r\n\t\"mcpServers\": { \"old\":{\"command\":\"x\"} }, \"keep\" : 2.50\r\n}";
    for (client, file, text, server, unknown) in cases {
        let home = Home::with(&[(file, text), (USER, existing)]);
        let report = home.json_output(&["import", client, "--yes", "--json"]);
        let left_out = report["servers"].as_array().unwrap().iter();
        let left_out: Vec<_> = left_out
            .filter(|server| {
                !["added", "of_project"]
                    .iter()
                    .any(|word| server["outcome"] == *word)
            })
            .collect();
        assert!(left_out.is_empty(), "{client}: {left_out:?}");
        let written = &home.json(USER)["mcpServers"][server];
        assert!(written.get(unknown).is_some(), "{client}: {written}");
        assert_eq!(home.read(file), text, "{client}");
        assert_eq!(home.json(USER)["mcpServers"]["old"]["command"], "x");
        assert!(home.read(USER).contains("\"keep\": 2.50"));
        home.succeeds(&["import", "--undo"]);
        assert_eq!(home.read(USER), existing, "{client}");
    }
}

#[test]
fn a_file_that_was_not_there_is_gone_again() {
    let home = Home::with(&[(".codex/config.toml", CODEX)]);
    let said = home.run(&["import", "codex", "--yes"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.stdout
            .concat()
            .contains("to undo this: plexus import --undo")
    );
    assert!(home.path(USER).exists());
    let said = home.succeeds(&["import", "--undo"]);
    assert!(said[0].starts_with("removed GitHub, docs: "), "{said:?}");
    assert!(!home.path(USER).exists());
}

/// Undoing keeps later changes.
#[test]
fn a_changed_file_is_not_undone() {
    let home = clients();
    home.run(&["import", "claude-code", "--yes"]);
    home.succeeds(&["mcp", "add", "mine", "-s", "user", "--", "x"]);
    let before = home.read(USER);
    let said = home.fails(&["import", "--undo"]);
    assert!(
        said.contains("has changed since") && said.contains("github"),
        "{said}"
    );
    assert_eq!(home.read(USER), before);
}

/// The backup has the contents of the file, including secrets.
#[cfg(unix)]
#[test]
fn the_backup_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;

    let home = clients();
    home.run(&["import", "--yes"]);
    let metadata = std::fs::metadata(home.path(BACKUP)).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
}

#[test]
fn what_cannot_be_imported_is_told() {
    let home = clients();
    let said = home.fails(&["import", "windsurf"]);
    assert!(
        said.contains("windsurf is not configured here; looked for /"),
        "{said}"
    );
    for wrong in [
        &["import", "emacs"][..],
        &["import", "--dry-run", "--yes"],
        &["import", "cursor", "--undo"],
    ] {
        assert_eq!(home.run(wrong).code, Some(2), "{wrong:?}");
    }
    let said = home.succeeds(&["import", "vscode"]);
    assert_eq!(said.last().unwrap(), "there is nothing to add");
    let said = Home::with(&[]).succeeds(&["import"]);
    assert_eq!(said, ["no other client has servers here"]);

    std::fs::write(home.path(USER), "{oops").unwrap();
    let said = home.fails(&["import", "--yes"]);
    assert!(said.contains(".mcp.json:1:2: not JSON"), "{said}");
    assert_eq!(home.read(USER), "{oops");
}
