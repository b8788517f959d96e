//! Changes of the configuration while `plexus serve` runs.

use serde_json::json;

use crate::gateway::{answer, call, control, definition, echoing, file, tools, until_tools};
use crate::home::Home;

/// S004-53, C38, S001-36: servers are added, changed and removed with their files, and the client
/// is notified; unchanged servers keep their connection.
#[tokio::test(flavor = "multi_thread")]
async fn servers_come_change_and_go_with_their_files() {
    let (steady, other) = (echoing().await, echoing().await);
    let a = ("a", definition(&steady));
    let home = Home::with(&[(".mcp.json", &file(std::slice::from_ref(&a)))]);
    let mut plexus = home.start(&["serve", "--stdio"]);
    plexus.initialize("2025-06-18");
    until_tools(&mut plexus, "a__", &["a__work"]);
    let process = steady.process().await;

    home.write(".mcp.json", &file(&[a.clone(), ("b", definition(&other))]));
    let told = loop {
        let message = plexus.receive();
        if message["method"] == "notifications/tools/list_changed" {
            break message;
        }
    };
    assert!(told["id"].is_null());
    until_tools(&mut plexus, "b__", &["b__work"]);
    let first = other.process().await;

    let mut changed = definition(&other);
    changed["env"] = json!({"MORE": "1"});
    home.write(".mcp.json", &file(&[a.clone(), ("b", changed.clone())]));
    first.ended().await;
    let second = other.process().await;
    until_tools(&mut plexus, "b__", &["b__work"]);

    // A changed filter needs no reconnect.
    changed["deny"] = json!(["work"]);
    home.write(".mcp.json", &file(&[a.clone(), ("b", changed)]));
    until_tools(&mut plexus, "b__", &[]);
    other.assert_not_started_again().await;

    home.write(".mcp.json", &file(&[a]));
    second.ended().await;
    plexus.send(&call("a__work", 3));
    assert_eq!(
        answer(&plexus, &json!(3))["result"]["echo"]["arguments"]["n"],
        3
    );
    assert_eq!(plexus.end().code, Some(0));
    process.ended().await;
    steady.assert_not_started_again().await;
}

/// A file that is named on the command line may vanish for a while, and takes no server away.
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_file_takes_no_server_away() {
    let server = echoing().await;
    let home = Home::with(&[("named.json", &file(&[("a", definition(&server))]))]);
    let named = home.path("named.json");
    let mut plexus = home.start(&["serve", "--stdio", "--mcp-config", named.to_str().unwrap()]);
    plexus.initialize("2025-06-18");
    until_tools(&mut plexus, "a__", &["a__work"]);
    std::fs::remove_file(named).unwrap();
    let reloaded = control::ask(&home, &plexus, "reload", &json!({}));
    assert_eq!(reloaded["result"]["removed"], json!([]), "{reloaded}");
    assert_eq!(tools(&mut plexus, "a__"), ["a__work"]);
    assert_eq!(plexus.end().code, Some(0));
}

/// A file that is invalid for a while removes no server, and is reported in one line.
#[tokio::test(flavor = "multi_thread")]
async fn a_broken_file_takes_no_server_away() {
    let server = echoing().await;
    let home = Home::with(&[(".mcp.json", &file(&[("a", definition(&server))]))]);
    let mut plexus = home.start(&["serve", "--stdio"]);
    plexus.initialize("2025-06-18");
    until_tools(&mut plexus, "a__", &["a__work"]);
    let process = server.process().await;
    home.write(".mcp.json", "{\"mcpServers\": {\"a\": ");
    plexus.wait_for_stderr("warning: ");
    let status = control::ask(&home, &plexus, "status", &json!({}));
    let problem = status["result"]["problems"][0].as_str().unwrap();
    assert!(problem.contains(".mcp.json:1:"), "{problem}");
    plexus.send(&call("a__work", 1));
    assert_eq!(
        answer(&plexus, &json!(1))["result"]["echo"]["arguments"]["n"],
        1
    );

    home.write(".mcp.json", "{}");
    until_tools(&mut plexus, "a__", &[]);
    process.ended().await;
    server.assert_not_started_again().await;
    assert_eq!(plexus.end().code, Some(0));
}

/// Policy rules are reloaded with their file, and another process can request a reload.
#[tokio::test(flavor = "multi_thread")]
async fn policy_and_requests_to_reload() {
    let server = echoing().await;
    let home = Home::with(&[
        (".mcp.json", &file(&[("a", definition(&server))])),
        (".config/plexus/plexus.toml", ""),
    ]);
    let mut plexus = home.start(&["serve", "--stdio"]);
    plexus.initialize("2025-06-18");
    until_tools(&mut plexus, "a__", &["a__work"]);
    home.write(
        ".config/plexus/plexus.toml",
        "[policy]\nrules = [{ tool = \"a__*\", action = \"deny\" }]",
    );
    let reloaded = control::ask(&home, &plexus, "reload", &json!({}));
    assert_eq!(
        reloaded["result"],
        json!({"added": [], "removed": [], "updated": [], "errors": {}})
    );
    plexus.send(&call("a__work", 1));
    let denied = answer(&plexus, &json!(1));
    assert_eq!(denied["result"]["isError"], true, "{denied}");
    assert_eq!(tools(&mut plexus, "a__"), ["a__work"]);
    assert_eq!(plexus.end().code, Some(0));
}

/// SIGHUP reloads the configuration, also if no file has changed that is watched.
#[tokio::test(flavor = "multi_thread")]
async fn sighup_reloads() {
    let server = echoing().await;
    let home = Home::with(&[("project/.mcp.json", &file(&[("a", definition(&server))]))]);
    let allowed = home.start(&["trust", "--yes"]).end();
    assert_eq!(allowed.code, Some(0), "{allowed:?}");
    let approvals = home.read("data/trust.json");
    std::fs::remove_file(home.path("data/trust.json")).unwrap();
    let mut plexus = home.start(&["serve", "--stdio"]);
    plexus.initialize("2025-06-18");
    assert_eq!(tools(&mut plexus, "a__"), [""; 0]);
    // The socket is there when the background tasks run, and with them the handler.
    control::status(&home, &plexus);
    home.write("data/trust.json", &approvals);
    plexus.signal(rustix::process::Signal::HUP);
    until_tools(&mut plexus, "a__", &["a__work"]);
    assert_eq!(plexus.end().code, Some(0));
}
