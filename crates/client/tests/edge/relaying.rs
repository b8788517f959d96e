//! What is relayed between a caller and a server, and what stays on one connection.

use plexus_mcp_core::Event;
use plexus_mcp_protocol::Fault;
use plexus_mcp_protocol::messages::LogLevel;
use plexus_testkit::server::{HttpServer, Offer, Reply, Script, StdioServer, Step, tool};
use plexus_testkit::within;
use serde_json::{Value, json};

use crate::support::{Caller, LEGACY, STATELESS, call, connected, during, http, stdio, value};

fn notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// PROG-01, PROG-04, TRAP-23: the server gets a progress token of Plexus, never the caller's.
#[tokio::test]
async fn progress_reaches_the_caller_under_a_token_of_ours() {
    for revision in [LEGACY, STATELESS] {
        let server = StdioServer::new(&Offer::tools(revision, [tool("a")])).await;
        let upstream = connected(stdio(&server)).await;
        let process = server.process().await;
        let caller = Caller {
            progress: true,
            ..Caller::default()
        };
        let params = json!({"name": "a", "_meta": {"progressToken": "theirs"}});
        let (mut calling, mut events) = caller.call(&upstream, "tools/call", &params);
        let request = during(&mut calling, process.received("tools/call")).await;
        let token = &request["params"]["_meta"]["progressToken"];
        assert!(!token.is_null() && *token != "theirs", "{token}");
        let reports = [
            json!({"progressToken": "theirs", "progress": 0.5}),
            json!({"progressToken": token, "progress": 1, "total": 4, "message": "one"}),
            json!({"progressToken": "unknown", "progress": 2}),
            json!({"progressToken": token, "progress": "wrong"}),
            json!({"progressToken": token, "progress": 2.5}),
        ];
        for report in &reports {
            process
                .say(notification("notifications/progress", report))
                .await;
        }
        process.reply(&request, json!({})).await;
        within("the result", calling).await.unwrap();
        // A report after the result is dropped, like those with a wrong token or value.
        process
            .say(notification("notifications/progress", &reports[1]))
            .await;
        let mut seen = Vec::new();
        while let Some(Event::Progress(progress)) = events.try_recv() {
            seen.push((progress.progress, progress.total, progress.message));
        }
        let expected = [(1.0, Some(4.0), Some("one".to_owned())), (2.5, None, None)];
        assert_eq!(seen, expected);
    }
}

#[tokio::test]
async fn log_messages_reach_callers_that_want_them() {
    for revision in [LEGACY, STATELESS] {
        let server = StdioServer::new(&Offer::tools(revision, [tool("a")])).await;
        let upstream = connected(stdio(&server)).await;
        let process = server.process().await;
        let caller = Caller {
            log_level: Some(LogLevel::Warning),
            ..Caller::default()
        };
        let (mut calling, mut events) = caller.call(&upstream, "tools/call", &json!({"name": "a"}));
        let request = during(&mut calling, process.received("tools/call")).await;
        let level = &request["params"]["_meta"]["io.modelcontextprotocol/logLevel"];
        let expected = if revision == STATELESS {
            json!("warning")
        } else {
            Value::Null
        };
        assert_eq!(*level, expected);
        for (level, data) in [
            ("info", json!("quiet")),
            ("error", json!({"what": [1, "x"]})),
        ] {
            let params = json!({"level": level, "logger": "l", "data": data});
            process
                .say(notification("notifications/message", &params))
                .await;
        }
        process.reply(&request, json!({})).await;
        within("the result", calling).await.unwrap();
        let Some(Event::Log(log)) = events.try_recv() else {
            panic!("the error message is missing");
        };
        assert_eq!(
            (log.level, log.logger.as_deref()),
            (LogLevel::Error, Some("l"))
        );
        assert_eq!(value(&log.data), json!({"what": [1, "x"]}));
        assert!(events.try_recv().is_none());
    }
}

/// TRANSLATION §12.19: an empty list of contents is relayed as it is.
#[tokio::test]
async fn no_contents_are_relayed_as_none() {
    let offer = Offer::new(LEGACY).declaring("resources", json!({}));
    let empty = Step::Result(json!({"contents": []}));
    let server = StdioServer::new(Script::from(&offer).on("resources/read", [empty])).await;
    let upstream = connected(stdio(&server)).await;
    let reading = call(&upstream, "resources/read", &json!({"uri": "a:b"}));
    let result = within("the result", reading).await.unwrap();
    assert_eq!(value(&result), json!({"contents": []}));
}

/// S004-15, S004-59: results with unknown members are relayed byte by byte.
#[tokio::test]
async fn results_are_kept_as_they_are() {
    let result = r#"{ "content":[ {"type":"text","text":"\u00e9\/" , "odd":1e2} ],"structuredContent":{"big":12345678901234567890,"float":1.10},"vendor/x":null,"_meta":{"a/b":[ ]}}"#;
    let offer = Offer::tools(LEGACY, [tool("a")]);
    let server = StdioServer::new(&offer).await;
    let upstream = connected(stdio(&server)).await;
    let process = server.process().await;
    let mut calling = call(&upstream, "tools/call", &json!({"name": "a"}));
    let request = during(&mut calling, process.received("tools/call")).await;
    let id = &request["id"];
    let line = format!(r#"{{"result": {result} ,"id":{id},"jsonrpc":"2.0"}}"#);
    process.perform(Step::Print(line)).await;
    let got = within("the result", calling).await.unwrap();
    assert_eq!(got.as_str(), result);
}

/// TRAP-07, TRAP-08: results lose their hop metadata only.
#[tokio::test]
async fn results_of_stateless_servers_lose_only_what_belongs_to_the_hop() {
    let result = r#"{"resultType":"complete","content":[ {"type":"text","text":"\u00e9"}],"vendor/x":12345678901234567890,"_meta":{"a/b":[ 1 ],"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#;
    let offer = Offer::tools(STATELESS, [tool("a")]);
    let server = HttpServer::start(move |request| match request.mcp() {
        "tools/call" => {
            let id = &request.body["id"];
            Reply::status(200).with_json(&format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#
            ))
        }
        _ => request.reply_from(&offer),
    })
    .await;
    let upstream = connected(http(&server)).await;
    let calling = call(&upstream, "tools/call", &json!({"name": "a"}));
    let got = within("the result", calling).await.unwrap();
    let text = got.as_str();
    assert!(
        text.contains(r#""content":[ {"type":"text","text":"\u00e9"}]"#),
        "{text}"
    );
    assert!(
        text.contains(r#""vendor/x":12345678901234567890"#),
        "{text}"
    );
    assert!(text.contains(r#""a/b":[ 1 ]"#), "{text}");
    assert!(!text.contains("resultType"), "{text}");
    assert!(!text.contains("serverInfo"), "{text}");
}

/// TRAP-07: parameters lose their hop metadata only. The W3C trace context is carried.
#[tokio::test]
async fn parameters_lose_only_what_belongs_to_the_hop() {
    let params = json!({"name": "a", "arguments": {"big": 12_345_678_901_234_567_890_u64}, "unknown": [1],
        "requestState": "s", "inputResponses": {},
        "_meta": {"traceparent": "00-a", "tracestate": "v=1", "baggage": "k=2", "vendor/x": 1,
            "progressToken": 5,
            "io.modelcontextprotocol/protocolVersion": "1999-01-01",
            "io.modelcontextprotocol/clientInfo": {"name": "them"},
            "io.modelcontextprotocol/clientCapabilities": {"sampling": {}}}});
    for revision in [LEGACY, STATELESS] {
        let server = StdioServer::new(&Offer::tools(revision, [tool("a")])).await;
        let upstream = connected(stdio(&server)).await;
        let process = server.process().await;
        let mut calling = call(&upstream, "tools/call", &params);
        let request = during(&mut calling, process.received("tools/call")).await;
        let sent = &request["params"];
        assert_eq!(sent["arguments"], params["arguments"]);
        assert_eq!(sent["unknown"], json!([1]));
        let meta = sent["_meta"].as_object().unwrap();
        assert_eq!(meta["traceparent"], "00-a");
        assert_eq!(meta["tracestate"], "v=1");
        assert_eq!(meta["baggage"], "k=2");
        assert_eq!(meta["vendor/x"], 1);
        assert_eq!(meta["progressToken"], request["id"]);
        let reserved: Vec<_> = meta
            .iter()
            .filter(|(key, _)| key.starts_with("io."))
            .collect();
        if revision == LEGACY {
            assert!(reserved.is_empty(), "{reserved:?}");
            assert!(sent.get("requestState").is_none());
        } else {
            assert_eq!(
                meta["io.modelcontextprotocol/protocolVersion"],
                "2026-07-28"
            );
            assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "plexus");
            assert_eq!(
                meta["io.modelcontextprotocol/clientCapabilities"],
                json!({})
            );
        }
        process.reply(&request, json!({})).await;
        within("the result", calling).await.unwrap();
    }
}

/// S001-64, S004-K057: errors of the server are relayed with code, message and data.
#[tokio::test]
async fn errors_are_relayed_as_they_are() {
    for revision in [LEGACY, STATELESS] {
        let server = StdioServer::new(&Offer::tools(revision, [tool("a")])).await;
        let upstream = connected(stdio(&server)).await;
        let process = server.process().await;
        let mut calling = call(&upstream, "tools/call", &json!({"name": "a"}));
        let request = during(&mut calling, process.received("tools/call")).await;
        let error = json!({"code": 4711, "message": "no", "data": {"why": [1]}});
        process.refuse(&request, error).await;
        let fault = within("the failure", calling).await.unwrap_err();
        let Fault::Upstream(error) = fault else {
            panic!("{fault}");
        };
        assert_eq!((error.code, error.message.as_str()), (4711, "no"));
        assert_eq!(value(&error.data.unwrap()), json!({"why": [1]}));
    }
}

/// C31, S004-K017: a failed tool returns a result, not an error.
#[tokio::test]
async fn a_failing_tool_is_a_result() {
    let failed = json!({"content": [{"type": "text", "text": "disk full"}], "isError": true});
    let script = plexus_testkit::server::Script::from(&Offer::tools(LEGACY, [tool("a")]));
    let script = script.on("tools/call", [Step::Result(failed.clone())]);
    let server = StdioServer::new(script).await;
    let upstream = connected(stdio(&server)).await;
    let outcome = within(
        "the result",
        call(&upstream, "tools/call", &json!({"name": "a"})),
    );
    assert_eq!(value(&outcome.await.unwrap()), failed);
}
