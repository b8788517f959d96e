//! Responses are matched to requests by their ids.

use futures_util::future::join_all;
use plexus_testkit::server::{Offer, Script, StdioServer, Step, tool};
use plexus_testkit::within;
use serde_json::{Value, json};

use crate::support::{LEGACY, STATELESS, call, call_tool, connected, during, stdio, value};

fn script() -> Script {
    Script::from(&Offer::tools(LEGACY, [tool("a")]))
}

fn numbered(number: usize) -> Value {
    json!({"name": "a", "arguments": {"number": number}})
}

/// Acceptance 5, S004-10, S004-30, S004-37, S004-39, S004-K030: a thousand concurrent calls,
/// answered in reverse order.
#[tokio::test]
async fn a_thousand_calls_at_once_get_each_its_own_answer() {
    const CALLS: usize = 1000;
    let server = StdioServer::new(script()).await;
    let upstream = connected(stdio(&server)).await;
    let process = server.process().await;
    let calls = (0..CALLS).map(|number| {
        let upstream = &upstream;
        async move {
            let outcome = call(upstream, "tools/call", &numbered(number)).await;
            let result = value(&outcome.unwrap());
            assert_eq!(result["number"], number);
        }
    });
    let answering = async {
        let mut requests = Vec::new();
        for _ in 0..CALLS {
            requests.push(process.received("tools/call").await);
        }
        for request in requests.iter().rev() {
            let number = &request["params"]["arguments"]["number"];
            process.reply(request, json!({"number": number})).await;
        }
    };
    within("all answers", async {
        tokio::join!(join_all(calls), answering)
    })
    .await;
    let violations = upstream.report().unwrap().violations;
    assert_eq!(violations.unknown_answers, 0);
}

/// A batch of writes is flushed when no more requests are queued, whatever their number.
#[tokio::test]
async fn a_few_calls_at_once_all_arrive_before_any_is_answered() {
    let server = StdioServer::new(script()).await;
    let upstream = connected(stdio(&server)).await;
    let process = server.process().await;
    for calls in 1..=20 {
        let calling = (0..calls).map(|number| call(&upstream, "tools/call", &numbered(number)));
        let answering = async {
            let mut requests = Vec::new();
            for number in 0..calls {
                let request = process.received("tools/call").await;
                assert_eq!(request["params"]["arguments"]["number"], number);
                requests.push(request);
            }
            for request in requests {
                process.reply(&request, json!({})).await;
            }
        };
        let (outcomes, ()) = within("all answers", async {
            tokio::join!(join_all(calling), answering)
        })
        .await;
        assert!(outcomes.iter().all(Result::is_ok));
    }
}

/// No deadlock with large messages in both directions, in both eras, while the server answers each
/// request as it reads it.
#[tokio::test]
async fn large_calls_at_once_do_not_block_each_other() {
    for revision in [LEGACY, STATELESS] {
        let script = Script::from(&Offer::tools(revision, [tool("a")]));
        let server = StdioServer::new(script.on("tools/call", [Step::Echo])).await;
        let upstream = connected(stdio(&server)).await;
        let _process = server.process().await;
        let padding = "x".repeat(64 * 1024);
        let calls = (0..300).map(|number| {
            let params = json!({"name": "a", "arguments": {"number": number, "p": padding}});
            let call = call(&upstream, "tools/call", &params);
            async move {
                let result = value(&call.await.unwrap());
                assert_eq!(result["echo"]["arguments"]["number"], number);
            }
        });
        within("all answers", join_all(calls)).await;
    }
}

/// Duplicate responses, and responses with an unknown id, are dropped and counted. C33: the number
/// 1 and the string "1" are different ids.
#[tokio::test]
async fn responses_with_unknown_ids_are_counted() {
    let server = StdioServer::new(script()).await;
    let upstream = connected(stdio(&server)).await;
    let process = server.process().await;
    let mut calling = call(&upstream, "tools/call", &numbered(1));
    let request = during(&mut calling, process.received("tools/call")).await;
    let id = request["id"].as_i64().unwrap();
    for stray in [
        json!(id.to_string()),
        json!(id + 1000),
        json!(null),
        json!(0.5),
    ] {
        let answer = json!({"jsonrpc": "2.0", "id": stray, "result": {"number": "wrong"}});
        process.say(answer).await;
    }
    process.reply(&request, json!({"number": 1})).await;
    process.reply(&request, json!({"number": 2})).await;
    let result = within("the answer", calling).await.unwrap();
    assert_eq!(value(&result)["number"], 1);

    // All earlier messages are processed before this response.
    let mut next = call(&upstream, "tools/call", &numbered(2));
    let request = during(&mut next, process.received("tools/call")).await;
    process.reply(&request, json!({})).await;
    within("the next answer", next).await.unwrap();
    let violations = upstream.report().unwrap().violations;
    let unknown = violations.unknown_answers + violations.not_a_message;
    assert_eq!(unknown, 5, "{violations:?}");
}

/// S004-33, S001-D04: a response is matched by its id, not by its order.
#[tokio::test]
async fn neither_notifications_nor_late_answers_are_taken_for_the_answer() {
    let server = StdioServer::new(script()).await;
    let upstream = connected(stdio(&server)).await;
    let process = server.process().await;
    let mut first = call(&upstream, "tools/call", &numbered(1));
    let abandoned = during(&mut first, process.received("tools/call")).await;
    drop(first);
    process.received("notifications/cancelled").await;

    let mut second = call(&upstream, "tools/call", &numbered(2));
    let request = during(&mut second, process.received("tools/call")).await;
    let log = json!({"level": "info", "data": "hello"});
    process
        .say(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": log}))
        .await;
    process.reply(&abandoned, json!({"number": 1})).await;
    process.reply(&request, json!({"number": 2})).await;
    let result = within("the answer", second).await.unwrap();
    assert_eq!(value(&result)["number"], 2);
    assert_ne!(abandoned["id"], request["id"], "BASE-03");
}

/// BASE-02, C33, TRAP-23: responses to a server's requests have the server's id, with its type.
#[tokio::test]
async fn ids_of_the_server_are_echoed_exactly() {
    let server = StdioServer::new(script()).await;
    let upstream = connected(stdio(&server)).await;
    let process = server.process().await;
    for id in [
        json!("7"),
        json!(7),
        json!(-1),
        json!(9_007_199_254_740_993_i64),
        json!("\u{e9}\u{1f600}\"\\"),
        json!(""),
    ] {
        process
            .say(json!({"jsonrpc": "2.0", "id": id, "method": "ping"}))
            .await;
        let answer = process.answer(&id).await;
        assert_eq!(answer["result"], json!({}), "{id}");
    }
    drop(upstream);
}

/// S001-53, C32: with `serialize`, only one call is in flight at a time.
#[tokio::test]
async fn calls_are_serialised_where_that_is_wanted() {
    let server = StdioServer::new(script()).await;
    let mut definition = stdio(&server);
    definition.serialize = true;
    let upstream = connected(definition).await;
    let process = server.process().await;
    let answering = async {
        for number in [1, 2, 3] {
            let request = process.received("tools/call").await;
            // After a ping and its answer, a second call would have arrived.
            let ping = json!(format!("ping {number}"));
            process
                .say(json!({"jsonrpc": "2.0", "id": ping, "method": "ping"}))
                .await;
            process.answer(&ping).await;
            let methods = process.methods().await;
            let calls = methods.iter().filter(|method| *method == "tools/call");
            assert_eq!(calls.count(), number);
            process.reply(&request, json!({})).await;
        }
    };
    let calls = join_all((1..=3).map(|number| call(&upstream, "tools/call", &numbered(number))));
    let (outcomes, ()) = within("all answers", async { tokio::join!(calls, answering) }).await;
    assert!(outcomes.iter().all(Result::is_ok));
}

/// A queued call that is dropped is never sent, and does not block later calls.
#[tokio::test]
async fn a_serialised_call_can_be_given_up_before_its_turn() {
    let server = StdioServer::new(script()).await;
    let mut definition = stdio(&server);
    definition.serialize = true;
    let upstream = connected(definition).await;
    let process = server.process().await;
    let mut first = call(&upstream, "tools/call", &numbered(1));
    let request = during(&mut first, process.received("tools/call")).await;
    let mut second = call(&upstream, "tools/call", &numbered(2));
    let ping = json!("ping");
    let pinging = async {
        process
            .say(json!({"jsonrpc": "2.0", "id": ping, "method": "ping"}))
            .await;
        process.answer(&ping).await
    };
    during(&mut second, pinging).await;
    drop(second);
    process.reply(&request, json!({})).await;
    within("the first answer", first).await.unwrap();
    let mut third = call(&upstream, "tools/call", &numbered(3));
    let request = during(&mut third, process.received("tools/call")).await;
    assert_eq!(request["params"]["arguments"]["number"], 3);
    process.reply(&request, json!({})).await;
    within("the third answer", third).await.unwrap();
}

/// Two connections to the same program do not affect each other.
#[tokio::test]
async fn each_connection_counts_for_itself() {
    let script = script().on("tools/call", [Step::Echo]);
    let (one, other) = (
        StdioServer::new(script.clone()).await,
        StdioServer::new(script).await,
    );
    let (one, other) = (connected(stdio(&one)).await, connected(stdio(&other)).await);
    let (first, second) = tokio::join!(call_tool(&one, "b"), call_tool(&other, "c"));
    assert_eq!(first["echo"]["name"], "b");
    assert_eq!(second["echo"]["name"], "c");
}
