//! `plexus doctor`: finds each problem, and each finding says what to do.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use plexus_mcp_protocol::Revision;
use plexus_testkit::server::{Offer, Script, StdioServer, tool};
use serde_json::{Value, json};

use crate::gateway::definition;
use crate::home::Home;
use crate::servers::{USER, built, fixture};

/// Settings with a port that no program uses, so that it is not a finding.
const FREE_PORT: (&str, &str) = (
    ".config/plexus/plexus.toml",
    "[serve]\nhttp = \"127.0.0.1:0\"\n",
);

/// A home directory with these servers in the user scope.
fn home(servers: &Value) -> Home {
    let servers = json!({"mcpServers": servers}).to_string();
    Home::with(&[FREE_PORT, (USER, &servers)])
}

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
fn a_valid_configuration_has_no_findings() {
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

/// A missing environment file is named, and not taken for a variable that is not set.
#[test]
fn a_missing_environment_file_can_be_created() {
    let home = home(&json!({"s": {"command": "true", "env_file": "secrets.env"}}));
    let file = home.path("secrets.env");
    let found = findings(&home, &["--offline"], 1);
    let missing = has(
        &found,
        "variable",
        "s",
        "secrets.env: there is no such file",
    );
    let fix = format!("create {}, or remove \"env_file\"", file.display());
    assert_eq!(missing["fix"], json!(fix));
}

/// Cursor's key for a client id is not the same as ours under another name.
#[test]
fn the_sign_in_key_of_cursor_is_translated() {
    let auth = json!({"CLIENT_ID": "abc", "CLIENT_SECRET": "hunter2"});
    let home = home(&json!({"s": {"url": "https://a.example/mcp", "auth": auth}}));
    let found = findings(&home, &["--offline"], 0);
    let key = has(&found, "key", "s", "\"auth\" is Cursor's");
    let fix = key["fix"].as_str().unwrap();
    assert!(fix.starts_with("write \"oauth\": {\"clientId\": "), "{fix}");
}

/// A server that takes long to start does not start faster with `"era": "legacy"`; one that is
/// ready, and does not answer the question for its era, does.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_start_is_no_matter_of_the_era() {
    let script = Script::from(&Offer::tools(Revision::V2025_06_18, [tool("ping")]));
    let script = script.ignoring("server/discover");
    let (ready, slow) = (
        StdioServer::new(script.clone()).await,
        StdioServer::new(script).await,
    );
    let mut slowly = definition(&slow);
    let mut args = vec![
        json!("-c"),
        json!("sleep 5; exec \"$0\" \"$@\""),
        slowly["command"].take(),
    ];
    args.extend(slowly["args"].as_array().unwrap().iter().cloned());
    slowly["command"] = json!("sh");
    slowly["args"] = json!(args);
    let home = home(&json!({"ready": definition(&ready), "slow": slowly}));
    let found = findings(&home, &[], 0);
    has(&found, "era", "ready", "does not answer server/discover");
    has(&found, "slow", "slow", "to start");
    let is_era_of_slow = |finding: &Value| finding["check"] == "era" && finding["server"] == "slow";
    assert!(!found.iter().any(is_era_of_slow), "{found:#?}");
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

/// A finding names what is to be corrected: the key of a settings file, the program of a secret.
#[test]
fn the_cause_is_named() {
    let secret = json!({"command": ["false"]});
    let mute = json!({
        "command": "sh", "args": ["-c", "cat > ignored"], "era": "legacy", "startup_timeout": 0.2,
    });
    let home = home(&json!({"s": {"command": "true", "env": {"A": secret}}, "mute": mute}));
    home.write("project/plexus.toml", "[hub]\nstart = \"eagre\"\n");
    let found = findings(&home, &[], 1);
    let secret = has(
        &found,
        "connect",
        "s",
        "env.A: the program `false` for a secret exited",
    );
    assert_eq!(
        secret["fix"],
        "run that program yourself to see what it prints"
    );
    let mute = has(&found, "connect", "mute", "did not answer");
    let fix = mute["fix"].as_str().unwrap();
    assert!(fix.starts_with("it may still be downloading"), "{fix}");
    let settings = has(&found, "config", "", "plexus.toml:2:9");
    let file = home.path("project/plexus.toml");
    let fix = format!("correct start at {}:2", file.display());
    assert!(
        settings["fix"].as_str().unwrap().starts_with(&fix),
        "{settings}"
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
    let dies = has(&found, "connect", "dies", "my last words");
    assert_eq!(
        dies["fix"],
        "run its command yourself to see its output; plexus mcp get dies prints it"
    );
    has(&found, "connect", "web", "cannot connect to");
    assert_eq!(
        has(&found, "trust", "theirs", "defined by the project")["fix"],
        "plexus trust theirs"
    );
    has(&found, "tools", "", "tools are offered at once");
    let about = |name: &str| found.iter().any(|finding| finding["server"] == name);
    assert!(!about("well"), "{found:#?}");
    let off = has(
        &found,
        "disabled",
        "off",
        "to enable it: plexus servers toggle off --on --save",
    );
    assert_eq!(off["severity"], "note");

    let text = home.run(&["doctor"]).stdout;
    assert_eq!(text.last().unwrap(), "6 servers: 2 errors, 3 warnings");
    let position = text
        .iter()
        .position(|line| line.contains("dies: "))
        .unwrap();
    assert_eq!(text[position + 1].trim(), "my last words");
    assert!(text[position + 2].trim().starts_with("fix: "), "{text:?}");

    // With `--offline`, no server is started, so only those that would not be are reported.
    let found = findings(&home, &["--offline"], 0);
    let mut about = found.iter().map(|finding| &finding["server"]);
    assert!(
        about.all(|server| server.is_null() || server == "off" || server == "theirs"),
        "{found:#?}"
    );
}

/// The servers of `~/.mcp.json`, which Claude Code loads as well, are moved on request. A server that
/// another file defines differently stays, and no other member of a file changes.
#[test]
fn servers_are_moved_to_a_file_of_their_own() {
    const OWN: &str = ".config/plexus/servers.json";
    let old = r#"{"keep": 1, "mcpServers": {
        "moved": {"command": "true", "args": ["a"]},
        "same": {"command": "true"},
        "other": {"command": "true"}
    }}"#;
    let own = r#"{"mcpServers": {"same": {"command": "true"}, "Other": {"command": "false"}}}"#;
    let home = Home::with(&[FREE_PORT, (".mcp.json", old), (OWN, own)]);
    let noted = home.start(&["doctor", "--offline"]).end().stdout.join(" ");
    assert!(noted.contains("plexus doctor --fix"), "{noted}");
    assert_eq!(home.read(".mcp.json"), old);

    let fixed = home
        .start(&["doctor", "--offline", "--fix", "--json"])
        .end();
    let report: Value = serde_json::from_str(&fixed.stdout.concat()).unwrap();
    let (from, to) = (home.path(".mcp.json"), home.path(OWN));
    let moved = format!(
        "moved moved, same from {} to {}",
        from.display(),
        to.display()
    );
    assert_eq!(report["fixed"][0], moved);
    let stays = report["fixed"][1].as_str().unwrap();
    assert!(
        stays.starts_with("the server \"other\" stays in "),
        "{stays}"
    );
    let other = json!({"command": "true"});
    assert_eq!(
        home.json(".mcp.json"),
        json!({"keep": 1, "mcpServers": {"other": other}})
    );
    let expected = json!({
        "same": {"command": "true"}, "Other": {"command": "false"},
        "moved": {"command": "true", "args": ["a"]},
    });
    assert_eq!(home.json(OWN), json!({"mcpServers": expected}));
    let listed = home.run(&["mcp", "list"]).stdout.join("\n");
    assert!(listed.contains("moved  stdio  true a"), "{listed}");
}
