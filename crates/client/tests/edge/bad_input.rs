//! Servers that misbehave: each leads to a clear status or error in time, and does not affect other
//! connections.

use std::time::Duration;

use futures_util::future::join_all;
use plexus_mcp_client::{Definition, ServerState, Upstream};
use plexus_testkit::server::{HttpServer, Offer, Received, Reply, Script, StdioServer, Step, tool};
use plexus_testkit::within;
use serde_json::{Value, json};

use crate::support::{
    LEGACY, SHORT, STATELESS, call_fails, call_tool, connected, http, status, status_becomes, stdio,
};

fn script() -> Script {
    Script::from(&Offer::tools(LEGACY, [tool("a")]))
}

fn echoing() -> Script {
    script().on("tools/call", [Step::Echo])
}

/// The definition of a server, with short timeouts.
fn impatient(server: &StdioServer) -> Definition {
    let mut definition = stdio(server);
    definition.timeouts.probe = SHORT;
    definition.timeouts.connect = Duration::from_secs(2);
    definition.timeouts.request = SHORT;
    definition.timeouts.call = Duration::from_secs(1);
    definition
}

struct Bystander {
    _server: StdioServer,
    upstream: Upstream,
}

impl Bystander {
    async fn new() -> Self {
        let server = StdioServer::new(echoing()).await;
        let upstream = connected(stdio(&server)).await;
        Self {
            _server: server,
            upstream,
        }
    }

    async fn is_untouched(&self) {
        call_tool(&self.upstream, "a").await;
        assert_eq!(status(&self.upstream).state, ServerState::Connected);
        let violations = self.upstream.report().unwrap().violations;
        assert_eq!(violations, plexus_mcp_client::ProtocolViolations::default());
    }
}

/// S001-62, S004-K051: exits, hangs, garbage and wrong types at each stage of the handshake.
#[tokio::test]
async fn a_greeting_that_goes_wrong_fails_with_a_reason() {
    let result = |value: Value| vec![Step::Result(value)];
    let initialized = Offer::tools(LEGACY, []).initialized();
    let with = |member: &str, value: Value| {
        let mut changed = initialized.clone();
        changed[member] = value;
        vec![Step::Result(changed)]
    };
    let without_version = {
        let mut changed = initialized.clone();
        changed.as_object_mut().unwrap().remove("protocolVersion");
        vec![Step::Result(changed)]
    };
    let stages = [
        ("nothing ever comes", vec![]),
        ("it ends", vec![Step::Exit(4)]),
        (
            "it ends in mid-answer",
            vec![
                Step::Write(r#"{"jsonrpc":"2.0","id":2,"resu"#.to_owned()),
                Step::Exit(0),
            ],
        ),
        (
            "it closes its output in mid-answer",
            vec![Step::Write(r#"{"jsonrpc""#.to_owned()), Step::CloseOutput],
        ),
        ("it closes its input", vec![Step::CloseInput]),
        ("garbage", vec![Step::Print("%!\u{0}\u{1b}[31m".to_owned())]),
        (
            "other JSON",
            vec![
                Step::Print("[1,2,{}]".to_owned()),
                Step::Print("7".to_owned()),
            ],
        ),
        (
            "an answer with another id",
            vec![Step::Print(format!(
                r#"{{"jsonrpc":"2.0","id":99,"result":{initialized}}}"#
            ))],
        ),
        (
            "an error",
            vec![Step::Error(json!({"code": -32603, "message": "not today"}))],
        ),
        ("an error of wrong types", vec![Step::Error(json!("no"))]),
        ("a text", result(json!("welcome"))),
        ("a number", result(json!(1))),
        ("a list", result(json!([]))),
        ("nothing", result(json!({}))),
        ("null", result(json!(null))),
        ("no version", without_version),
        (
            "a version that is a number",
            with("protocolVersion", json!(20_251_125)),
        ),
        (
            "capabilities that are a text",
            with("capabilities", json!("all")),
        ),
        (
            "tools that are a text",
            with("capabilities", json!({"tools": "yes"})),
        ),
        ("an endless line", vec![Step::EndlessLine]),
    ];
    let bystander = Bystander::new().await;
    let greetings = stages.into_iter().map(async |(what, steps)| {
        let server = StdioServer::new(script().on("initialize", steps)).await;
        let mut definition = impatient(&server);
        definition.limits.max_bytes = 50_000;
        let upstream = Upstream::new(definition);
        let outcome = within(what, upstream.connect()).await;
        let error = outcome.expect_err(what).to_string();
        let status = status(&upstream);
        assert_eq!(status.state, ServerState::Failed, "{what}");
        assert_eq!(status.reason.as_deref(), Some(error.as_str()), "{what}");
        assert!(error.len() > 10, "{what}: {error}");
        server.process().await.ended().await;
    });
    join_all(greetings).await;
    bystander.is_untouched().await;
}

/// The same during the probe: Plexus falls back to the handshake, or reports a clear error.
#[tokio::test]
async fn a_probe_that_goes_wrong_ends_in_time() {
    let stages = [
        ("garbage", vec![Step::Print("hello?".to_owned())]),
        ("an endless line", vec![Step::EndlessLine]),
        ("its output closes", vec![Step::CloseOutput]),
        ("its input closes", vec![Step::CloseInput]),
        ("it hangs", vec![Step::Hang]),
        ("it ends", vec![Step::Exit(1)]),
    ];
    let bystander = Bystander::new().await;
    let probes = stages.into_iter().map(async |(what, steps)| {
        let server = StdioServer::new(script().on("server/discover", steps)).await;
        let mut definition = impatient(&server);
        definition.limits.max_bytes = 50_000;
        let upstream = Upstream::new(definition);
        let outcome = within(what, upstream.connect()).await;
        let expected = if outcome.is_ok() {
            ServerState::Connected
        } else {
            ServerState::Failed
        };
        assert_eq!(status(&upstream).state, expected, "{what}");
    });
    join_all(probes).await;
    bystander.is_untouched().await;
}

/// The server exits right after the handshake, or when it receives `tools/list`.
#[tokio::test]
async fn a_server_that_ends_after_the_greeting_is_failed() {
    let bystander = Bystander::new().await;
    for method in ["notifications/initialized", "tools/list"] {
        let server = StdioServer::new(script().on(method, [Step::Exit(5)])).await;
        let upstream = Upstream::new(impatient(&server));
        // The connect succeeds or fails, depending on timing. The status must be `Failed` soon
        // after.
        drop(within("the attempt", upstream.connect()).await);
        let status = status_becomes(&upstream, ServerState::Failed).await;
        let reason = status.reason.unwrap();
        assert!(reason.contains("code 5"), "{reason}");
        bystander.is_untouched().await;
    }
}

/// The same over HTTP.
#[tokio::test]
async fn an_endpoint_that_goes_wrong_fails_with_a_reason() {
    type Answer = fn(&Received) -> Reply;
    let answers: [(&str, Answer); 9] = [
        ("nothing ever comes", |_| Reply::never()),
        ("the connection closes", |_| Reply::hang_up()),
        ("garbage", |_| {
            Reply::status(200).with_json("{\"jsonrpc\": ")
        }),
        ("no JSON", |_| {
            Reply::status(200).with_body("text/html", "<h1>Hello</h1>")
        }),
        ("a body beyond the limit", |request| {
            Reply::json(&request.result(&json!({"x": "y".repeat(100_000)})))
        }),
        ("a body that breaks off", |_| {
            let (reply, stream) = Reply::stream();
            stream.write_now("{\"jsonrpc\": \"2.0\", ");
            drop(stream);
            reply.with_header("content-type", "application/json")
        }),
        ("a stream that ends", |_| Reply::events(&[])),
        ("a stream of garbage", |_| {
            Reply::status(200).with_body("text/event-stream", "data: hm\n\ndata: {}\n\n")
        }),
        ("the wrong type", |request| {
            Reply::json(&request.result(&json!(["welcome"])))
        }),
    ];
    let bystander = Bystander::new().await;
    let greetings = answers.into_iter().map(async |(what, answer)| {
        let server = HttpServer::start(move |request| match request.mcp() {
            "initialize" => answer(request),
            _ => Reply::status(400),
        })
        .await;
        let mut definition = http(&server);
        definition.timeouts.connect = SHORT * 2;
        definition.limits.max_bytes = 50_000;
        let upstream = Upstream::new(definition);
        let error = within(what, upstream.connect()).await.expect_err(what);
        let status = status(&upstream);
        assert_eq!(status.state, ServerState::Failed, "{what}: {error}");
        assert!(
            status.reason.is_some_and(|reason| reason.len() > 10),
            "{what}"
        );
    });
    join_all(greetings).await;
    bystander.is_untouched().await;
}

/// Failures during a call; TRAP-29: one of them is a server that closes its input.
#[tokio::test]
async fn a_call_that_goes_wrong_fails_in_time() {
    let stages = [
        ("nothing ever comes", vec![], true),
        (
            "garbage",
            vec![Step::Print("Segmentation fault".to_owned())],
            true,
        ),
        (
            "other JSON",
            vec![Step::Print(r#"{"id":1}"#.to_owned())],
            true,
        ),
        (
            "a line beyond the limit",
            vec![Step::Print("x".repeat(60_000))],
            true,
        ),
        ("an endless line", vec![Step::EndlessLine], false),
        ("it ends", vec![Step::Exit(6)], false),
        (
            "it ends in mid-answer",
            vec![
                Step::Write(r#"{"jsonrpc":"2.0","#.to_owned()),
                Step::Exit(6),
            ],
            false,
        ),
        ("its output closes", vec![Step::CloseOutput], false),
        ("its input closes", vec![Step::CloseInput], false),
        ("it hangs", vec![Step::Hang], false),
    ];
    let bystander = Bystander::new().await;
    for revision in [LEGACY, STATELESS] {
        let calls = stages.iter().map(async |(what, steps, goes_on)| {
            let script = Script::from(&Offer::tools(revision, [tool("a")]));
            let script = script
                .on("tools/call", steps.clone())
                .then("tools/call", [Step::Echo]);
            let server = StdioServer::new(script).await;
            let mut definition = impatient(&server);
            definition.timeouts.probe = Duration::from_secs(10);
            definition.limits.max_bytes = 50_000;
            let upstream = connected(definition).await;
            let failure = call_fails(&upstream, "a").await;
            assert!(failure.len() > 10, "{what}: {failure}");
            if *goes_on {
                call_tool(&upstream, "a").await;
                assert_eq!(status(&upstream).state, ServerState::Connected, "{what}");
            }
            within(what, upstream.disconnect()).await;
        });
        join_all(calls).await;
        bystander.is_untouched().await;
    }
}

/// S004-D14: undecodable lines are counted by kind. The last one is kept, truncated.
#[tokio::test]
async fn junk_is_counted_by_kind() {
    let server = StdioServer::new(echoing()).await;
    let mut definition = stdio(&server);
    definition.limits.max_bytes = 10_000;
    let upstream = connected(definition).await;
    let process = server.process().await;
    for line in [
        "plain text",
        r#"{"jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"1.0","method":"ping","id":1}"#,
        "[]",
    ] {
        process.perform(Step::Print(line.to_owned())).await;
    }
    process.perform(Step::Print("long ".repeat(5000))).await;
    process
        .perform(Step::Print(format!("last {}", "\u{e9}".repeat(1000))))
        .await;
    process
        .say(json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}))
        .await;
    process.answer(&json!("p")).await;
    let violations = upstream.report().unwrap().violations;
    assert_eq!(violations.too_long, 1, "{violations:?}");
    assert_eq!(
        violations.not_json + violations.not_a_message,
        5,
        "{violations:?}"
    );
    let last = violations.last_undecodable.unwrap();
    assert!(
        last.starts_with("last ") && last.chars().count() <= 200,
        "{last}"
    );
    call_tool(&upstream, "a").await;
}

/// A server that sends without end and never reads is stopped like any other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_without_reading_ends_in_time() {
    let bystander = Bystander::new().await;
    let flood =
        json!({"jsonrpc": "2.0", "method": "notifications/x", "params": {"y": "z".repeat(500)}});
    let server =
        StdioServer::new(script().on("tools/call", [Step::Flood(flood), Step::Hang])).await;
    let upstream = connected(impatient(&server)).await;
    let process = server.process().await;
    let params = json!({"name": "a", "arguments": {"x": "y".repeat(20_000)}});
    let calls = (0..600).map(|_| crate::support::call(&upstream, "tools/call", &params));
    let calls = within("the failures", join_all(calls)).await;
    assert!(calls.iter().all(Result::is_err));
    bystander.is_untouched().await;
    within("the end", upstream.disconnect()).await;
    process.ended().await;
}
