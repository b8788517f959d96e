//! Which callers share a session of a handshake-era server.

use std::sync::Arc;
use std::time::Duration;

use plexus_mcp_client::Affinity;
use plexus_mcp_core::{Event, Presence, Question};
use plexus_mcp_protocol::messages::LogLevel;
use plexus_testkit::server::{HttpServer, Offer, Received, Reply, Script, StdioServer, Step, tool};
use plexus_testkit::within;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{
    Caller, LEGACY, SHORT, asked, call_fails, call_tool, connected, during, for_clients, http, raw,
    stdio, value,
};

/// A server that opens a session for each `initialize`, and answers calls with the session's id.
async fn counting() -> HttpServer {
    let offer = Offer::tools(LEGACY, [tool("a")]);
    let opened = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    HttpServer::start(move |request| match request.mcp() {
        "initialize" => {
            let number = opened.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let session = format!("session {number}");
            request
                .reply_from(&offer)
                .with_header("mcp-session-id", &session)
        }
        "tools/call" => {
            let session = request.header("mcp-session-id").unwrap_or_default();
            let content = json!([{"type": "text", "text": session}]);
            Reply::json(&request.result(&json!({"content": content})))
        }
        _ => request.reply_from(&offer),
    })
    .await
}

async fn session_of(upstream: &plexus_mcp_client::Upstream, caller: &Caller) -> String {
    let (calling, _events) = caller.call(upstream, "tools/call", &json!({"name": "a"}));
    let result = value(&within("the result", calling).await.unwrap());
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

fn greetings(server: &HttpServer) -> Vec<Value> {
    let greetings = server.all().into_iter().filter(|r| r.mcp() == "initialize");
    greetings
        .map(|greeting: Received| greeting.body["params"]["capabilities"].clone())
        .collect()
}

/// TRANSLATION §4, LIFE-09: a server gets exactly the capabilities of its caller.
#[tokio::test]
async fn callers_that_can_do_different_things_get_sessions_of_their_own() {
    let server = counting().await;
    let upstream = connected(for_clients(http(&server))).await;
    let plain = session_of(&upstream, &Caller::default()).await;
    let human = Caller::able(json!({"elicitation": {}}));
    let asking = session_of(&upstream, &human).await;
    assert_ne!(plain, asking);
    assert_eq!(session_of(&upstream, &human).await, asking);
    let same = Caller::able(json!({"elicitation": {"form": {}}, "experimental": {"x": {}}}));
    assert_eq!(session_of(&upstream, &same).await, asking);
    let [own, of_plain, of_human] = &greetings(&server)[..] else {
        panic!("three sessions were expected");
    };
    // Lists are fetched with all capabilities, because some servers hide tools from clients without
    // them.
    assert!(own["sampling"].is_object() && own["elicitation"]["url"].is_object());
    assert_eq!(*of_plain, json!({}));
    assert_eq!(*of_human, json!({"elicitation": {"form": {}}}));
}

#[tokio::test]
async fn principals_do_not_share_a_session() {
    let server = counting().await;
    let upstream = connected(for_clients(http(&server))).await;
    let named = |principal: &str| Caller {
        principal: Some(principal.to_owned()),
        ..Caller::default()
    };
    let one = session_of(&upstream, &named("one")).await;
    let other = session_of(&upstream, &named("other")).await;
    let anonymous = session_of(&upstream, &Caller::default()).await;
    assert!(one != other && one != anonymous && other != anonymous);
    assert_eq!(session_of(&upstream, &named("one")).await, one);
}

#[tokio::test]
async fn callers_share_one_session_with_shared_affinity() {
    let server = counting().await;
    let mut definition = for_clients(http(&server));
    definition.affinity = Affinity::Shared;
    let upstream = connected(definition).await;
    let plain = session_of(&upstream, &Caller::default()).await;
    let human = Caller::able(json!({"elicitation": {}}));
    assert_eq!(session_of(&upstream, &human).await, plain);
    let declared = greetings(&server);
    assert_eq!(declared.len(), 1);
    assert!(declared[0]["elicitation"].is_object() && declared[0]["roots"].is_object());
}

/// S001-57, TRANSLATION §5.12: a lost session is opened again once, only for the callers that used
/// it.
#[tokio::test]
async fn a_forgotten_session_of_some_callers_is_opened_again() {
    let offer = Offer::tools(LEGACY, [tool("a")]);
    let server = HttpServer::start(move |request| match request.mcp() {
        "initialize" => {
            let can_elicit = request.body["params"]["capabilities"]["elicitation"].is_object();
            let session = if can_elicit { "askable" } else { "own" };
            request
                .reply_from(&offer)
                .with_header("mcp-session-id", session)
        }
        "tools/call" if request.header("mcp-session-id") == Some("askable") => Reply::status(404),
        "tools/call" => Reply::json(&request.result(&json!({"content": []}))),
        _ => request.reply_from(&offer),
    })
    .await;
    let upstream = connected(for_clients(http(&server))).await;
    let human = Caller::able(json!({"elicitation": {}}));
    let (calling, _events) = human.call(&upstream, "tools/call", &json!({"name": "a"}));
    within("the failure", calling).await.unwrap_err();
    let methods = server.methods();
    let calls = methods.iter().filter(|method| *method == "tools/call");
    assert_eq!(calls.count(), 2);
    assert_eq!(greetings(&server).len(), 3);
    assert_eq!(call_tool(&upstream, "a").await["content"], json!([]));
}

/// A server that opens its first session only, and is silent to every other `initialize`.
async fn silent_after_the_first_session() -> HttpServer {
    let offer = Offer::tools(LEGACY, [tool("a")]);
    let opened = std::sync::atomic::AtomicUsize::new(0);
    HttpServer::start(move |request| match request.mcp() {
        "initialize" if opened.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 0 => {
            Reply::never()
        }
        _ => request.reply_from(&offer),
    })
    .await
}

/// A call does not wait longer than its timeout for a session.
#[tokio::test]
async fn opening_a_session_counts_against_the_timeout_of_the_call() {
    let server = silent_after_the_first_session().await;
    let mut definition = for_clients(http(&server));
    definition.timeouts.call = SHORT;
    definition.timeouts.connect = Duration::from_mins(1);
    let upstream = connected(definition).await;
    let failure = call_fails(&upstream, "a").await;
    assert!(failure.contains("not answered in time"), "{failure}");
}

/// Calls that wait for the attempt of another call to open their session get its outcome, instead
/// of making further attempts one after the other.
#[tokio::test]
async fn calls_share_a_failed_attempt_to_open_their_session() {
    let server = silent_after_the_first_session().await;
    let mut definition = for_clients(http(&server));
    definition.timeouts.connect = SHORT;
    let upstream = connected(definition).await;
    let calls = (0..5).map(|_| call_fails(&upstream, "a"));
    for failure in futures_util::future::join_all(calls).await {
        assert!(failure.contains("did not answer initialize"), "{failure}");
    }
    assert_eq!(
        greetings(&server).len(),
        2,
        "its own session, and one attempt"
    );
}

/// TRANSLATION §5.4.5, META26-05: if a call fails because its caller lacks a capability, the error
/// names the capability.
#[tokio::test]
async fn a_call_that_fails_because_its_caller_cannot_be_asked_says_so() {
    let server = StdioServer::new(&Offer::tools(LEGACY, [tool("a")])).await;
    let upstream = connected(for_clients(stdio(&server))).await;
    let process = server.process().await;
    let caller = Caller::able(json!({"roots": {}}));
    let (mut calling, _events) = caller.call(&upstream, "tools/call", &json!({"name": "a"}));
    let call = during(&mut calling, process.received("tools/call")).await;
    let form = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
    let question =
        json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": form});
    process.say(question).await;
    let answer = during(&mut calling, process.answer(&json!(1))).await;
    assert_eq!(answer["error"]["code"], -32601);
    let failed = json!({"content": [{"type": "text", "text": "cannot ask"}], "isError": true});
    process.reply(&call, failed).await;
    let fault = within("the failure", calling).await.unwrap_err();
    assert_eq!(
        fault.to_string(),
        "this request needs the client capability elicitation"
    );
}

/// TRANSLATION §5.7: `logging/setLevel` is sent only when a call wants more detailed messages than
/// all calls before.
#[tokio::test]
async fn set_level_is_sent_only_for_a_more_detailed_log_level() {
    let offer = Offer::tools(LEGACY, [tool("a")]).declaring("logging", json!({}));
    let script = Script::from(&offer)
        .on("logging/setLevel", [Step::Result(json!({}))])
        .on("tools/call", [Step::Result(json!({"content": []}))]);
    let server = StdioServer::new(script).await;
    let upstream = connected(stdio(&server)).await;
    for level in [LogLevel::Warning, LogLevel::Debug, LogLevel::Error] {
        let caller = Caller {
            log_level: Some(level),
            ..Caller::default()
        };
        let (calling, _events) = caller.call(&upstream, "tools/call", &json!({"name": "a"}));
        within("the result", calling).await.unwrap();
    }
    call_tool(&upstream, "a").await;
    let all = server.process().await.all().await;
    let told = all
        .iter()
        .filter(|message| message["method"] == "logging/setLevel");
    let levels: Vec<_> = told
        .map(|message| message["params"]["level"].clone())
        .collect();
    assert_eq!(levels, ["warning", "debug"]);
}

/// TRANSLATION §5.10, `prime`: roots that a server requests outside of a call are those of the
/// session's callers.
#[tokio::test]
async fn roots_can_be_asked_for_before_the_first_call() {
    let server = StdioServer::new(&Offer::tools(LEGACY, [tool("a")])).await;
    let mut definition = for_clients(stdio(&server));
    definition.prime_roots = true;
    let upstream = connected(definition).await;
    let process = server.process().await;
    let caller = Caller::able(json!({"roots": {}}));
    let (mut calling, mut events) = caller.call(&upstream, "tools/call", &json!({"name": "a"}));
    let ask = asked(&mut calling, &mut events).await;
    assert!(matches!(ask.question, Question::Roots));
    let roots = json!({"roots": [{"uri": "file:///r"}]});
    ask.answer(Ok(raw(&roots)));
    let changed = process.received("notifications/roots/list_changed");
    during(&mut calling, changed).await;
    let call = during(&mut calling, process.received("tools/call")).await;
    process
        .say(json!({"jsonrpc": "2.0", "id": "in", "method": "roots/list"}))
        .await;
    let answer = during(&mut calling, process.answer(&json!("in"))).await;
    assert_eq!(answer["result"], roots);
    process.reply(&call, json!({"content": []})).await;
    within("the result", calling).await.unwrap();
    process
        .say(json!({"jsonrpc": "2.0", "id": "out", "method": "roots/list"}))
        .await;
    assert_eq!(process.answer(&json!("out")).await["result"], roots);
}

/// A call does not wait until the client of another call has said its roots, and the roots of one
/// principal never answer a question of another one's call.
#[tokio::test]
async fn roots_that_were_asked_for_before_a_call_are_those_of_its_principal() {
    let server = StdioServer::new(&Offer::tools(LEGACY, [tool("a")])).await;
    let mut definition = for_clients(stdio(&server));
    definition.prime_roots = true;
    let upstream = connected(definition).await;
    let process = server.process().await;
    let named = |name: &str| Caller {
        principal: Some(name.to_owned()),
        ..Caller::able(json!({"roots": {}}))
    };
    let params = json!({"name": "a"});
    // Like a parked call, the first one is not polled while its client is asked.
    let (mut first, mut first_events) = named("one").call(&upstream, "tools/call", &params);
    let first_ask = asked(&mut first, &mut first_events).await;
    let (mut second, mut second_events) = named("other").call(&upstream, "tools/call", &params);
    let second_ask = asked(&mut second, &mut second_events).await;
    for (calling, ask, uri) in [
        (&mut second, second_ask, "file:///other"),
        (&mut first, first_ask, "file:///one"),
    ] {
        let roots = json!({"roots": [{"uri": uri}]});
        ask.answer(Ok(raw(&roots)));
        let call = during(calling, process.received("tools/call")).await;
        let id = json!(uri);
        process
            .say(json!({"jsonrpc": "2.0", "id": id, "method": "roots/list"}))
            .await;
        let answer = during(calling, process.answer(&id)).await;
        assert_eq!(answer["result"], roots);
        process.reply(&call, json!({"content": []})).await;
        within("the result", calling).await.unwrap();
    }
    process
        .say(json!({"jsonrpc": "2.0", "id": "out", "method": "roots/list"}))
        .await;
    let answer = process.answer(&json!("out")).await;
    assert_eq!(answer["result"], json!({"roots": []}), "of neither");
}

/// TRANSLATION §4, TRAP-17: while a question is open, calls of other callers are answered. They are
/// never asked a question of another caller's call.
#[tokio::test]
async fn an_open_question_holds_up_no_other_caller_and_reaches_none() {
    let server = StdioServer::new(&Offer::tools(LEGACY, [tool("a")])).await;
    let upstream = connected(for_clients(stdio(&server))).await;
    let process = server.process().await;
    let params = json!({"name": "a"});
    let (mut first, mut first_events) = principal("one").call(&upstream, "tools/call", &params);
    let first_call = during(&mut first, process.received("tools/call")).await;
    process.say(question("first")).await;
    let open = asked(&mut first, &mut first_events).await;

    let began = Instant::now();
    let (mut second, mut second_events) = principal("other").call(&upstream, "tools/call", &params);
    let second_call = during(&mut second, process.received("tools/call")).await;
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    // The question may belong to either call, so it is refused, and no caller is asked.
    process.say(question("again")).await;
    let refusal = during(&mut second, process.answer(&json!("again"))).await;
    assert_eq!(refusal["error"]["code"], -32602, "{refusal}");
    process.reply(&second_call, json!({"content": []})).await;
    within("the second result", second).await.unwrap();
    let told = second_events.recv().await;
    assert!(
        !matches!(told, Some(Event::Ask(_))),
        "the other caller was asked"
    );

    // With only one call in flight, its questions are put to its caller again.
    process.say(question("third")).await;
    let third = asked(&mut first, &mut first_events).await;
    for (id, ask) in [("first", open), ("third", third)] {
        ask.answer(Ok(raw(&json!({"action": "accept", "content": {}}))));
        let answer = during(&mut first, process.answer(&json!(id))).await;
        assert_eq!(answer["result"]["action"], "accept");
    }
    process.reply(&first_call, json!({"content": []})).await;
    within("the first result", first).await.unwrap();
}

/// A question outside of a call does not serialise calls of different callers; nor does a roots
/// request during a call.
#[tokio::test]
async fn a_server_that_asks_for_roots_is_called_by_all_at_once() {
    let server = StdioServer::new(&Offer::tools(LEGACY, [tool("a")])).await;
    let upstream = connected(for_clients(stdio(&server))).await;
    let process = server.process().await;
    let roots = |id: &str| json!({"jsonrpc": "2.0", "id": id, "method": "roots/list"});
    let ask = json!({"jsonrpc": "2.0", "id": "stray", "method": "elicitation/create",
        "params": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}});
    process.say(roots("start")).await;
    process.say(ask).await;
    assert_eq!(
        process.answer(&json!("start")).await["result"],
        json!({"roots": []})
    );
    assert_eq!(
        process.answer(&json!("stray")).await["error"]["code"],
        -32602
    );
    let caller = Caller::able(json!({"elicitation": {}, "roots": {}}));
    let params = json!({"name": "a"});
    let began = Instant::now();
    let mut calls = Vec::new();
    for number in 0..4 {
        let (mut calling, events) = caller.call(&upstream, "tools/call", &params);
        let call = during(&mut calling, process.received("tools/call")).await;
        if number == 1 {
            // The caller cannot be determined, so the list of roots is empty.
            process.say(roots("during")).await;
            let answer = during(&mut calling, process.answer(&json!("during"))).await;
            assert_eq!(answer["result"], json!({"roots": []}));
        }
        calls.push((calling, events, call));
    }
    assert!(
        began.elapsed() < Duration::from_millis(400),
        "{:?}",
        began.elapsed()
    );
    for (calling, _events, call) in calls {
        process.reply(&call, json!({"content": []})).await;
        within("the result", calling).await.unwrap();
    }
}

/// Two calls of one client are in flight when the server asks. The newer call is asked first. If it
/// ends or is dropped without an answer, the older call is asked.
#[tokio::test]
async fn a_question_outlives_the_call_that_it_was_put_to() {
    for given_up in [false, true] {
        let server = StdioServer::new(&Offer::tools(LEGACY, [tool("a")])).await;
        let upstream = connected(for_clients(stdio(&server))).await;
        let process = server.process().await;
        let client = Caller {
            presence: Some(Presence::new()),
            ..Caller::able(json!({"elicitation": {}}))
        };
        let params = json!({"name": "a"});
        let (mut older, mut older_events) = client.call(&upstream, "tools/call", &params);
        let older_call = during(&mut older, process.received("tools/call")).await;
        let (mut newer, mut newer_events) = client.call(&upstream, "tools/call", &params);
        let newer_call = during(&mut newer, process.received("tools/call")).await;
        let form = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
        let question =
            json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": form});
        process.say(question).await;
        let withdrawn = asked(&mut newer, &mut newer_events).await;
        if given_up {
            drop(newer);
        } else {
            process.reply(&newer_call, json!({"content": []})).await;
            within("the newer result", newer).await.unwrap();
        }
        assert!(!withdrawn.is_wanted());
        let again = asked(&mut older, &mut older_events).await;
        again.answer(Ok(raw(&json!({"action": "accept", "content": {}}))));
        let answer = during(&mut older, process.answer(&json!("q"))).await;
        assert_eq!(answer["result"]["action"], "accept");
        process.reply(&older_call, json!({"content": []})).await;
        within("the older result", older).await.unwrap();
    }
}

/// The call of a principal ends or is cancelled while its question is open and a call of another
/// principal is running. The question is refused at the server, and the other caller is not asked.
#[tokio::test]
async fn a_question_of_an_ended_call_is_not_put_to_another_principal() {
    for given_up in [false, true] {
        let server = StdioServer::new(&Offer::tools(LEGACY, [tool("a")])).await;
        let upstream = connected(for_clients(stdio(&server))).await;
        let process = server.process().await;
        let params = json!({"name": "a"});
        let (mut first, mut first_events) = principal("one").call(&upstream, "tools/call", &params);
        let first_call = during(&mut first, process.received("tools/call")).await;
        process.say(question("q")).await;
        let withdrawn = asked(&mut first, &mut first_events).await;
        let (mut other, mut other_events) =
            principal("other").call(&upstream, "tools/call", &params);
        let other_call = during(&mut other, process.received("tools/call")).await;
        if given_up {
            drop(first);
        } else {
            process.reply(&first_call, json!({"content": []})).await;
            within("the first result", first).await.unwrap();
        }
        let refusal = during(&mut other, process.answer(&json!("q"))).await;
        assert_eq!(refusal["error"]["code"], -32602, "{refusal}");
        assert!(!withdrawn.is_wanted());
        process.reply(&other_call, json!({"content": []})).await;
        within("the other result", other).await.unwrap();
        let event = other_events.recv().await;
        assert!(!matches!(event, Some(Event::Ask(_))), "{event:?}");
    }
}

/// A tool that goes on after its call was cancelled asks a question. Only when the server has
/// answered the cancelled call can the question be of the other principal's call.
#[tokio::test]
async fn a_question_of_a_cancelled_call_is_not_put_to_another_principal() {
    let server = StdioServer::new(&Offer::tools(LEGACY, [tool("a")])).await;
    let upstream = connected(for_clients(stdio(&server))).await;
    let process = server.process().await;
    let params = json!({"name": "a"});
    let (mut first, _first_events) = principal("one").call(&upstream, "tools/call", &params);
    let first_call = during(&mut first, process.received("tools/call")).await;
    drop(first);
    let (mut other, mut other_events) = principal("other").call(&upstream, "tools/call", &params);
    let other_call = during(&mut other, process.received("tools/call")).await;
    process.say(question("late")).await;
    let refusal = during(&mut other, process.answer(&json!("late"))).await;
    assert_eq!(refusal["error"]["code"], -32602, "{refusal}");

    process.reply(&first_call, json!({"content": []})).await;
    process.say(question("own")).await;
    let ask = asked(&mut other, &mut other_events).await;
    ask.answer(Ok(raw(&json!({"action": "accept", "content": {}}))));
    let answer = during(&mut other, process.answer(&json!("own"))).await;
    assert_eq!(answer["result"]["action"], "accept");
    process.reply(&other_call, json!({"content": []})).await;
    within("the other result", other).await.unwrap();
}

fn principal(name: &str) -> Caller {
    Caller {
        principal: Some(name.to_owned()),
        ..Caller::able(json!({"elicitation": {}}))
    }
}

fn question(id: &str) -> Value {
    let form = json!({"message": id, "requestedSchema": {"type": "object", "properties": {}}});
    json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": form})
}
