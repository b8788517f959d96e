//! Streamable HTTP of the handshake era.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ::http::{HeaderMap, HeaderValue, Method};
use plexus_mcp_client::auth::{AuthError, Authorizer, Refusal};
use plexus_mcp_client::{Definition, ServerState, Target};
use plexus_mcp_core::{Boxed, EventSender};
use plexus_mcp_protocol::Revision;
use plexus_testkit::server::{HttpServer, Offer, Received, Reply, tool};
use plexus_testkit::within;
use serde_json::json;
use tokio::time::Instant;

use crate::support::{
    Caller, LEGACY, call, call_fails, call_tool, connected, during, for_clients, http, minimal,
    refused, revision, status, status_becomes, target, tools, tools_become, value,
};

/// A server that opens a new session for each `initialize`; `otherwise` can override its replies.
async fn with_sessions(
    otherwise: impl Fn(&Received) -> Option<Reply> + Send + Sync + 'static,
) -> HttpServer {
    let offer = Offer::tools(LEGACY, [tool("a")]);
    let sessions = AtomicUsize::new(0);
    HttpServer::start(move |request| {
        if let Some(reply) = otherwise(request) {
            return reply;
        }
        match request.mcp() {
            "initialize" => {
                let number = sessions.fetch_add(1, Ordering::Relaxed) + 1;
                let session = format!("session-{number}");
                request
                    .reply_from(&offer)
                    .with_header("mcp-session-id", &session)
            }
            "tools/call" => Reply::json(&request.result(&json!({"content": []}))),
            _ => request.reply_from(&offer),
        }
    })
    .await
}

fn count(server: &HttpServer, method: &str) -> usize {
    let methods = server.methods();
    methods.iter().filter(|named| *named == method).count()
}

/// S000-09, S004-40, S004-42, S004-43, S004-44, HTTPLC-01, HTTPLC-05, HTTPLC-08, HTTPLC-10,
/// HTTPLC-11, S004-K040, S004-K041, S004-K044, S004-K045, S004-D07, S004-D10: every
/// request has the MCP-Protocol-Version header, and the session ends with DELETE.
#[tokio::test]
async fn every_request_carries_what_it_must() {
    let server = with_sessions(|_| None).await;
    let mut target = target(&server.url());
    let key = HeaderValue::from_static("secret");
    target.headers.insert("x-api-key", key);
    let mut definition = minimal(Target::Http(target));
    definition.era = Some(plexus_mcp_client::Era::Handshake);
    let upstream = connected(definition).await;
    call_tool(&upstream, "a").await;
    server.requested(Method::GET).await;
    within("the end", upstream.disconnect()).await;
    let deleted = server.requested(Method::DELETE).await;
    assert_eq!(deleted.header("mcp-session-id"), Some("session-1"));

    for request in server.all() {
        assert_eq!(request.header("x-api-key"), Some("secret"));
        let is_first = request.mcp() == "initialize";
        let session = (!is_first).then_some("session-1");
        assert_eq!(request.header("mcp-session-id"), session, "{request:?}");
        let version = (!is_first).then_some("2025-11-25");
        assert_eq!(
            request.header("mcp-protocol-version"),
            version,
            "{request:?}"
        );
        if request.method == Method::POST {
            assert_eq!(request.header("content-type"), Some("application/json"));
            let accept = request.header("accept").unwrap();
            assert!(accept.contains("application/json") && accept.contains("text/event-stream"));
        }
        if request.method == Method::GET {
            assert_eq!(request.header("accept"), Some("text/event-stream"));
        }
    }
}

/// S001-31, S004-11, S004-49, LIFE-03: no request is sent before the response to
/// `notifications/initialized` has ended.
#[tokio::test]
async fn the_handshake_is_over_before_anything_else_is_sent() {
    let (streams, mut opened) = tokio::sync::mpsc::channel(1);
    let server = with_sessions(move |request| {
        (request.mcp() == "notifications/initialized").then(|| {
            let (reply, stream) = Reply::stream();
            streams.try_send(stream).unwrap();
            reply
        })
    })
    .await;
    let upstream = plexus_mcp_client::Upstream::new(http(&server));
    let mut connecting = Box::pin(upstream.connect());
    let answering = async {
        let stream = within("the end of the handshake", opened.recv()).await;
        // The response has not ended yet.
        assert_eq!(count(&server, "tools/list"), 0);
        drop(stream);
    };
    let (connected, ()) = tokio::join!(&mut connecting, answering);
    connected.unwrap();
    let methods = server.methods();
    let place = |wanted| methods.iter().position(|method| *method == wanted).unwrap();
    assert!(place("notifications/initialized") < place("tools/list"));
}

/// S001-46, LIFE-06, LIFE-10: each handshake-era revision that a server chooses is accepted.
/// Requests have the version header from 2025-06-18 on.
#[tokio::test]
async fn the_server_chooses_among_the_old_revisions() {
    for older in Revision::ALL
        .into_iter()
        .filter(|r| r.era() == LEGACY.era())
    {
        let offer = Offer::tools(older, [tool("a")]);
        let server = HttpServer::start(move |request| request.reply_from(&offer)).await;
        let upstream = connected(http(&server)).await;
        assert_eq!(revision(&upstream), older);
        let greeting = server.received("initialize").await;
        assert_eq!(greeting.body["params"]["protocolVersion"], "2025-11-25");
        let list = server.received("tools/list").await;
        let header = older.features().version_header.then_some(older.as_str());
        assert_eq!(list.header("mcp-protocol-version"), header);
    }
}

/// LIFE-08
#[tokio::test]
async fn an_unknown_protocol_version_is_refused() {
    for version in ["1999-01-01", "2026-07-28", "", "latest"] {
        let offer = Offer::new(LEGACY);
        let server = HttpServer::start(move |request| match request.mcp() {
            "initialize" => {
                let mut result = offer.initialized();
                result["protocolVersion"] = json!(version);
                Reply::json(&request.result(&result)).with_header("mcp-session-id", "s")
            }
            _ => request.reply_from(&offer),
        })
        .await;
        let (upstream, error) = refused(http(&server)).await;
        assert!(error.to_string().contains(version), "{error}");
        assert_eq!(status(&upstream).state, ServerState::Failed);
        server.requested(Method::DELETE).await;
        assert_eq!(count(&server, "notifications/initialized"), 0);
    }
}

#[tokio::test]
async fn a_server_without_sessions_is_not_asked_to_end_one() {
    let offer = Offer::tools(LEGACY, [tool("a")]);
    let server = HttpServer::start(move |request| request.reply_from(&offer)).await;
    let upstream = connected(http(&server)).await;
    within("the end", upstream.disconnect()).await;
    assert!(
        !server
            .all()
            .iter()
            .any(|request| request.method == Method::DELETE)
    );
}

/// S001-D03: notifications on the GET stream are processed. A broken stream is resumed after its
/// last event.
#[tokio::test]
async fn notifications_on_the_stream_of_no_request_are_heeded() {
    let offer = Offer::tools(LEGACY, []);
    let (streams, mut opened) = tokio::sync::mpsc::channel(4);
    let lists = AtomicUsize::new(0);
    let server = HttpServer::start(move |request| {
        if request.method == Method::GET {
            let (reply, stream) = Reply::stream();
            streams.try_send(stream).unwrap();
            return reply;
        }
        if request.mcp() == "tools/list" {
            let number = lists.fetch_add(1, Ordering::Relaxed);
            let tools = [tool(&format!("t{number}"))];
            return Reply::json(&request.result(&json!({"tools": tools})));
        }
        request.reply_from(&offer)
    })
    .await;
    let upstream = connected(http(&server)).await;
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let stream = within("the stream", opened.recv()).await.unwrap();
    stream.write(&format!("id: e1\ndata: {changed}\n\n")).await;
    tools_become(&upstream, &["t1"]).await;
    server.requested(Method::GET).await;
    stream.break_off().await;
    let again = server.requested(Method::GET).await;
    assert_eq!(again.header("last-event-id"), Some("e1"));
    let stream = within("the next stream", opened.recv()).await.unwrap();
    stream.say(&changed).await;
    tools_become(&upstream, &["t2"]).await;
    within("the end", upstream.disconnect()).await;
    stream.closed().await;
}

/// S004-D08: notifications in an SSE response are delivered.
#[tokio::test]
async fn notifications_on_the_stream_of_a_call_are_heeded() {
    let lists = Arc::new(AtomicUsize::new(0));
    let server = with_sessions(move |request| match request.mcp() {
        "tools/call" => {
            let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
            let result = request.result(&json!({"content": []}));
            Some(Reply::events(&[changed, result]))
        }
        "tools/list" => {
            let number = lists.fetch_add(1, Ordering::Relaxed);
            let tools = [tool(&format!("t{number}"))];
            Some(Reply::json(&request.result(&json!({"tools": tools}))))
        }
        _ => None,
    })
    .await;
    let upstream = connected(http(&server)).await;
    assert_eq!(tools(&upstream), ["t0"]);
    call_tool(&upstream, "a").await;
    tools_become(&upstream, &["t1"]).await;
}

/// HTTPLC-06, HTTPLC-07: a broken response stream is resumed with `Last-Event-ID`, after the
/// server's `retry` time. The call is not sent again.
#[tokio::test]
async fn a_broken_answer_is_resumed() {
    const RETRY: Duration = Duration::from_millis(300);
    let called = Arc::new(std::sync::Mutex::new(None::<Received>));
    let resumes = AtomicUsize::new(0);
    let server = with_sessions(move |request| {
        let mut called = called.lock().unwrap();
        if request.mcp() == "tools/call" {
            *called = Some(request.clone());
            let events = "id: one\nretry: 300\ndata:\n\n";
            return Some(Reply::status(200).with_body("text/event-stream", events));
        }
        request.header("last-event-id")?;
        if resumes.fetch_add(1, Ordering::Relaxed) == 0 {
            let events = "id: two\ndata:\n\n";
            return Some(Reply::status(200).with_body("text/event-stream", events));
        }
        let answer = called
            .as_ref()
            .unwrap()
            .result(&json!({"content": [], "n": 7}));
        Some(Reply::events(&[answer]))
    })
    .await;
    let upstream = connected(http(&server)).await;
    let started = Instant::now();
    assert_eq!(call_tool(&upstream, "a").await["n"], 7);
    assert!(started.elapsed() >= 2 * RETRY);
    let resumed = server.all();
    let resumed: Vec<_> = resumed
        .iter()
        .filter_map(|request| request.header("last-event-id"))
        .collect();
    assert_eq!(resumed, ["one", "two"]);
    assert_eq!(count(&server, "tools/call"), 1);
}

/// TRAP-39, S004-47: a stream that cannot be resumed fails its call only. The call may have run, so
/// it is not sent again.
#[tokio::test]
async fn a_broken_call_is_never_made_again() {
    type Broken = fn() -> Reply;
    let ways: [(&str, Broken); 5] = [
        ("no answer at all", Reply::hang_up),
        ("a stream that ends at once", || Reply::events(&[])),
        ("a stream that says nothing of use", || {
            Reply::status(200).with_body("text/event-stream", "data: garbage\n\n: hm\n\n")
        }),
        ("a stream that breaks off in mid-event", || {
            let (reply, stream) = Reply::stream();
            stream.write_now("data: {\"jsonrpc\":");
            drop(stream);
            reply
        }),
        ("an answer to another request", || {
            Reply::status(200).with_json(r#"{"jsonrpc":"2.0","id":"x","result":{}}"#)
        }),
    ];
    for (what, broken) in ways {
        let server =
            with_sessions(move |request| (request.body["params"]["name"] == "broken").then(broken))
                .await;
        let upstream = connected(http(&server)).await;
        let failure = call_fails(&upstream, "broken").await;
        assert!(!failure.is_empty(), "{what}");
        assert_eq!(count(&server, "tools/call"), 1, "{what}");
        call_tool(&upstream, "a").await;
        assert_eq!(status(&upstream).state, ServerState::Connected, "{what}");
    }
}

/// The GET stream of a lost session is refused while a call is in flight. The call is answered on its
/// own stream, and is not sent again; the session is opened anew afterwards.
#[tokio::test]
async fn a_lost_session_does_not_repeat_a_call_in_flight() {
    let (streams, mut opened) = tokio::sync::mpsc::channel(1);
    let (answers, mut called) = tokio::sync::mpsc::channel(1);
    let gets = AtomicUsize::new(0);
    let server = with_sessions(move |request| {
        if request.method == Method::GET {
            return Some(if gets.fetch_add(1, Ordering::Relaxed) == 0 {
                let (reply, stream) = Reply::stream();
                streams.try_send(stream).unwrap();
                reply
            } else {
                Reply::status(404)
            });
        }
        (request.mcp() == "tools/call").then(|| {
            let (reply, stream) = Reply::stream();
            answers.try_send((stream, request.clone())).unwrap();
            reply
        })
    })
    .await;
    let upstream = connected(http(&server)).await;
    let stream = within("the GET stream", opened.recv()).await.unwrap();
    server.requested(Method::GET).await;
    let mut calling = call(&upstream, "tools/call", &json!({"name": "a"}));
    let (answer, request) = during(&mut calling, called.recv()).await.unwrap();
    during(&mut calling, stream.break_off()).await;
    during(&mut calling, server.requested(Method::GET)).await;
    answer.say(&request.result(&json!({"content": []}))).await;
    within("the result", calling).await.unwrap();
    assert_eq!(count(&server, "tools/call"), 1);
    server.received("initialize").await;
    server.received("initialize").await;
}

/// A server that is killed during a call: the caller reads that the call may have been carried out, and
/// not only that the server cannot be reached now.
#[tokio::test]
async fn a_server_that_goes_away_during_a_call_leaves_the_call_in_doubt() {
    let (streams, mut opened) = tokio::sync::mpsc::channel(1);
    let server = with_sessions(move |request| {
        (request.mcp() == "tools/call").then(|| {
            let (reply, stream) = Reply::stream();
            stream.write_now("id: one\nretry: 10\ndata:\n\n");
            streams.try_send(stream).unwrap();
            reply
        })
    })
    .await;
    let upstream = connected(http(&server)).await;
    let mut calling = call(&upstream, "tools/call", &json!({"name": "a"}));
    let stream = during(&mut calling, opened.recv()).await;
    drop(server);
    drop(stream);
    let failure = within("the failure", calling)
        .await
        .unwrap_err()
        .to_string();
    for part in [
        "lost during the call",
        "may have been carried out",
        "cannot connect",
    ] {
        assert!(failure.contains(part), "{part}: {failure}");
    }
}

/// The token expires while an interrupted answer is resumed. The server has received the call, so it
/// is not sent again after a new sign-in.
#[tokio::test]
async fn a_call_is_not_repeated_when_its_answer_cannot_be_resumed_for_lack_of_a_token() {
    let server = with_sessions(|request| {
        if request.mcp() == "tools/call" {
            let events = "id: one\nretry: 10\ndata:\n\n";
            return Some(Reply::status(200).with_body("text/event-stream", events));
        }
        request.header("last-event-id")?;
        Some(Reply::status(401))
    })
    .await;
    let mut target = target(&server.url());
    target.authorizer = Some(Arc::new(SignsIn));
    let mut definition = Definition::new(Target::Http(target));
    definition.era = Some(LEGACY.era());
    let upstream = connected(definition).await;
    let failure = call_fails(&upstream, "a").await;
    assert!(failure.contains("could not be resumed"), "{failure}");
    assert_eq!(count(&server, "tools/call"), 1);
}

/// An authorizer that has no better credentials, but whose user always signs in.
#[derive(Debug)]
struct SignsIn;

impl Authorizer for SignsIn {
    fn headers(&self, _: &Method, _: &::http::Uri) -> Boxed<Result<HeaderMap, AuthError>> {
        Box::pin(std::future::ready(Ok(HeaderMap::new())))
    }

    fn handle_refusal(&self, _: Refusal) -> Boxed<Result<bool, AuthError>> {
        let error = AuthError::SignIn("a user must sign in".to_owned());
        Box::pin(std::future::ready(Err(error)))
    }

    fn inspect_response(&self, _: &HeaderMap) {}

    fn can_invite(&self) -> bool {
        true
    }

    fn invite(&self, _: &EventSender) -> Boxed<Result<bool, AuthError>> {
        Box::pin(std::future::ready(Ok(true)))
    }
}

/// HTTPLC-09, S004-D01, TRAP-39: a 404 means that the session is unknown and the call did not run,
/// whatever the body is. So a new session is opened, and the call is sent again.
#[tokio::test]
async fn a_forgotten_session_is_opened_anew_and_the_call_made_again() {
    let bodies = [
        "",
        "Session not found",
        r#"{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}"#,
    ];
    for body in bodies {
        let server = with_sessions(move |request| {
            let forgotten = request.header("mcp-session-id") == Some("session-1");
            (request.mcp() == "tools/call" && forgotten).then(|| Reply::status(404).with_json(body))
        })
        .await;
        let upstream = connected(http(&server)).await;
        call_tool(&upstream, "a").await;
        let calls = server.all();
        let calls: Vec<_> = calls
            .iter()
            .filter(|request| request.mcp() == "tools/call")
            .map(|request| request.header("mcp-session-id").unwrap())
            .collect();
        assert_eq!(calls, ["session-1", "session-2"], "{body}");
        assert_eq!(count(&server, "initialize"), 2, "{body}");
        assert_eq!(status(&upstream).state, ServerState::Connected);
    }
}

/// TRAP-39: the call is repeated only once.
#[tokio::test]
async fn a_server_that_forgets_every_session_fails_the_call() {
    let server =
        with_sessions(|request| (request.mcp() == "tools/call").then(|| Reply::status(404))).await;
    let upstream = connected(http(&server)).await;
    let failure = call_fails(&upstream, "a").await;
    assert!(failure.contains("loses each new session"), "{failure}");
    assert_eq!(count(&server, "tools/call"), 2);
    assert_eq!(count(&server, "initialize"), 2);
}

/// Concurrent calls that lose their session share one new session.
#[tokio::test]
async fn calls_that_lose_their_session_together_share_the_next_one() {
    let server = with_sessions(move |request| {
        let forgotten = request.header("mcp-session-id") == Some("session-1");
        (request.mcp() == "tools/call" && forgotten).then(|| Reply::status(404))
    })
    .await;
    let upstream = connected(http(&server)).await;
    let calls = (0..20).map(|_| call_tool(&upstream, "a"));
    within("all results", futures_util::future::join_all(calls)).await;
    assert_eq!(count(&server, "initialize"), 2);
    assert_eq!(count(&server, "tools/call"), 40);
}

/// Callers that are not anonymous have sessions of their own. A call that finds such a session lost
/// does not end the others in it: they are answered, or are sent again in the next session.
#[tokio::test]
async fn a_call_that_loses_its_session_does_not_end_the_others_in_it() {
    let (answers, mut called) = tokio::sync::mpsc::channel(1);
    let lost = Arc::new(std::sync::Mutex::new(None));
    let losing = Arc::clone(&lost);
    let server = with_sessions(move |request| {
        if request.mcp() != "tools/call" {
            return None;
        }
        if request.body["params"]["name"] == "slow" {
            let (reply, stream) = Reply::stream();
            answers.try_send((stream, request.clone())).unwrap();
            return Some(reply);
        }
        let session = request.header("mcp-session-id").map(str::to_owned);
        (*losing.lock().unwrap() == session).then(|| Reply::status(404))
    })
    .await;
    let upstream = connected(for_clients(http(&server))).await;
    let caller = Caller {
        principal: Some("one".to_owned()),
        ..Caller::default()
    };
    let (mut slow, _slow_events) = caller.call(&upstream, "tools/call", &json!({"name": "slow"}));
    let (answer, request) = during(&mut slow, called.recv()).await.unwrap();
    *lost.lock().unwrap() = request.header("mcp-session-id").map(str::to_owned);
    let quick = (0..20).map(|_| {
        caller
            .call(&upstream, "tools/call", &json!({"name": "a"}))
            .0
    });
    let quick = futures_util::future::join_all(quick);
    for outcome in during(&mut slow, within("the quick results", quick)).await {
        outcome.unwrap();
    }
    answer.say(&request.result(&json!({"content": []}))).await;
    within("the slow result", slow).await.unwrap();
}

/// S004-D09: credentials that expire during a session.
#[tokio::test]
async fn a_call_that_needs_auth_says_so() {
    let server =
        with_sessions(|request| (request.mcp() == "tools/call").then(|| Reply::status(401))).await;
    let upstream = connected(http(&server)).await;
    let failure = call_fails(&upstream, "a").await;
    assert!(failure.contains("authorization"), "{failure}");
    let status = status_becomes(&upstream, ServerState::NeedsAuth).await;
    assert!(status.reason.is_some());
}

/// S004-41, HTTPLC-03, S004-45, S004-K038, S004-K039, S004-K042: responses as JSON and as streams,
/// and HTTP errors.
#[tokio::test]
async fn answers_come_as_json_and_as_streams() {
    let server = with_sessions(|request| {
        let name = request.body["params"]["name"].as_str()?;
        let answer = request.result(&json!({"content": [], "name": name}));
        match name {
            "stream" => Some(Reply::events(&[answer])),
            "late" => {
                let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}});
                Some(Reply::events(&[log.clone(), log, answer]))
            }
            "split" => {
                let (reply, stream) = Reply::stream();
                let event = format!(": hm\r\nevent: message\r\ndata: {answer}\r\n\r\n");
                for piece in event.as_bytes().chunks(7) {
                    stream.write_now(std::str::from_utf8(piece).unwrap());
                }
                Some(reply)
            }
            "refused" => Some(Reply::status(500).with_body("text/plain", "out of order")),
            "page" => Some(Reply::status(200).with_body("text/html", "<p>Welcome</p>")),
            "accepted" => Some(Reply::status(202)),
            _ => None,
        }
    })
    .await;
    let upstream = connected(http(&server)).await;
    for name in ["stream", "late", "split"] {
        assert_eq!(call_tool(&upstream, name).await["name"], name);
    }
    let failure = call_fails(&upstream, "refused").await;
    assert!(
        failure.contains("500") && failure.contains("out of order"),
        "{failure}"
    );
    call_fails(&upstream, "page").await;
    call_fails(&upstream, "accepted").await;
    call_tool(&upstream, "a").await;
    assert_eq!(status(&upstream).state, ServerState::Connected);
}

/// C09: a response beyond the limit fails its own call.
#[tokio::test]
async fn an_answer_beyond_the_limit_fails_its_call() {
    let server = with_sessions(|request| {
        let name = request.body["params"]["name"].as_str()?;
        let large = request.result(&json!({"content": [], "x": "y".repeat(100_000)}));
        match name {
            "json" => Some(Reply::json(&large)),
            "stream" => Some(Reply::events(&[large])),
            _ => None,
        }
    })
    .await;
    let mut definition = http(&server);
    definition.limits.max_bytes = 50_000;
    let upstream = connected(definition).await;
    for name in ["json", "stream"] {
        call_fails(&upstream, name).await;
        call_tool(&upstream, "a").await;
    }
}

#[tokio::test]
async fn long_calls_do_not_hold_up_short_ones() {
    let server =
        with_sessions(|request| (request.body["params"]["name"] == "long").then(Reply::never))
            .await;
    let upstream = connected(http(&server)).await;
    let mut long: Vec<_> = (0..50)
        .map(|_| call(&upstream, "tools/call", &json!({"name": "long"})))
        .collect();
    for long in &mut long {
        during(long, server.received("tools/call")).await;
    }
    let short = call(&upstream, "tools/call", &json!({"name": "a"}));
    let result = within("the short one", short).await.unwrap();
    assert_eq!(value(&result)["content"], json!([]));
}
