//! `plexus doctor`: finds each problem, and each finding says what to do.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::home::Home;
use crate::servers::{USER, built, fixture, home};

/// The findings, each with its remedy.
fn findings(home: &Home, arguments: &[&str], code: i32) -> Vec<Value> {
    let ended = home.run(&[&["doctor", "--json"], arguments].concat());
    assert_eq!(
        (ended.code, ended.stderr.len()),
        (Some(code), 0),
        "{ended:?}"
    );
    let diagnosis: Value = serde_json::from_str(&ended.stdout[0]).unwrap();
    let findings = diagnosis["findings"].as_array().unwrap().clone();
    for finding in &findings {
        let is_note = finding["severity"] == "note";
        assert!(is_note || finding["fix"].is_string(), "{finding}");
        assert!(!finding.to_string().contains("hunter2"), "{finding}");
    }
    findings
}

#[track_caller]
fn has<'a>(findings: &'a [Value], check: &str, server: &str, what: &str) -> &'a Value {
    let is_it = |finding: &&Value| {
        finding["check"] == check
            && finding["server"].as_str().unwrap_or_default() == server
            && finding["what"].as_str().unwrap().contains(what)
    };
    let found = findings.iter().find(is_it);
    found.unwrap_or_else(|| panic!("{check} of {server}: {what:?} in {findings:#?}"))
}

#[test]
fn where_nothing_is_wrong_nothing_is_found() {
    let home = home(
        &json!({"s": {"command": built("conformance-server"), "args": ["--stdio"], "allow": ["test_simple*"]}}),
    );
    let ended = home.run(&["doctor"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(
        ended.stdout.last().unwrap(),
        "1 server: all is well",
        "{ended:?}"
    );
}

/// S001-59 to S001-66: common mistakes in configuration files.
#[test]
fn files_are_looked_through() {
    let home = home(&json!({
        "token": {"command": "true", "env": {"GITHUB_TOKEN": "hunter2"}},
        "slip": {"command": "true", "arg": [], "timeout": 3},
        "unset": {"command": "true", "args": ["${NOT_SET_ANYWHERE}"]},
        "both": {"command": "true", "url": "http://x/"},
        "x".repeat(60): {"command": "true"},
    }));
    let shared = r#"{"mcpServers": {"slip": {"command": "true", "env": {"API_KEY": "hunter2"}}}}"#;
    fs::write(home.path("project/.mcp.json"), shared).unwrap();
    fs::create_dir_all(home.path(".claude")).unwrap();
    fs::write(home.path(".claude/settings.local.json"), "{oops").unwrap();
    fs::set_permissions(home.path(USER), fs::Permissions::from_mode(0o644)).unwrap();

    let found = findings(&home, &["--offline"], 1);
    has(&found, "config", "", "settings.local.json:1:2: not JSON");
    has(&found, "config", "both", "both a command and a url");
    has(&found, "variable", "unset", "NOT_SET_ANYWHERE is not set");
    has(&found, "shadowed", "slip", "has precedence");
    has(&found, "secret", "", "slip: env.API_KEY");
    has(&found, "name", &"x".repeat(60), "cut to 64");
    let permissions = has(
        &found,
        "permissions",
        "",
        "everybody on this machine can read",
    );
    assert!(
        permissions["fix"]
            .as_str()
            .unwrap()
            .starts_with("chmod 600 ")
    );

    fs::remove_file(home.path("project/.mcp.json")).unwrap();
    fs::set_permissions(home.path(USER), fs::Permissions::from_mode(0o600)).unwrap();
    let found = findings(&home, &["--offline"], 1);
    assert!(
        !found
            .iter()
            .any(|finding| finding["check"] == "permissions")
    );
    assert_eq!(
        has(&found, "key", "slip", "\"arg\"")["fix"],
        json!(format!("write \"args\" in {}", home.path(USER).display()))
    );
    has(&found, "key", "slip", "\"timeout\"");
}

#[test]
fn programs_are_looked_for() {
    let home = home(&json!({
        "npm": {"command": "npx", "env": {"PATH": "/nowhere:/neither"}},
        "path": {"command": "/no/such/program"},
        "data": {"command": "/etc/passwd"},
        "cwd": {"command": "true", "cwd": "/no/such/folder"},
    }));
    let nvm = home.path(".nvm/versions/node/v22.0.0/bin");
    fs::create_dir_all(&nvm).unwrap();
    fs::write(nvm.join("npx"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(nvm.join("npx"), fs::Permissions::from_mode(0o755)).unwrap();
    // A server that cannot start is not started, so that each problem is reported once.
    let found = findings(&home, &[], 1);
    let npm = has(&found, "command", "npm", "searched: /nowhere, /neither");
    assert!(
        npm["fix"].as_str().unwrap().contains("v22.0.0/bin/npx"),
        "{npm}"
    );
    has(
        &found,
        "command",
        "path",
        "there is no program /no/such/program",
    );
    has(&found, "command", "data", "/etc/passwd cannot be run");
    has(&found, "cwd", "cwd", "/no/such/folder does not exist");
    assert_eq!(
        found
            .iter()
            .filter(|finding| finding["server"].is_string())
            .count(),
        4
    );
}

/// Banners on standard output, servers that exit at once, addresses without a server.
#[test]
fn servers_are_tried() {
    let server = built("conformance-server");
    let unused = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let home = home(&json!({
        "loud": {"command": "sh", "args": ["-c", format!("echo Welcome; exec {server} --stdio")]},
        "dies": {"command": "sh", "args": ["-c", "echo my last words >&2; exit 3"]},
        "web": {"url": format!("http://{unused}/mcp")},
        "well": fixture("legacy"),
        "off": {"command": "false", "disabled": true},
    }));
    fs::write(
        home.path("project/.mcp.json"),
        r#"{"mcpServers": {"theirs": {"command": "true"}}}"#,
    )
    .unwrap();
    let found = findings(&home, &[], 1);
    has(&found, "stdout", "loud", "Welcome");
    has(&found, "connect", "dies", "my last words");
    has(&found, "connect", "web", "cannot connect to");
    assert_eq!(
        has(&found, "trust", "theirs", "came with the project")["fix"],
        "plexus trust theirs"
    );
    has(&found, "tools", "", "tools are offered at once");
    let about = |name: &str| found.iter().any(|finding| finding["server"] == name);
    assert!(!about("well") && !about("off"), "{found:#?}");

    let text = home.run(&["doctor"]).stdout;
    assert_eq!(text.last().unwrap(), "6 servers: 2 errors, 3 warnings");
    let position = text
        .iter()
        .position(|line| line.contains("dies: "))
        .unwrap();
    assert_eq!(text[position + 1].trim(), "my last words");
    assert!(text[position + 2].trim().starts_with("fix: "), "{text:?}");

    // With `--offline`, no server is started, so none of this is reported.
    let found = findings(&home, &["--offline"], 0);
    assert!(
        !found.iter().any(|finding| finding["server"].is_string()),
        "{found:#?}"
    );
}
