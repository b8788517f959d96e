//! Short lists of tools: selected built-in services, and tool search.

use plexus_mcp_protocol::Revision;
use plexus_testkit::Client;
use serde_json::{Value, json};

use crate::gateway::{answer, call, definition, echoing, file, until_tools};
use crate::home::Home;
use crate::process::{Plexus, plexus};

const SETTINGS: &str = ".config/plexus/plexus.toml";
const USERS_SERVERS: &str = ".config/plexus/servers.json";

/// Starts the program without a selection of services.
fn start(home: &Home, arguments: &[&str]) -> Plexus {
    let mut command = plexus(arguments);
    command
        .env_remove("PLEXUS_BUILTIN")
        .env("HOME", home.path(""))
        .env("PLEXUS_DATA_DIR", home.path("data"))
        .env_remove("XDG_CONFIG_HOME")
        .current_dir(home.path("project"));
    Plexus::spawn(&mut command)
}

/// The built-in services with tools in the list.
fn services(plexus: &mut Plexus) -> Vec<String> {
    let tools = plexus.tools();
    let service = |tool: &String| tool.split('_').next().unwrap().to_owned();
    let mut services: Vec<_> = tools.iter().map(service).collect();
    services.dedup();
    services
}

/// `[hub] page_size` applies to the lists that clients get.
#[test]
fn the_size_of_a_page_is_a_setting() {
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let tools_and_cursor = |home: &Home| {
        let mut plexus = start(home, &["serve", "--stdio"]);
        plexus.initialize("2025-06-18");
        plexus.send(&list.to_string());
        let result = answer(&plexus, &json!(1))["result"].clone();
        let tools = result["tools"].as_array().unwrap().len();
        (tools, result.get("nextCursor").is_some())
    };
    let small = Home::with(&[(SETTINGS, "[hub]\npage_size = 3")]);
    assert_eq!(tools_and_cursor(&small), (3, true));
    let (tools, has_cursor) = tools_and_cursor(&Home::with(&[]));
    assert!(tools > 3 && !has_cursor, "{tools}");
}

/// By default a few services are offered; an option selects others, all or none. The profiles of
/// Substrate, Ghost and Bossman always offer all of theirs.
#[test]
fn built_in_services_are_chosen() {
    let home = Home::with(&[(SETTINGS, "[hub]\nbuiltin = [\"echo\", \"arbor\"]")]);
    let bare = Home::with(&[]);
    let usual = ["health", "echo", "task", "context"];
    let all = [
        "health",
        "echo",
        "task",
        "context",
        "arbor",
        "cone",
        "bash",
        "loopback",
        "claudecode",
    ];
    for (home, arguments, expected) in [
        (&bare, &[][..], &usual[..]),
        (&bare, &["--builtin", "all"], &all),
        (&bare, &["--builtin", "none"], &[]),
        (&home, &[], &["echo", "arbor"]),
        (&home, &["--builtin", "cone,health"], &["health", "cone"]),
        (&home, &["--allow-bash"], &["echo", "arbor", "bash"]),
    ] {
        let mut plexus = start(home, &[&["serve", "--stdio"], arguments].concat());
        let greeting = plexus.initialize("2025-06-18");
        assert_eq!(services(&mut plexus), expected, "{arguments:?}");
        let instructions = greeting["result"]["instructions"]
            .as_str()
            .unwrap_or_default();
        for service in all {
            let is_told = instructions.contains(&format!("{service} "));
            assert_eq!(is_told, expected.contains(&service), "{instructions}");
        }
        assert_eq!(plexus.end().code, Some(0));
    }
    let mut plexus = start(&home, &["serve", "--stdio", "--profile", "substrate"]);
    plexus.initialize("2025-06-18");
    assert!(plexus.tools().contains(&"cone.chat".to_owned()));

    let said = start(&bare, &["call", "cone_chat"]).end();
    assert_eq!(said.code, Some(1));
    assert!(said.stderr.concat().contains("--builtin cone"), "{said:?}");
    let said = start(&bare, &["serve", "--builtin", "tasks"]).end();
    assert_eq!(said.code, Some(2));
    assert!(
        said.stderr
            .concat()
            .contains("\"tasks\" is not a built-in service"),
        "{said:?}"
    );
}

/// With servers configured, their tools are listed and nothing else; Plexus's own tools are listed if
/// they are asked for. S001-32, S001-42, C58.
#[tokio::test(flavor = "multi_thread")]
async fn servers_are_listed_alone() {
    let servers = [echoing().await, echoing().await, echoing().await];
    let named = [
        ("a", definition(&servers[0])),
        ("b", definition(&servers[1])),
        ("c", definition(&servers[2])),
    ];
    let of_servers = ["a__work", "b__work", "c__work"];
    let managing = [
        "ListMcpResources",
        "ReadMcpResource",
        "SubscribeMcpResource",
        "UnsubscribeMcpResource",
        "SubscribePolling",
        "UnsubscribePolling",
    ];
    let echo = ["echo_echo", "echo_once", "echo_ping"];
    for (settings, arguments, own) in [
        ("", &[][..], &[][..]),
        ("[hub]\nmanagement = true", &[], &managing),
        ("[hub]\nbuiltin = [\"echo\"]", &[], &echo),
        ("", &["--builtin", "echo"], &echo),
    ] {
        let home = Home::with(&[(USERS_SERVERS, &file(&named)), (SETTINGS, settings)]);
        let mut plexus = start(&home, &[&["serve", "--stdio"], arguments].concat());
        plexus.initialize("2025-11-25");
        let mut expected: Vec<_> = of_servers.iter().chain(own).copied().collect();
        expected.sort_unstable();
        loop {
            let mut listed = plexus.tools();
            listed.sort_unstable();
            if of_servers
                .iter()
                .all(|tool| listed.contains(&(*tool).to_owned()))
            {
                assert_eq!(listed, expected, "{settings} {arguments:?}");
                break;
            }
            while plexus.receive()["method"] != "notifications/tools/list_changed" {}
        }
        assert_eq!(plexus.end().code, Some(0));
    }
    // The only server is disabled, or its definition is invalid: it is configured nevertheless.
    for definition in [
        json!({"command": "x", "disabled": true}),
        json!({"comand": "x"}),
    ] {
        let home = Home::with(&[(USERS_SERVERS, &file(&[("a", definition)]))]);
        let mut plexus = start(&home, &["serve", "--stdio"]);
        plexus.initialize("2025-11-25");
        assert_eq!(plexus.tools(), [""; 0]);
        assert_eq!(plexus.end().code, Some(0));
    }
    let home = Home::with(&[(USERS_SERVERS, &file(&[]))]);
    let mut plexus = start(&home, &["serve", "--stdio"]);
    plexus.initialize("2025-11-25");
    assert_eq!(services(&mut plexus), ["health", "echo", "task", "context"]);
    assert_eq!(plexus.end().code, Some(0));
}

/// The selection is reloaded with its file, and unknown services are named in the error.
#[test]
fn the_choice_changes_with_its_file() {
    let home = Home::with(&[(SETTINGS, "[hub]\nbuiltin = \"none\"")]);
    let mut plexus = start(&home, &["serve", "--stdio"]);
    plexus.initialize("2025-06-18");
    assert_eq!(services(&mut plexus), [""; 0]);
    home.write(SETTINGS, "[hub]\nbuiltin = [\"echo\"]");
    until_tools(
        &mut plexus,
        "echo_",
        &["echo_echo", "echo_once", "echo_ping"],
    );
    let said = plexus.ask(
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo_ping","arguments":{}}}"#,
    );
    assert_eq!(said["result"]["content"][0]["text"], "pong");
    home.write(SETTINGS, "[hub]\nbuiltin = [\"ehco\"]");
    let said = plexus.wait_for_stderr("warning: ");
    assert!(
        said.contains("plexus.toml: hub.builtin: \"ehco\" is not a built-in service"),
        "{said}"
    );
    assert_eq!(plexus.end().code, Some(0));
}

/// A client with tool search sees three tools instead of hundreds, in both eras; it can call what
/// it finds.
#[tokio::test(flavor = "multi_thread")]
async fn tools_are_searched_for_in_every_era() {
    let server = echoing().await;
    let home = Home::with(&[(".mcp.json", &file(&[("a", definition(&server))]))]);
    let mut plexus = home.start(&["serve", "--http", "127.0.0.1:0", "--tool-search"]);
    let url = plexus.wait_for_stderr("listening on ");
    for revision in [
        Revision::V2024_11_05,
        Revision::V2025_11_25,
        Revision::NEWEST_STATELESS,
    ] {
        let mut client = Client::http(&url, revision, json!({}));
        let greeting = client.open().await;
        let instructions = greeting["instructions"].as_str().unwrap();
        assert!(instructions.contains("a, plexus"), "{instructions}");
        let list = client.result("tools/list", json!({})).await;
        let names: Vec<_> = list["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| &tool["name"])
            .collect();
        assert_eq!(names, ["SearchTools", "DescribeTool", "CallTool"]);
        let text = |result: &Value| result["content"][0]["text"].as_str().unwrap().to_owned();
        // The first search waits for a server without a cached list, as a list request would.
        let query = json!({"query": "work", "server": "a"});
        let found = text(&client.call("SearchTools", query).await);
        assert!(found.starts_with("a__work: "), "{found}");
        assert!(!found.contains("echo_"), "{found}");
        let described = client
            .call("DescribeTool", json!({"name": "a__work"}))
            .await;
        assert!(text(&described).contains("\"inputSchema\""), "{described}");
        let through = json!({"name": "echo_once", "arguments": {"message": "hi"}});
        assert_eq!(text(&client.call("CallTool", through).await), "hi");
    }
    plexus.terminate();
    assert_eq!(plexus.wait().code, Some(0));
}

/// Some clients have tool search, others get the whole list.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_searches_if_the_settings_say_so() {
    let server = echoing().await;
    let home = Home::with(&[
        (".mcp.json", &file(&[("a", definition(&server))])),
        (SETTINGS, "[clients.test]\nsearch = true"),
    ]);
    let mut plexus = home.start(&["serve", "--stdio"]);
    plexus.initialize("2025-06-18");
    assert_eq!(plexus.tools(), ["SearchTools", "DescribeTool", "CallTool"]);
    // A tool can be called by its name without a search.
    plexus.send(&call("a__work", 1));
    let said = answer(&plexus, &json!(1));
    assert_eq!(said["result"]["echo"]["arguments"]["n"], 1, "{said}");
    home.write(SETTINGS, "[clients.other]\nsearch = true");
    until_tools(
        &mut plexus,
        "echo_",
        &["echo_echo", "echo_once", "echo_ping"],
    );
    assert_eq!(plexus.end().code, Some(0));
}
