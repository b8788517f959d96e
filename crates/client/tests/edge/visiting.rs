//! URL elicitations that a 2025-11-25 server requires before a call (`-32042`).

use plexus_mcp_core::{Ask, Question};
use plexus_mcp_protocol::{Fault, Revision};
use plexus_testkit::server::{Offer, Process, StdioServer, tool};
use plexus_testkit::within;
use serde_json::{Value, json};

use crate::support::{Caller, LEGACY, asked, connected, during, for_clients, raw, stdio, value};

const URL: &str = "https://u.example/connect";

fn required() -> Value {
    let page = json!({"mode": "url", "elicitationId": "e7", "url": URL, "message": "Link account"});
    json!({"code": -32042, "message": "visit first", "data": {"elicitations": [page]}})
}

fn visitor() -> Caller {
    Caller::able(json!({"elicitation": {"form": {}, "url": {}}}))
}

fn page(ask: &Ask) -> Value {
    let Question::Elicit(params) = &ask.question else {
        panic!("the question must be an elicitation");
    };
    value(params)
}

async fn server() -> (StdioServer, plexus_mcp_client::Upstream, Process) {
    let server = StdioServer::new(&Offer::tools(LEGACY, [tool("a")])).await;
    let upstream = connected(for_clients(stdio(&server))).await;
    let process = server.process().await;
    (server, upstream, process)
}

/// TRANSLATION §5.5, ERR26-04: the user is asked to visit the URL, then the call is sent again.
#[tokio::test]
async fn a_page_is_visited_and_the_call_made_again() {
    let (_server, upstream, process) = server().await;
    let (mut calling, mut events) = visitor().call(&upstream, "tools/call", &json!({"name": "a"}));
    let call = during(&mut calling, process.received("tools/call")).await;
    process.refuse(&call, required()).await;
    let ask = asked(&mut calling, &mut events).await;
    assert_eq!(
        page(&ask),
        json!({"mode": "url", "url": URL, "message": "Link account"})
    );
    ask.answer(Ok(raw(&json!({"action": "accept"}))));
    process
        .say(
            json!({"jsonrpc": "2.0", "method": "notifications/elicitation/complete",
            "params": {"elicitationId": "e7"}}),
        )
        .await;
    let again = during(&mut calling, process.received("tools/call")).await;
    assert_ne!(again["id"], call["id"]);
    process.reply(&again, json!({"content": []})).await;
    within("the result", calling).await.unwrap();
}

#[tokio::test]
async fn a_declined_page_ends_the_call_with_an_error_result() {
    let (_server, upstream, process) = server().await;
    let (mut calling, mut events) = visitor().call(&upstream, "tools/call", &json!({"name": "a"}));
    let call = during(&mut calling, process.received("tools/call")).await;
    process.refuse(&call, required()).await;
    let ask = asked(&mut calling, &mut events).await;
    ask.answer(Ok(raw(&json!({"action": "decline"}))));
    let result = value(&within("the result", calling).await.unwrap());
    assert_eq!(result["isError"], true);
    assert_eq!(result["content"][0]["text"], "Authorization was declined");
    let methods = process.methods().await;
    let calls = methods.iter().filter(|method| *method == "tools/call");
    assert_eq!(calls.count(), 1);
}

#[tokio::test]
async fn a_caller_without_url_elicitation_gets_missing_capability() {
    let (_server, upstream, process) = server().await;
    let caller = Caller::able(json!({"elicitation": {}}));
    let (mut calling, _events) = caller.call(&upstream, "tools/call", &json!({"name": "a"}));
    let call = during(&mut calling, process.received("tools/call")).await;
    process.refuse(&call, required()).await;
    let fault = within("the failure", calling).await.unwrap_err();
    assert!(matches!(fault, Fault::MissingCapability(_)), "{fault}");
    assert_eq!(fault.to_error(Revision::V2026_07_28).code, -32021);
}
