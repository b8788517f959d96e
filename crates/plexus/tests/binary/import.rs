//! `plexus import`: imports the servers of other clients.

use serde_json::{Value, json};

use crate::home::Home;

const USER: &str = ".config/plexus/servers.json";
const BACKUP: &str = ".config/plexus/last-import.json";

const CLAUDE: &str = r#"{
  "mcpServers": {
    "github": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer hunter2"}, "startup_timeout": 1.50},
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

/// Without a terminal for the confirmation, nothing is written; the output and the exit code say
/// so.
#[test]
fn without_a_terminal_it_is_only_shown() {
    let home = clients();
    for (arguments, code) in [(&["import"][..], 1), (&["import", "--dry-run"], 0)] {
        let ended = home.run(arguments);
        assert_eq!(ended.code, Some(code), "{ended:?}");
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
    assert_eq!(home.run(&["import", "--json"]).code, Some(1));
    assert_eq!(home.run(&["import", "--json", "--dry-run"]).code, Some(0));
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

/// Each client's file is found and only read, members without a counterpart are listed, and undoing
/// restores the file byte for byte.
#[test]
fn every_client_is_found_and_nothing_is_lost() {
    macro_rules! sample {
        ($name:literal) => {
            include_str!(concat!("../../../config/src/clients/samples/", $name))
        };
    }
    let application_data = if cfg!(target_os = "macos") {
        "Library/Application Support"
    } else {
        ".config"
    };
    let desktop = format!("{application_data}/Claude/claude_desktop_config.json");
    let vscode = format!("{application_data}/Code/User/mcp.json");
    // The file, its text, a server that is added, and what is left out of it.
    let cases = [
        (
            "claude-code",
            ".claude.json",
            sample!("claude-code.json"),
            "github",
            "",
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
            "auth.scopes auth.redirect",
        ),
        (
            "vscode",
            &vscode,
            sample!("vscode.json"),
            "perplexity",
            "dev",
        ),
        (
            "windsurf",
            ".codeium/windsurf/mcp_config.json",
            sample!("windsurf.json"),
            "remote",
            "alwaysAllow",
        ),
        (
            "codex",
            ".codex/config.toml",
            sample!("codex.toml"),
            "figma",
            "future scopes",
        ),
        (
            "gemini",
            ".gemini/settings.json",
            sample!("gemini.json"),
            "cloud",
            "authProviderType oauth.scopes description",
        ),
        (
            "zed",
            ".config/zed/settings.json",
            sample!("zed.json"),
            "postgres",
            "remote",
        ),
        (
            "opencode",
            ".config/opencode/opencode.json",
            sample!("opencode.json"),
            "jira",
            "oauth.scope oauth.redirectUri",
        ),
        (
            "goose",
            ".config/goose/config.yaml",
            sample!("goose.yaml"),
            "filesystem",
            "description",
        ),
        (
            "cline",
            ".cline/data/settings/cline_mcp_settings.json",
            sample!("cline.json"),
            "local",
            "alwaysAllow autoApprove",
        ),
        (
            "copilot-cli",
            ".copilot/mcp-config.json",
            sample!("copilot-cli.json"),
            "context7",
            "oauthPublicClient",
        ),
        (
            "continue",
            ".continue/config.yaml",
            sample!("continue.yaml"),
            "SQLite MCP",
            "faviconUrl",
        ),
        (
            "continue",
            ".continue/mcpServers/web.yaml",
            sample!("continue.yaml"),
            "web",
            "requestOptions.timeout",
        ),
        (
            "junie",
            ".junie/mcp/mcp.json",
            sample!("junie.json"),
            "files",
            "",
        ),
        (
            "kiro",
            ".kiro/settings/mcp.json",
            sample!("kiro.json"),
            "search",
            "autoApprove",
        ),
        (
            "qwen-code",
            ".qwen/settings.json",
            sample!("qwen-code.json"),
            "python",
            "versionNegotiation",
        ),
        (
            "amp",
            ".config/amp/settings.json",
            sample!("amp.json"),
            "browser",
            "",
        ),
        (
            "lm-studio",
            ".lmstudio/mcp.json",
            sample!("lm-studio.json"),
            "local",
            "",
        ),
        ("warp", ".warp/.mcp.json", sample!("warp.json"), "files", ""),
    ];
    let existing =
        "\u{feff}{\r\n\t\"mcpServers\": { \"old\":{\"command\":\"x\"} }, \"keep\" : 2.50\r\n}";
    for (client, file, text, name, left_out) in cases {
        let home = Home::with(&[(file, text), (USER, existing)]);
        let report = home.json_output(&["import", client, "--yes", "--json"]);
        assert_eq!(outcome(&report, name, client), "added", "{report}");
        let servers = report["servers"].as_array().unwrap();
        let server = servers.iter().find(|server| server["name"] == name);
        let listed = server.unwrap()["left_out"].as_array();
        let listed: Vec<_> = listed
            .into_iter()
            .flatten()
            .map(|key| key.as_str().unwrap())
            .collect();
        assert_eq!(listed.join(" "), left_out, "{client}");
        assert!(
            home.json(USER)["mcpServers"].get(name).is_some(),
            "{client}"
        );
        assert_eq!(home.read(file), text, "{client}");
        assert_eq!(home.json(USER)["mcpServers"]["old"]["command"], "x");
        assert!(home.read(USER).contains("\"keep\": 2.50"));
        home.succeeds(&["import", "--undo"]);
        assert_eq!(home.read(USER), existing, "{client}");
    }
}

/// What has no counterpart is shown, a missing environment file is a warning, and what cannot be
/// taken over says why.
#[test]
fn what_is_left_out_is_shown() {
    let home = Home::with(&[
        (
            ".cursor/mcp.json",
            r#"{"mcpServers": {
                "files": {"command": "x", "envFile": "/nowhere/.env", "icon": "a"},
                "gateway": {"command": "plexus", "args": ["serve", "--stdio"]}
            }}"#,
        ),
        (
            ".config/goose/config.yaml",
            "extensions:\n  developer: {type: builtin, enabled: true}\n",
        ),
    ]);
    let shown = home.succeeds(&["import", "--yes"]).join("\n");
    for expected in [
        "+ files  (cursor, ",
        "    note: env_file: /nowhere/.env: there is no such file",
        "    without a counterpart here, left out: icon",
        "! gateway  left out: it is Plexus itself",
        "! developer  left out: it is a part of goose",
        "added 1 server: ",
    ] {
        assert!(shown.contains(expected), "{expected} in {shown}");
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
fn import_errors_are_reported() {
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
    assert!(said.contains("servers.json:1:2: not JSON"), "{said}");
    assert_eq!(home.read(USER), "{oops");
}

const WITH_SECRETS: &str = r#"{"mcpServers": {
    "web": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer s3cret", "X-Team": "shop"}},
    "program": {"command": "x", "env": {"API_TOKEN": "s3cret", "LEVEL": "1", "KEY": "${SET}"}},
    "another": {"command": "x", "env": {"API_TOKEN": "0ther"}}
}}"#;

/// A secret in plain text is named, and moved if that is wanted.
#[test]
fn secrets_in_plain_text_are_told_and_moved() {
    let home = Home::with(&[(".warp/.mcp.json", WITH_SECRETS)]);
    let shown = home.succeeds(&["import", "--dry-run"]).join("\n");
    for key in ["headers.Authorization", "env.API_TOKEN"] {
        let note = format!("note: {key} is a secret in plain text; to move it, use --secrets");
        assert!(shown.contains(&note), "{shown}");
    }
    assert!(
        !shown.contains("LEVEL") && !shown.contains("env.KEY is a secret"),
        "{shown}"
    );

    let shown = home
        .succeeds(&["import", "--yes", "--secrets", "variable"])
        .join("\n");
    let servers = &home.json(USER)["mcpServers"];
    let headers = json!({"Authorization": "Bearer ${WEB_AUTHORIZATION}", "X-Team": "shop"});
    assert_eq!(servers["web"]["headers"], headers);
    assert_eq!(servers["program"]["env"]["API_TOKEN"], "${API_TOKEN}");
    assert_eq!(
        servers["another"]["env"]["API_TOKEN"],
        "${ANOTHER_API_TOKEN}"
    );
    for variable in ["WEB_AUTHORIZATION", "API_TOKEN", "ANOTHER_API_TOKEN"] {
        let note =
            format!("note: set the environment variable {variable} to the secret that is in /");
        assert!(shown.contains(&note), "{variable} in {shown}");
    }
    assert!(
        !home.read(USER).contains("s3cret") && !shown.contains("s3cret"),
        "{shown}"
    );
    home.succeeds(&["import", "--undo"]);

    let report = home.json_output(&["import", "--yes", "--json", "--secrets", "keep"]);
    assert!(!report.to_string().contains("s3cret"), "{report}");
    assert!(home.read(USER).contains("s3cret"));
}

/// The tool of the keyring gets a secret on its standard input. Without a keyring, nothing is written.
#[cfg(target_os = "linux")]
#[test]
fn secrets_are_moved_to_the_keyring() {
    use std::os::unix::fs::PermissionsExt;

    let home = Home::with(&[(".warp/.mcp.json", WITH_SECRETS)]);
    let arguments = ["import", "--yes", "--secrets", "keyring"];
    let bin = home.path("bin");
    let path = [("PATH", bin.to_str().unwrap())];
    let ended = home.run_with(&arguments, &path);
    assert_eq!(ended.code, Some(1));
    let said = ended.stderr.join("\n");
    assert!(
        said.contains("nothing was written") && said.contains("secret-tool"),
        "{said}"
    );
    assert!(
        !home.path(USER).exists() && !said.contains("s3cret"),
        "{said}"
    );

    let script = "#!/bin/sh\necho \"$@\" >> \"$HOME/arguments\"\n\
        for account; do :; done\n\
        case $1 in\n\
        store) IFS= read -r secret; printf %s \"$secret\" > \"$HOME/$account\" ;;\n\
        lookup) IFS= read -r secret < \"$HOME/$account\"; printf %s \"$secret\" ;;\nesac\n";
    std::fs::create_dir(&bin).unwrap();
    std::fs::write(bin.join("secret-tool"), script).unwrap();
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(bin.join("secret-tool"), executable).unwrap();
    let ended = home.run_with(&arguments, &path);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let servers = &home.json(USER)["mcpServers"];
    let place = json!({"service": "plexus", "account": "web.headers.Authorization"});
    assert_eq!(
        servers["web"]["headers"]["Authorization"],
        json!({"keyring": place, "prefix": "Bearer "})
    );
    assert_eq!(home.read("web.headers.Authorization"), "s3cret");
    assert_eq!(home.read("another.env.API_TOKEN"), "0ther");
    assert!(!home.read("arguments").contains("s3cret"));
    assert!(!home.read(USER).contains("s3cret"));
}
