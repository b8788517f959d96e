//! `plexus serve` with configured servers.

use std::time::Duration;

use plexus_mcp_protocol::Revision;
use plexus_testkit::server::{Offer, Script, StdioServer, Step, tool};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::home::Home;
use crate::process::Plexus;

pub(crate) const LIST: &str = r#"{"jsonrpc":"2.0","id":"list","method":"tools/list"}"#;
pub(crate) const DISCOVER: &str = r#"{"jsonrpc":"2.0","id":"d","method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":"d","method":"ping"}"#;
const STATELESS_LIST: &str = r#"{"jsonrpc":"2.0","id":"list","method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

/// A server whose tool `work` returns its arguments.
pub(crate) async fn echoing() -> StdioServer {
    let offer = Offer::tools(Revision::V2025_06_18, [tool("work")]);
    StdioServer::new(Script::from(&offer).on("tools/call", [Step::Echo])).await
}

/// The definition of the server in a configuration file.
pub(crate) fn definition(server: &StdioServer) -> Value {
    json!({"command": StdioServer::command(), "args": server.arguments()})
}

/// A configuration file with these servers.
pub(crate) fn file(servers: &[(&str, Value)]) -> String {
    let servers: serde_json::Map<_, _> = servers
        .iter()
        .map(|(name, definition)| ((*name).to_owned(), definition.clone()))
        .collect();
    json!({"mcpServers": servers}).to_string()
}

pub(crate) fn call(tool: &str, n: usize) -> String {
    let params = json!({"name": tool, "arguments": {"n": n}});
    json!({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": params}).to_string()
}

/// The names of the listed tools that have this prefix.
pub(crate) fn tools(plexus: &mut Plexus, prefix: &str) -> Vec<String> {
    let mut names = plexus.tools();
    names.retain(|name| name.starts_with(prefix));
    names
}

/// The response with this id; notifications are skipped.
pub(crate) fn answer(plexus: &Plexus, id: &Value) -> Value {
    loop {
        let message = plexus.receive();
        if message["id"] == *id {
            return message;
        }
    }
}

/// Lists the tools after every change, until they are `expected`: servers may still be connecting.
pub(crate) fn until_tools(plexus: &mut Plexus, prefix: &str, expected: &[&str]) {
    while tools(plexus, prefix) != expected {
        while plexus.receive()["method"] != "notifications/tools/list_changed" {}
    }
}

/// C24, S001-34, S000-24: the servers of all files are merged; for one name, the file with
/// precedence decides.
#[tokio::test(flavor = "multi_thread")]
async fn servers_of_all_files_are_served_as_one() {
    let (mine, ours, named) = (echoing().await, echoing().await, echoing().await);
    let wrong = json!({"command": "false"});
    let home = Home::with(&[
        (
            ".mcp.json",
            &file(&[("both", wrong.clone()), ("mine", definition(&mine))]),
        ),
        (
            "project/.claude/settings.local.json",
            &file(&[("both", definition(&ours)), ("named", wrong)]),
        ),
        ("named.json", &file(&[("named", definition(&named))])),
    ]);
    let allowed = home.start(&["trust", "--yes"]).end();
    assert_eq!(allowed.code, Some(0), "{allowed:?}");
    let named_file = home.path("named.json");
    let named_file = named_file.to_str().unwrap();
    let mut plexus = home.start(&["serve", "--stdio", "--mcp-config", named_file]);
    plexus.initialize("2025-06-18");
    let all = ["named__work", "both__work", "mine__work"];
    for tool in all {
        until_tools(&mut plexus, tool, &[tool]);
    }
    assert!(
        !tools(&mut plexus, "echo_").is_empty(),
        "built-in tools are there, too"
    );
    for (n, tool) in all.iter().enumerate() {
        plexus.send(&call(tool, n));
        let said = answer(&plexus, &json!(n));
        assert_eq!(said["result"]["echo"]["arguments"]["n"], n, "{said}");
    }
    assert_eq!(plexus.end().code, Some(0));
    for server in [mine, ours, named] {
        server.process().await.ended().await;
    }
}

/// S001-40, S001-41, S001-60, S001-61, S001-59: each problem is one line on standard error, and the
/// other servers work.
#[tokio::test(flavor = "multi_thread")]
async fn invalid_servers_are_reported_and_do_not_affect_the_rest() {
    let good = echoing().await;
    let missing = "no-such-program-anywhere";
    let servers = file(&[
        ("good", definition(&good)),
        ("Good", json!({"command": "x"})),
        (
            "crashes",
            json!({"command": "sh", "args": ["-c", "echo alas >&2; exit 4"]}),
        ),
        ("absent", json!({"command": missing})),
        ("a b/\u{e4}\"", definition(&good)),
        ("wrong", json!({"command": 7})),
    ]);
    let home = Home::with(&[
        (".mcp.json", &format!("\u{feff}{servers}")),
        ("project/.mcp.json", "{\"mcpServers\": {"),
        ("empty.json", ""),
    ]);
    std::fs::create_dir_all(home.path("project/.claude/settings.local.json")).unwrap();
    let empty = home.path("empty.json");
    let mut plexus = home.start(&["serve", "--stdio", "--mcp-config", empty.to_str().unwrap()]);
    plexus.initialize("2025-06-18");
    until_tools(&mut plexus, "good__", &["good__work"]);
    until_tools(&mut plexus, "a_b", &["a_b_____work"]);
    plexus.send(&call("a_b_____work", 1));
    assert_eq!(
        answer(&plexus, &json!(1))["result"]["echo"]["arguments"]["n"],
        1
    );

    let mut expected = vec![
        ("empty.json", "empty"),
        ("settings.local.json", "this is a directory"),
        ("project/.mcp.json:1:", ""),
        ("server \"Good\"", "differs only in case"),
        ("server \"wrong\": command", ""),
        ("server \"crashes\": failed", "code 4"),
        ("server \"absent\": failed", missing),
    ];
    let mut said = Vec::new();
    while !expected.is_empty() {
        let line = plexus.wait_for_stderr("warning: ");
        expected.retain(|(place, what)| !(line.contains(place) && line.contains(what)));
        said.push(line);
        assert!(said.len() < 50, "{expected:?} is not in {said:#?}");
    }
    let absent = said.iter().find(|line| line.contains(missing)).unwrap();
    assert!(
        absent.contains("PATH") || absent.contains('/'),
        "says where it was looked for: {absent}"
    );
    assert_eq!(plexus.end().code, Some(0));
}

/// A file with very many servers is read whole.
#[test]
fn two_hundred_servers_can_be_configured() {
    let off: Vec<_> = (0..200)
        .map(|n| {
            (
                format!("s{n}"),
                json!({"command": "false", "disabled": true}),
            )
        })
        .collect();
    let off: Vec<_> = off
        .iter()
        .map(|(name, server)| (name.as_str(), server.clone()))
        .collect();
    let home = Home::with(&[(".mcp.json", &file(&off))]);
    let mut plexus = home.start(&["serve", "--stdio"]);
    plexus.initialize("2025-06-18");
    let status = control::status(&home, &plexus);
    assert_eq!(status["servers"].as_array().unwrap().len(), 201);
    assert_eq!(status["servers"][6]["state"], "disabled");
    assert_eq!(plexus.end().code, Some(0));
}

/// S001-41, S001-75: a server that hangs and one that crashes do not delay the others.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_does_not_delay_the_others() {
    let (a, b, c) = (echoing().await, echoing().await, echoing().await);
    let hanging = StdioServer::new(Script::silent()).await;
    let home = Home::with(&[(
        ".mcp.json",
        &file(&[
            ("hangs", definition(&hanging)),
            ("crashes", json!({"command": "false"})),
            ("a", definition(&a)),
            ("b", definition(&b)),
            ("c", definition(&c)),
        ]),
    )]);
    let began = Instant::now();
    let mut plexus = home.start(&["serve", "--stdio"]);
    plexus.initialize("2025-06-18");
    tools(&mut plexus, "");
    // Much less than the connection timeout of a server; without load it takes less than a second.
    assert!(
        began.elapsed() < Duration::from_secs(15),
        "{:?}",
        began.elapsed()
    );
    for tool in ["a__work", "b__work", "c__work"] {
        until_tools(&mut plexus, tool, &[tool]);
    }
    assert_eq!(plexus.end().code, Some(0));
    hanging.process().await.ended().await;
}

/// Lists are answered from the cache while every server hangs; a call waits for its own server.
#[tokio::test(flavor = "multi_thread")]
async fn lists_come_from_the_last_time() {
    let server = echoing().await;
    let mut words = vec!["-c".to_owned()];
    // While the file `hang` exists, the server does not start.
    words.push("while test -e \"$0\"; do sleep 0.1; done; exec \"$@\"".to_owned());
    let home = Home::with(&[]);
    words.push(home.path("hang").to_str().unwrap().to_owned());
    words.push(StdioServer::command());
    words.extend(server.arguments().iter().cloned());
    let servers = file(&[("a", json!({"command": "sh", "args": words}))]);
    home.write(".mcp.json", &servers);

    let mut first = home.start(&["serve", "--stdio"]);
    first.initialize("2025-06-18");
    until_tools(&mut first, "a__", &["a__work"]);
    assert_eq!(first.end().code, Some(0));

    home.write("hang", "");
    let mut second = home.start(&["serve", "--stdio"]);
    let initialized = second.initialize("2025-06-18");
    assert_eq!(tools(&mut second, "a__"), ["a__work"], "at once");
    assert_eq!(
        initialized["result"]["capabilities"]["tools"]["listChanged"],
        true
    );
    let status = control::status(&home, &second);
    assert_eq!(status["servers"][1]["state"], "pending", "{status}");
    second.send(&call("a__work", 5));
    std::fs::remove_file(home.path("hang")).unwrap();
    assert_eq!(
        answer(&second, &json!(5))["result"]["echo"]["arguments"]["n"],
        5
    );
    // Nothing changed, so there is no notification: the next message is the response.
    second.send(LIST);
    assert_eq!(second.receive()["id"], "list");
    assert_eq!(second.end().code, Some(0));
}

/// A client that lists once gets the tools of a server that is slow to start. The list is cached on
/// disk when the client has disconnected, so that the next client gets it at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_waits_for_a_server_that_is_slow_at_first() {
    let offer = Offer::tools(Revision::V2025_06_18, [tool("work")]);
    let server = StdioServer::new(Script::silent()).await;
    let home = Home::with(&[(".mcp.json", &file(&[("slow", definition(&server))]))]);
    let mut first = home.start(&["serve", "--stdio"]);
    // The client is answered before the server is.
    first.initialize("2025-06-18");
    first.send(LIST);
    let process = server.process().await;
    let discover = process.received("server/discover").await;
    let refusal = offer.answer("server/discover").unwrap_err();
    process.refuse(&discover, refusal).await;
    for method in ["initialize", "tools/list"] {
        let request = process.received(method).await;
        process.reply(&request, offer.answer(method).unwrap()).await;
    }
    let listed = answer(&first, &json!("list"));
    assert_eq!(
        listed["result"]["tools"][0]["name"], "slow__work",
        "{listed}"
    );
    assert_eq!(first.end().code, Some(0));
    process.ended().await;

    let mut second = home.start(&["serve", "--stdio"]);
    second.initialize("2025-06-18");
    assert_eq!(tools(&mut second, "slow__"), ["slow__work"], "at once");
    assert_eq!(second.end().code, Some(0));
}

/// A second signal ends the process while a list waits for a server. The list is not answered, as the
/// closing gateway has no entries any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_answers_no_list() {
    let (fast, slow) = (echoing().await, StdioServer::new(Script::silent()).await);
    let servers = [("fast", definition(&fast)), ("slow", definition(&slow))];
    for (list, next) in [(LIST, PING), (STATELESS_LIST, DISCOVER)] {
        let home = Home::with(&[(".mcp.json", &file(&servers))]);
        let mut program = home.start(&["serve", "--stdio"]);
        if list == LIST {
            program.initialize("2025-06-18");
        }
        program.send(list);
        // Requests are read in order, so the list is in flight when the next one is answered.
        program.send(next);
        answer(&program, &json!("d"));
        slow.process().await.received("server/discover").await;
        program.terminate();
        program.wait_for_stderr("shutting down");
        program.terminate();
        let ended = program.wait();
        assert_eq!(ended.code, Some(128 + 15), "{ended:?}");
        let answer = ended.stdout.iter().find(|line| line.contains("\"tools\""));
        assert_eq!(answer, None);
    }
}

/// With `start = "lazy"`, a server with a cached list is started by its first call.
#[tokio::test(flavor = "multi_thread")]
async fn lazy_servers_are_started_by_their_first_call() {
    let server = echoing().await;
    let home = Home::with(&[
        (".mcp.json", &file(&[("a", definition(&server))])),
        (".config/plexus/plexus.toml", "[hub]\nstart = \"lazy\""),
    ]);
    let mut first = home.start(&["serve", "--stdio"]);
    first.initialize("2025-06-18");
    until_tools(&mut first, "a__", &["a__work"]);
    first.end();
    server.process().await.ended().await;

    let mut second = home.start(&["serve", "--stdio"]);
    second.initialize("2025-06-18");
    assert_eq!(tools(&mut second, "a__"), ["a__work"]);
    server.assert_not_started_again().await;
    second.send(&call("a__work", 5));
    assert_eq!(
        answer(&second, &json!(5))["result"]["echo"]["arguments"]["n"],
        5
    );
    second.end();
    server.process().await.ended().await;
}

/// STDIO-12, S004-39: when the gateway is killed during calls, its servers end, too.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_gateway_leaves_no_process() {
    use rustix::process::{Pid, test_kill_process};

    let offer = Offer::tools(Revision::V2025_06_18, [tool("work")]);
    let script = Script::from(&offer).ignoring("tools/call");
    let servers = [
        StdioServer::new(script.clone()).await,
        StdioServer::new(script.clone()).await,
        StdioServer::new(script).await,
    ];
    let definitions = servers.each_ref().map(definition);
    let names = ["a", "b", "c"];
    let entries: Vec<_> = names.into_iter().zip(definitions).collect();
    let home = Home::with(&[(".mcp.json", &file(&entries))]);
    let mut plexus = home.start(&["serve", "--stdio"]);
    plexus.initialize("2025-06-18");
    for name in ["a__work", "b__work", "c__work"] {
        until_tools(&mut plexus, name, &[name]);
    }
    let mut processes = Vec::new();
    for (n, server) in servers.iter().enumerate() {
        for call_number in 0..20 {
            plexus.send(&call(&format!("{}__work", names[n]), 100 * n + call_number));
        }
        let process = server.process().await;
        process.received("tools/call").await;
        processes.push(process);
    }
    plexus.kill();
    let killed = Instant::now();
    for process in &processes {
        process.ended().await;
    }
    let lasted = killed.elapsed();
    let runs = |pid: u32| {
        let pid = Pid::from_raw(pid.try_into().unwrap()).unwrap();
        test_kill_process(pid).is_ok()
    };
    // The parent needs a moment to reap the processes.
    while processes
        .iter()
        .any(|process| runs(process.pid()) && !is_dead(process.pid()))
    {
        assert!(killed.elapsed() < Duration::from_mins(1));
        std::thread::yield_now();
    }
    assert!(lasted < Duration::from_secs(2), "{lasted:?}");
    // The stale control socket of the killed gateway does not count as a running gateway.
    let mut next = home.start(&["serve", "--stdio"]);
    next.initialize("2025-06-18");
    control::status(&home, &next);
    let sockets = std::fs::read_dir(home.path("data/run")).unwrap().count();
    assert_eq!(sockets, 1);
    next.end();
}

/// Whether the process is a zombie, which its parent has not reaped yet.
#[cfg(unix)]
fn is_dead(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| {
        stat.rsplit(')')
            .next()
            .is_some_and(|rest| rest.starts_with(" Z"))
    })
}

/// C29: a policy rule applies to the built-in tools as well, under each of their names.
#[test]
fn policy_holds_for_built_in_tools() {
    let rules = "[policy]\nrules = [{ tool = \"echo_ping\", action = \"deny\" }]";
    let home = Home::with(&[(".config/plexus/plexus.toml", rules)]);
    let mut plexus = home.start(&["serve", "--stdio"]);
    plexus.initialize("2025-06-18");
    for (n, name) in ["echo_ping", "echo.ping"].into_iter().enumerate() {
        let said = plexus.ask(&call(name, n));
        assert_eq!(said["result"]["isError"], true, "{said}");
        let text = said["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("denied by"), "{text}");
    }
    assert_eq!(plexus.ask(&call("echo_once", 9))["error"]["code"], -32602);
    plexus.end();
}

/// The control socket, from another process of the same user.
#[cfg(unix)]
pub(crate) mod control {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;
    use std::path::PathBuf;

    use super::*;
    use crate::process::TEST_TIMEOUT;

    pub(crate) fn socket(home: &Home, plexus: &Plexus) -> PathBuf {
        home.path(&format!("data/run/{}.sock", plexus.pid()))
    }

    /// Sends a request, and returns the response. Waits until the socket exists.
    pub(crate) fn ask(home: &Home, plexus: &Plexus, method: &str, params: &Value) -> Value {
        let deadline = Instant::now() + TEST_TIMEOUT;
        let mut stream = loop {
            match UnixStream::connect(socket(home, plexus)) {
                Ok(stream) => break stream,
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
            std::thread::yield_now();
        };
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        writeln!(stream, "{request}").unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        serde_json::from_str(&line).expect(&line)
    }

    pub(crate) fn status(home: &Home, plexus: &Plexus) -> Value {
        let mut answer = ask(home, plexus, "status", &json!({}));
        answer["result"].take()
    }

    /// S004-54, S004-52, S004-51: servers are listed, disabled, enabled and reconnected.
    #[tokio::test(flavor = "multi_thread")]
    async fn servers_are_seen_and_steered() {
        let server = echoing().await;
        let home = Home::with(&[(".mcp.json", &file(&[("a", definition(&server))]))]);
        let mut plexus = home.start(&["serve", "--stdio"]);
        plexus.initialize("2025-06-18");
        until_tools(&mut plexus, "a__", &["a__work"]);
        let process = server.process().await;

        let status = status(&home, &plexus);
        assert_eq!(status["pid"], plexus.pid());
        assert_eq!(status["project"], home.path("project").to_str().unwrap());
        let builtin = &status["servers"][0];
        assert_eq!(
            (&builtin["name"], &builtin["transport"]),
            (&json!("plexus"), &json!("builtin"))
        );
        let a = &status["servers"][1];
        let seen = json!({
            "name": a["name"], "enabled": a["enabled"], "state": a["state"], "pid": a["pid"],
            "era": a["era"], "revision": a["revision"], "transport": a["transport"],
            "tools": a["tools"], "scope": a["scope"], "file": a["file"],
            "quarantined": a["quarantined"], "identity": a["identity"],
        });
        let expected = json!({
            "name": "a", "enabled": true, "state": "connected", "pid": process.pid(),
            "era": "legacy", "revision": "2025-06-18", "transport": "stdio",
            "tools": 1, "scope": "user", "file": home.path(".mcp.json").to_str().unwrap(),
            "quarantined": 0, "identity": "scripted 1",
        });
        assert_eq!(seen, expected);

        let off = json!({"name": "a", "enabled": false});
        assert_eq!(ask(&home, &plexus, "toggle", &off)["result"], json!({}));
        assert_eq!(tools(&mut plexus, "a__"), [""; 0]);
        let on = json!({"name": "a", "enabled": true});
        ask(&home, &plexus, "toggle", &on);
        assert_eq!(tools(&mut plexus, "a__"), ["a__work"]);
        assert_eq!(
            ask(&home, &plexus, "reconnect", &json!({"name": "a"}))["result"],
            json!({})
        );
        process.ended().await;
        server.process().await;
        let unknown = ask(&home, &plexus, "reconnect", &json!({"name": "z"}));
        assert!(
            unknown["error"]["message"]
                .as_str()
                .unwrap()
                .contains("\"z\""),
            "{unknown}"
        );
        assert_eq!(
            ask(&home, &plexus, "dance", &json!({}))["error"]["code"],
            -32601
        );
        assert_eq!(
            ask(&home, &plexus, "toggle", &json!({}))["error"]["code"],
            -32602
        );

        let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(home.path("data/run")), 0o700);
        assert_eq!(mode(socket(&home, &plexus)), 0o600);
        let socket = socket(&home, &plexus);
        assert_eq!(plexus.end().code, Some(0));
        assert!(!socket.exists(), "it is removed");
    }
}
