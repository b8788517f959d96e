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
    let params = raw(&params.to_string());
    let request = Request {
        id: 1_i64.into(),
        method: "tools/call".into(),
        params: Some(params),
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

/// TRAP-20, MRTR26-07: a state in the hands of another principal gets nothing back, and is as good as
/// before to its owner.
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

/// A principal with many parked calls loses one to a principal with few, and cannot evict theirs.
#[tokio::test]
async fn nobody_takes_all_the_places_of_calls_that_wait() {
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
