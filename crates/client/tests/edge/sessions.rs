//! Callers that differ, and who shares a session of a server of the old era with whom.

use std::sync::Arc;

use plexus_client::{Affinity, Definition};
use plexus_mcp::messages::LogLevel;
use plexus_service::Question;
use plexus_testkit::server::{HttpServer, Offer, Received, Reply, Script, StdioServer, Step, tool};
use plexus_testkit::within;
use serde_json::{Value, json};

use crate::support::{
    Caller, LEGACY, asked, call_tool, connected, during, http, raw, stdio, value,
};

/// A server that opens a session for each greeting, and answers calls with the session's id.
async fn counting() -> HttpServer {
    let offer = Offer::tools(LEGACY, [tool("a")]);
    let opened = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    HttpServer::start(move |request| match request.mcp() {
        "initialize" => {
            let number = opened.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let session = format!("session {number}");
            request
                .plainly(&offer)
                .with_header("mcp-session-id", &session)
        }
        "tools/call" => {
            let session = request.header("mcp-session-id").unwrap_or_default();
            let content = json!([{"type": "text", "text": session}]);
            Reply::json(&request.result(&json!({"content": content})))
        }
        _ => request.plainly(&offer),
    })
    .await
}

fn for_clients(server: &HttpServer) -> Definition {
    http(server).for_clients()
}

async fn session_of(upstream: &plexus_client::Upstream, caller: &Caller) -> String {
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

/// TRANSLATION §4, LIFE-09: a server is told exactly what its caller can do.
#[tokio::test]
async fn callers_that_can_do_different_things_get_sessions_of_their_own() {
    let server = counting().await;
    let upstream = connected(for_clients(&server)).await;
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
    // Lists are those of a client that can do everything: some servers show nothing else.
    assert!(own["sampling"].is_object() && own["elicitation"]["url"].is_object());
    assert_eq!(*of_plain, json!({}));
    assert_eq!(*of_human, json!({"elicitation": {"form": {}}}));
}

#[tokio::test]
async fn principals_do_not_share_a_session() {
    let server = counting().await;
    let upstream = connected(for_clients(&server)).await;
    let named = |principal: &str| Caller {
        principal: Some(principal.to_owned()),
        ..Caller::default()
    };
    let one = session_of(&upstream, &named("one")).await;
    let other = session_of(&upstream, &named("other")).await;
    let nobody = session_of(&upstream, &Caller::default()).await;
    assert!(one != other && one != nobody && other != nobody);
    assert_eq!(session_of(&upstream, &named("one")).await, one);
}

#[tokio::test]
async fn all_share_one_session_if_they_are_told_to() {
    let server = counting().await;
    let mut definition = for_clients(&server);
    definition.affinity = Affinity::Shared;
    let upstream = connected(definition).await;
    let plain = session_of(&upstream, &Caller::default()).await;
    let human = Caller::able(json!({"elicitation": {}}));
    assert_eq!(session_of(&upstream, &human).await, plain);
    let declared = greetings(&server);
    assert_eq!(declared.len(), 1);
    assert!(declared[0]["elicitation"].is_object() && declared[0]["roots"].is_object());
}

/// S001-57, TRANSLATION §5.12: a session that is forgotten is opened again, once, for its callers alone.
#[tokio::test]
async fn a_forgotten_session_of_some_callers_is_opened_again() {
    let offer = Offer::tools(LEGACY, [tool("a")]);
    let server = HttpServer::start(move |request| match request.mcp() {
        "initialize" => {
            let can_elicit = request.body["params"]["capabilities"]["elicitation"].is_object();
            let session = if can_elicit { "askable" } else { "own" };
            request
                .plainly(&offer)
                .with_header("mcp-session-id", session)
        }
        "tools/call" if request.header("mcp-session-id") == Some("askable") => Reply::status(404),
        "tools/call" => Reply::json(&request.result(&json!({"content": []}))),
        _ => request.plainly(&offer),
    })
    .await;
    let upstream = connected(for_clients(&server)).await;
    let human = Caller::able(json!({"elicitation": {}}));
    let (calling, _events) = human.call(&upstream, "tools/call", &json!({"name": "a"}));
    within("the failure", calling).await.unwrap_err();
    let methods = server.methods();
    let calls = methods.iter().filter(|method| *method == "tools/call");
    assert_eq!(calls.count(), 2);
    assert_eq!(greetings(&server).len(), 3);
    assert_eq!(call_tool(&upstream, "a").await["content"], json!([]));
}

/// TRANSLATION §5.4.5, META26-05: a call that fails for want of what its caller cannot do says so.
#[tokio::test]
async fn a_call_that_fails_because_its_caller_cannot_be_asked_says_so() {
    let server = StdioServer::new(&Offer::tools(LEGACY, [tool("a")])).await;
    let upstream = connected(stdio(&server).for_clients()).await;
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

/// TRANSLATION §5.7: the session is told to log what the call wants to hear, and never less.
#[tokio::test]
async fn a_server_is_told_from_which_level_on_to_log() {
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

/// TRANSLATION §5.10, `prime`: a server that wants roots outside of any call gets its caller's.
#[tokio::test]
async fn roots_can_be_asked_for_before_the_first_call() {
    let server = StdioServer::new(&Offer::tools(LEGACY, [tool("a")])).await;
    let mut definition = stdio(&server).for_clients();
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

/// TRANSLATION §4, TRAP-17, the lane rule: who waits for an answer holds nobody up, and no question
/// goes astray.
#[tokio::test]
async fn a_call_that_waits_for_its_caller_holds_up_no_other() {
    let server = StdioServer::new(&Offer::tools(LEGACY, [tool("a")])).await;
    let upstream = connected(stdio(&server).for_clients()).await;
    let process = server.process().await;
    let human = Caller::able(json!({"elicitation": {}}));
    let form = |text: &str| json!({"message": text, "requestedSchema": {"type": "object", "properties": {}}});
    let question = |id: &str, text: &str| json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": form(text)});
    let accepted = json!({"action": "accept", "content": {}});

    let (mut first, mut first_events) = human.call(&upstream, "tools/call", &json!({"name": "a"}));
    let first_call = during(&mut first, process.received("tools/call")).await;
    process.say(question("1", "first?")).await;
    let first_ask = asked(&mut first, &mut first_events).await;

    let (mut second, mut second_events) =
        human.call(&upstream, "tools/call", &json!({"name": "a"}));
    let second_call = during(&mut second, process.received("tools/call")).await;
    process.say(question("2", "second?")).await;
    let second_ask = asked(&mut second, &mut second_events).await;
    let Question::Elicit(put) = &second_ask.question else {
        panic!("an elicitation");
    };
    assert_eq!(value(put)["message"], "second?");

    first_ask.answer(Ok(raw(&accepted)));
    during(&mut first, process.answer(&json!("1"))).await;
    process.reply(&first_call, json!({"content": []})).await;
    within("the first result", first).await.unwrap();
    second_ask.answer(Ok(raw(&accepted)));
    during(&mut second, process.answer(&json!("2"))).await;
    process.reply(&second_call, json!({"content": []})).await;
    within("the second result", second).await.unwrap();
}
