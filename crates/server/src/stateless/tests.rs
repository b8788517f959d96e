mod states;

use std::sync::Arc;

use plexus_mcp_core::{
    Context, ElicitParams, LocalService, NoArguments, Principal, Scopes, Tool, ToolError,
};
use plexus_mcp_wire::{Limits, Raw, Request};
use serde_json::{Value, json};

use super::{Caller, begin};
use crate::caller::CallerIdentity;
use crate::exchange::Output;
use crate::parsed_request::ParsedRequest;
use crate::{Edge, Options};

fn raw(text: &str) -> Raw {
    Raw::parse(text.to_owned().into(), &Limits::default()).unwrap()
}

fn edge() -> Arc<Edge> {
    edge_with(Options::default())
}

/// A tool that asks for a name.
fn edge_with(options: Options) -> Arc<Edge> {
    let service = LocalService::builder("greeter", "1.0.0").tool(
        Tool::new("greet"),
        async |_: NoArguments, ctx: Context| -> Result<String, ToolError> {
            let form =
                ElicitParams::form("Your name?", raw(r#"{"type":"object","properties":{}}"#));
            let answer = ctx.elicit_as(Some("name"), form).await?;
            Ok(answer
                .content
                .map_or_else(String::new, |content| content.as_str().to_owned()))
        },
    );
    Edge::new(Arc::new(service.build().unwrap()), options).unwrap()
}

/// Calls the tool as `who`, and returns the response.
async fn call(edge: &Arc<Edge>, who: &str, more: &Value) -> Value {
    let mut params = json!({"name": "greet", "arguments": {}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    }});
    for (name, value) in more.as_object().into_iter().flatten() {
        params[name] = value.clone();
    }
    send(edge, who, "tools/call", &params).await
}

/// Sends a request as `who`, and returns the response.
async fn send(edge: &Arc<Edge>, who: &str, method: &str, params: &Value) -> Value {
    let request = Request {
        id: 1_i64.into(),
        method: method.into(),
        params: Some(raw(&params.to_string())),
    };
    let Ok(asked) = ParsedRequest::read(request) else {
        panic!("the parameters are malformed");
    };
    let caller = Caller {
        identity: CallerIdentity::new(Principal::new(who), Scopes::default()),
        presence: None,
    };
    let mut exchange = begin(edge, asked, None, caller);
    loop {
        if let Output::Answer(answer) = exchange.next().await {
            return serde_json::from_slice(&answer.message).unwrap();
        }
    }
}

/// Discovery is not use: servers that start then would compete with the first list.
#[tokio::test]
async fn an_edge_is_in_use_after_its_first_list_or_call() {
    async fn is_in_use(edge: &Edge) -> bool {
        tokio::select! {
            biased;
            () = edge.in_use() => true,
            () = std::future::ready(()) => false,
        }
    }
    let params = json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }});
    let listing = edge();
    send(&listing, "kim", "server/discover", &params).await;
    assert!(!is_in_use(&listing).await);
    send(&listing, "kim", "tools/list", &params).await;
    assert!(is_in_use(&listing).await);

    let calling = edge();
    assert!(!is_in_use(&calling).await);
    call(&calling, "kim", &json!({})).await;
    assert!(is_in_use(&calling).await);
}

/// TRAP-20, MRTR26-07: a state is rejected for another principal, and stays valid for its owner.
#[tokio::test]
async fn a_state_is_good_for_its_own_caller_only() {
    let edge = edge();
    let asked = call(&edge, "kim", &json!({})).await;
    let state = asked["result"]["requestState"].as_str().unwrap();
    let answers = json!({"name": {"action": "accept", "content": {"name": "Kim"}}});
    let retry = json!({"requestState": state, "inputResponses": answers});
    for thief in ["eve", "", "Kim", "kim "] {
        let refused = call(&edge, thief, &retry).await;
        assert_eq!(refused["error"]["code"], -32602, "{thief:?}: {refused}");
        let told = &refused["error"]["message"];
        assert_eq!(told, "requestState is invalid or expired");
    }
    let greeted = call(&edge, "kim", &retry).await;
    let text = &greeted["result"]["content"][0]["text"];
    assert_eq!(text, r#"{"name":"Kim"}"#, "{greeted}");
}

/// The sizes of parked calls are limited together, and the principal that uses most makes room.
#[tokio::test]
async fn large_parked_calls_take_the_room_of_their_own_principal() {
    let options = Options {
        max_parked_bytes: 10_000,
        ..Options::default()
    };
    let edge = edge_with(options);
    let padded = |bytes: usize| json!({"padding": "x".repeat(bytes)});
    let parked = async |who: &str, bytes: usize| call(&edge, who, &padded(bytes)).await;
    let is_parked = |answer: &Value| answer["result"]["requestState"].is_string();
    assert!(is_parked(&parked("eve", 6_000).await));
    let refused = parked("eve", 6_000).await;
    let text = refused["error"]["message"].as_str().unwrap();
    assert!(text.contains("too many"), "{refused}");
    assert!(is_parked(&parked("kim", 3_000).await), "there is room");
    assert!(is_parked(&parked("lee", 3_000).await), "eve makes room");
    let refused = parked("lee", 6_000).await;
    assert!(!is_parked(&refused), "kim has less than lee: {refused}");
}

/// A principal with many parked calls loses one to a principal with few, and cannot evict theirs.
#[tokio::test]
async fn a_principal_cannot_evict_all_parked_calls_of_another() {
    let options = Options {
        max_parked: 3,
        ..Options::default()
    };
    let edge = edge_with(options);
    let parked =
        async |who: &str| call(&edge, who, &json!({})).await["result"]["requestState"].clone();
    let kim = parked("kim").await;
    let first = parked("eve").await;
    let second = parked("eve").await;
    let refused = call(&edge, "eve", &json!({})).await;
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("too many"),
        "{refused}"
    );
    let lee = parked("lee").await;

    let answers = json!({"name": {"action": "accept", "content": {"name": "X"}}});
    let is_there = async |who: &str, state: &Value| {
        let retry = json!({"requestState": state, "inputResponses": answers});
        call(&edge, who, &retry).await.get("result").is_some()
    };
    assert!(is_there("kim", &kim).await);
    assert!(is_there("lee", &lee).await);
    assert!(is_there("eve", &second).await != is_there("eve", &first).await);
}
