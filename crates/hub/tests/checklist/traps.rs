//! Known failures of other gateways: one bad server does not affect the others.

use std::time::Duration;

use plexus_mcp_client::ServerState;
use plexus_mcp_hub::{MemberKind, MemberSpec};
use plexus_testkit::server::{Offer, Script, StdioServer, Step, tool};
use plexus_testkit::within;
use serde_json::{Value, json};

use crate::support::{
    LEGACY, call_tool, calling, definition, echoing, empty_hub, hub_of, member, state, status,
    tool_fails, tools, tools_become,
};

/// The server as a member with short timeouts.
fn impatient(name: &str, server: &StdioServer) -> MemberSpec {
    let mut definition = definition(server);
    definition.timeouts.connect = Duration::from_secs(3);
    definition.timeouts.probe = Duration::from_secs(1);
    let kind = MemberKind::Upstream(Box::new(definition));
    MemberSpec::new(name, kind, [1; 32])
}

/// TRAP-25: a server that never answers the handshake does not delay the others.
#[tokio::test]
async fn one_that_hangs_holds_up_no_other() {
    let hung = StdioServer::new(Script::silent()).await;
    let good = StdioServer::new(echoing(&["a"])).await;
    let hub = empty_hub();
    hub.set_members(vec![impatient("hung", &hung), member("good", &good)])
        .await;
    let using = async {
        let process = hung.process().await;
        process.received("initialize").await;
        tools_become(&hub, &["good__a"]).await;
        assert_eq!(call_tool(&hub, "good__a").await["echo"]["name"], "a");
        assert_eq!(state(&hub, "hung"), ServerState::Pending);
        process
    };
    let (process, ()) = within("both", async { tokio::join!(using, hub.connect_all()) }).await;
    assert_eq!(state(&hub, "hung"), ServerState::Failed);
    process.ended().await;
    call_tool(&hub, "good__a").await;
}

/// TRAP-26, TRAP-27, TRAP-28, TRAP-29: an invalid schema, a banner, a very long line and a closed
/// input affect their own server only.
#[tokio::test]
async fn each_kind_of_bad_server_is_alone_with_it() {
    let bad_schema = json!({"name": "bad", "inputSchema": {"type": "nonsense"}});
    let invalid = Script::from(&Offer::tools(LEGACY, [bad_schema, tool("fine")]));
    let invalid = StdioServer::new(invalid).await;
    let banner = Step::Print("Welcome to the server!".to_owned());
    let banners = StdioServer::new(echoing(&["a"]).start([banner])).await;
    let long = StdioServer::new(echoing(&["a"]).ignoring("tools/call")).await;
    let closing = echoing(&["a"]).on("tools/call", [Step::CloseInput]);
    let closing = StdioServer::new(closing).await;
    let good = StdioServer::new(echoing(&["a"])).await;
    let mut closes = definition(&closing);
    closes.timeouts.call = Duration::from_millis(500);
    let closes = MemberKind::Upstream(Box::new(closes));
    let hub = hub_of(vec![
        member("invalid", &invalid),
        member("banners", &banners),
        member("long", &long),
        MemberSpec::new("closing", closes, [1; 32]),
        member("good", &good),
    ])
    .await;
    assert_eq!(
        tools(&hub),
        [
            "invalid__fine",
            "banners__a",
            "long__a",
            "closing__a",
            "good__a"
        ]
    );
    let report = |name| status(&hub, name).unwrap().report.unwrap();
    assert_eq!(report("invalid").quarantined[0].name, "bad");
    assert_eq!(report("banners").violations.not_json, 1);
    call_tool(&hub, "banners__a").await;
    let length = 10 * 1024 * 1024;
    let process = long.process().await;
    let answering = async {
        let request = process.received("tools/call").await;
        let result = json!({"content": [], "long": "x".repeat(length)});
        process.reply(&request, result).await;
    };
    let (result, ()) = tokio::join!(call_tool(&hub, "long__a"), answering);
    let arrived = result["long"].as_str().map(str::len);
    assert_eq!(arrived, Some(length), "a long line is a line");
    tool_fails(&hub, "closing__a").await;
    call_tool(&hub, "good__a").await;
    assert_eq!(state(&hub, "good"), ServerState::Connected);
}

/// TRAP-24: cancelling a call cancels that call only, and only its server is notified.
#[tokio::test]
async fn a_cancellation_reaches_the_owner_only() {
    const CANCELLED: &str = "notifications/cancelled";
    let silent = || echoing(&["a"]).ignoring("tools/call");
    let (one, other) = (
        StdioServer::new(silent()).await,
        StdioServer::new(silent()).await,
    );
    let hub = hub_of(vec![member("one", &one), member("other", &other)]).await;
    let (one, other) = (one.process().await, other.process().await);
    let params = |name: &str| json!({"name": name, "arguments": {}});
    let mut given_up = calling(&hub, "tools/call", &params("one__a"));
    let mut kept = calling(&hub, "tools/call", &params("other__a"));
    let begun = async { tokio::join!(one.received("tools/call"), other.received("tools/call")) };
    let (first, second): (Value, Value) = tokio::select! {
        begun = begun => begun,
        _ = &mut given_up => panic!("there was no response"),
        _ = &mut kept => panic!("there was no response"),
    };
    drop(given_up);
    let cancelled = one.received(CANCELLED).await;
    assert_eq!(cancelled["params"]["requestId"], first["id"]);
    other.reply(&second, json!({"content": []})).await;
    within("the other answer", kept).await.unwrap();
    assert!(!other.methods().await.contains(&CANCELLED.to_owned()));
}
