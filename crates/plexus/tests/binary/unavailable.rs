//! Servers that are skipped are named wherever servers are shown, and nothing else suffers.

use plexus_mcp_protocol::Revision;
use plexus_testkit::server::{Offer, Script, StdioServer, Step, tool};
use serde_json::{Value, json};

use crate::gateway::{DISCOVER, answer, call, control, definition, echoing, file, until_tools};
use crate::home::Home;

const SKIPPED: [&str; 4] = ["theirs", "wrong", "unset", "plexus"];

/// A server that is not trusted, one with a wrong definition, one with a variable that is not set,
/// and one with a reserved name.
async fn skipped_servers() -> (Home, StdioServer, StdioServer) {
    let (mine, theirs) = (echoing().await, echoing().await);
    let unset = json!({"command": "x", "args": ["${NO_SUCH_VARIABLE_IS_SET}"]});
    let servers = file(&[
        ("mine", definition(&mine)),
        ("wrong", json!({"command": 7})),
        ("unset", unset),
        ("plexus", json!({"command": "x"})),
    ]);
    let home = Home::with(&[
        (".mcp.json", &servers),
        (
            "project/.mcp.json",
            &file(&[("theirs", definition(&theirs))]),
        ),
    ]);
    (home, mine, theirs)
}

/// On standard error, in the instructions of both eras, in the status, and in the answer to a call.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_names_every_skipped_server() {
    let (home, _mine, theirs) = skipped_servers().await;
    let mut plexus = home.start(&["serve", "--stdio"]);
    let told = "4 servers are not available: run `plexus status`.";
    let answered = plexus.initialize("2025-11-25");
    let instructions = &answered["result"]["instructions"];
    assert!(instructions.as_str().unwrap().ends_with(told), "{answered}");
    let discovered = plexus.ask(DISCOVER);
    let instructions = &discovered["result"]["instructions"];
    assert!(
        instructions.as_str().unwrap().ends_with(told),
        "{discovered}"
    );

    until_tools(&mut plexus, "mine__", &["mine__work"]);
    for (tool, reason) in [
        ("theirs__work", "not trusted; run plexus trust"),
        ("wrong__work", "command"),
        ("unset__work", "NO_SUCH_VARIABLE_IS_SET"),
    ] {
        plexus.send(&call(tool, 1));
        let refused = answer(&plexus, &json!(1)).to_string();
        assert!(refused.contains(reason), "{refused}");
    }

    let status = control::status(&home, &plexus);
    let servers = status["servers"].as_array().unwrap();
    for name in SKIPPED {
        let named = |server: &&Value| server["name"] == name && server["transport"] != "builtin";
        let server = servers.iter().find(named).expect(name);
        let state = if name == "theirs" {
            "pending"
        } else {
            "failed"
        };
        assert_eq!(server["state"], state, "{server}");
        assert!(server["reason"].is_string(), "{server}");
    }
    let stderr = plexus.end().stderr.join("\n");
    for name in SKIPPED {
        let count = stderr.matches(&format!("server {name:?}")).count();
        assert_eq!(count, 1, "{name} in {stderr}");
    }
    theirs.assert_not_started_again().await;

    // A client that searches for tools is told as well.
    let mut plexus = home.start(&["serve", "--stdio", "--tool-search"]);
    let answered = plexus.initialize("2025-11-25");
    let instructions = &answered["result"]["instructions"];
    assert!(instructions.as_str().unwrap().ends_with(told), "{answered}");
    assert_eq!(plexus.end().code, Some(0));
}

/// In the lists of commands.
#[tokio::test(flavor = "multi_thread")]
async fn commands_name_every_skipped_server() {
    let (home, _mine, _theirs) = skipped_servers().await;
    let listed = home.start(&["mcp", "list"]).end();
    let listed = listed.stdout.join("\n");
    let as_json = home.start(&["mcp", "list", "--json"]).end();
    let as_json: Value = serde_json::from_str(&as_json.stdout[0]).unwrap();
    let unavailable = as_json["unavailable"].as_array().unwrap();
    let diagnosis = home.start(&["doctor", "--offline", "--json"]).end();
    let diagnosis: Value = serde_json::from_str(&diagnosis.stdout[0]).unwrap();
    assert_eq!(diagnosis["servers"], 5, "{diagnosis}");
    let findings = diagnosis["findings"].as_array().unwrap();
    for name in SKIPPED {
        let is_line = |line: &str| line.starts_with(&format!("{name}  "));
        assert!(listed.lines().any(is_line), "{name} in {listed}");
        assert!(
            unavailable.iter().any(|server| server["name"] == name),
            "{name} in {as_json}"
        );
        assert!(
            findings.iter().any(|finding| finding["server"] == name),
            "{name} in {diagnosis}"
        );
    }
    assert!(listed.contains("not trusted; run plexus trust"), "{listed}");
    let status = home.start(&["status", "--json"]).end();
    let status: Value = serde_json::from_str(&status.stdout[0]).unwrap();
    let servers = status["gateways"][0]["servers"].as_array().unwrap();
    for name in SKIPPED {
        let unwell = |server: &Value| server["name"] == name && server["state"] != "connected";
        assert!(servers.iter().any(unwell), "{name} in {status}");
    }
}

/// Each loss of a server is told, also if it is lost again for the same reason.
#[tokio::test(flavor = "multi_thread")]
async fn every_loss_of_a_server_is_told() {
    let server = echoing().await;
    let home = Home::with(&[(".mcp.json", &file(&[("s", definition(&server))]))]);
    let mut plexus = home.start(&["serve", "--stdio"]);
    plexus.initialize("2025-06-18");
    for n in 1..=2 {
        // A call starts the server if the gateway has not done so yet.
        plexus.send(&call("s__work", n));
        answer(&plexus, &json!(n));
        server.process().await.perform(Step::Exit(3)).await;
        plexus.wait_for_stderr("server \"s\": failed: ");
    }
    assert_eq!(plexus.end().code, Some(0));
}

/// A gateway that ends tells nothing about servers that were starting: they did not fail.
#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_blames_no_server() {
    let offer = Offer::tools(Revision::V2025_06_18, [tool("work")]);
    let server = StdioServer::new(Script::from(&offer).ignoring("initialize")).await;
    let mut starting = definition(&server);
    starting["era"] = json!("legacy");
    // Its start waits for the slots of the others.
    let servers: Vec<_> = (0..40).map(|n| format!("s{n}")).collect();
    let servers: Vec<_> = servers
        .iter()
        .map(|name| (name.as_str(), starting.clone()))
        .collect();
    let home = Home::with(&[(".mcp.json", &file(&servers))]);
    let mut plexus = home.start(&["serve", "--stdio"]);
    plexus.initialize("2025-06-18");
    plexus.send(crate::gateway::LIST);
    server.process().await;
    let ended = plexus.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.is_empty(), "{ended:?}");
}

/// A server that runs `plexus serve` on the same configuration is not started, under any name; one
/// that does so behind a shell is refused when it starts. Other servers work.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_does_not_start_itself() {
    let mine = echoing().await;
    let program = env!("CARGO_BIN_EXE_plexus");
    let script = "exec \"$0\" serve --stdio";
    let servers = file(&[
        (
            "again",
            json!({"command": program, "args": ["serve", "--stdio"]}),
        ),
        (
            "hidden",
            json!({"command": "sh", "args": ["-c", script, program]}),
        ),
        ("mine", definition(&mine)),
    ]);
    let home = Home::with(&[(".mcp.json", &servers)]);
    let mut plexus = home.start(&["serve", "--stdio"]);
    plexus.initialize("2025-06-18");
    until_tools(&mut plexus, "mine__", &["mine__work"]);
    let told = plexus.wait_for_stderr("server \"again\": failed: ");
    assert!(
        told.contains("'plexus serve'") && told.contains("loop"),
        "{told}"
    );
    // The reason is on the line after this one, and in the status.
    plexus.wait_for_stderr("server \"hidden\": failed: ");
    let status = control::status(&home, &plexus).to_string();
    assert!(status.contains("would start itself in a loop"), "{status}");
    plexus.send(&call("mine__work", 1));
    assert_eq!(
        answer(&plexus, &json!(1))["result"]["echo"]["arguments"]["n"],
        1
    );
    assert_eq!(plexus.end().code, Some(0));

    let diagnosis = home.start(&["doctor", "--offline", "--json"]).end();
    let diagnosis: Value = serde_json::from_str(&diagnosis.stdout[0]).unwrap();
    let findings = diagnosis["findings"].as_array().unwrap();
    let is_loop = |finding: &Value| finding["check"] == "loop" && finding["server"] == "again";
    assert!(findings.iter().any(is_loop), "{diagnosis}");
    std::fs::rename(home.path(".mcp.json"), home.path("project/.mcp.json")).unwrap();
    let shown = home.start(&["trust"]).end().stdout.join("\n");
    assert!(
        shown.contains("cannot be used: it runs 'plexus serve'"),
        "{shown}"
    );
}

/// The same for a server with the address of the gateway, whose tools would be listed again and
/// again.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_does_not_connect_to_itself() {
    let (_port, address) = crate::returning::port();
    let mine = echoing().await;
    let own = format!("http://{address}/mcp");
    let servers = file(&[
        ("mine", definition(&mine)),
        ("own", json!({"type": "http", "url": own})),
    ]);
    let home = Home::with(&[(".mcp.json", &servers)]);
    let plexus = home.start(&["serve", "--http", &address.to_string()]);
    let told = plexus.wait_for_stderr("server \"own\": failed: ");
    assert!(told.contains("that of the gateway itself"), "{told}");
    assert!(told.contains("plexus mcp remove own"), "{told}");
    let status = loop {
        let status = control::status(&home, &plexus);
        if status["servers"][1]["state"] == "connected" {
            break status;
        }
    };
    let own = &status["servers"][2];
    assert_eq!(own["name"], "own", "{status}");
    assert_eq!(own["state"], "failed", "{status}");
}

/// A list that a server answers with an error is answered with that error by the bridge, which
/// serves one server unchanged.
#[tokio::test(flavor = "multi_thread")]
async fn the_error_of_a_list_is_passed_on_by_the_bridge() {
    let offer = Offer::tools(Revision::V2025_06_18, [tool("work")]);
    let error = json!({"code": -32050, "message": "the index is being built"});
    let script = Script::from(&offer).on("tools/list", [Step::Error(error)]);
    let server = StdioServer::new(script).await;
    let home = Home::with(&[]);
    let mut arguments = vec![
        "bridge".to_owned(),
        "--stdio".to_owned(),
        StdioServer::command().clone(),
    ];
    arguments.extend(server.arguments().iter().map(ToString::to_string));
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let mut plexus = home.start(&arguments);
    plexus.initialize("2025-06-18");
    let listed = plexus.ask(crate::gateway::LIST);
    assert_eq!(listed["error"]["code"], -32050, "{listed}");
    assert_eq!(listed["error"]["message"], "the index is being built");
    assert_eq!(plexus.end().code, Some(0));

    // The gateway lists the other servers, and its status has the reason.
    let home = Home::with(&[(".mcp.json", &file(&[("s", definition(&server))]))]);
    let mut plexus = home.start(&["serve", "--stdio"]);
    plexus.initialize("2025-06-18");
    assert!(plexus.ask(crate::gateway::LIST)["result"]["tools"].is_array());
    let status = home.start(&["status"]).end().stdout.join("\n");
    assert!(status.contains("the index is being built"), "{status}");
    assert_eq!(plexus.end().code, Some(0));
}
