//! Permission to poll tools.

use plexus_mcp_config::{self as config, Action, ClientSettings, Mode, Rule, ToolFilter};
use plexus_mcp_hub::Hub;
use plexus_mcp_hub::policy::Policy;
use serde_json::json;

use crate::support::{Client, Weather, hears, hub};

fn policy(mode: Mode, rules: impl IntoIterator<Item = (&'static str, Action)>) -> Policy {
    let mut settings = config::Policy::default();
    settings.mode = mode;
    let rules = rules.into_iter();
    settings
        .rules
        .extend(rules.map(|(tool, action)| Rule::new(tool, action, "/home/ada/plexus.toml")));
    Policy::behind_client(&settings)
}

fn set(hub: &Hub, action: Action) {
    hub.set_policy(policy(Mode::Default, [("mcp__weather__*", action)]));
}

fn measure() -> serde_json::Value {
    json!({"type": "tool", "server": "weather", "toolName": "measure"})
}

/// S001-58: the six tools need no permission in any mode; a rule with their shown name still
/// applies.
#[tokio::test]
async fn the_tools_themselves_need_no_permission() {
    let weather = Weather::new();
    let hub = hub(&weather).await;
    let client = Client::of(&hub);
    hub.set_policy(policy(Mode::DontAsk, [("mcp__*", Action::Deny)]));
    client.text("ListMcpResources", json!({})).await;
    let today = json!({"server": "weather", "uri": "weather://today"});
    client.structured("ReadMcpResource", today.clone()).await;
    client
        .subscribe("SubscribeMcpResource", today.clone())
        .await;
    let ended = client.structured("UnsubscribeMcpResource", today).await;
    assert_eq!(ended, json!({"unsubscribed": true}));

    hub.set_policy(policy(Mode::Default, [("ReadMcp*", Action::Deny)]));
    let said = client.failure(
        "ReadMcpResource",
        json!({"server": "weather", "uri": "a://b"}),
    );
    assert!(said.await.contains("ReadMcp*"));
}

/// C27: a tool that the policy denies is not polled, for any client.
#[tokio::test]
async fn a_denied_tool_is_not_polled() {
    let weather = Weather::new();
    let hub = hub(&weather).await;
    set(&hub, Action::Deny);
    let said = Client::of(&hub)
        .failure("SubscribePolling", measure())
        .await;
    assert!(
        said.contains("weather__measure was not called: denied by the rule"),
        "{said}"
    );
    set(&hub, Action::Ask);
    let said = Client::of(&hub)
        .failure("SubscribePolling", measure())
        .await;
    assert!(said.contains("the user must be asked"), "{said}");
    let said = Client::answering(&hub, "no")
        .failure("SubscribePolling", measure())
        .await;
    assert!(said.contains("declined"), "{said}");
    assert_eq!(weather.calls(), 0);
}

/// C27: the user is asked once, when the subscription is made.
#[tokio::test(start_paused = true)]
async fn permission_once_is_permission_to_go_on_polling() {
    let weather = Weather::new();
    let hub = hub(&weather).await;
    set(&hub, Action::Ask);
    let client = Client::answering(&hub, "once");
    let id = client.subscribe("SubscribePolling", measure()).await;
    let mut changes = client.listen(&id).await;
    weather.becomes(25);
    hears(&mut changes).await;
    assert_eq!(client.report(&id).await.unwrap()["changes"], 1);
}

/// C27: a tool that is denied later is not called again, and the end is reported.
#[tokio::test(start_paused = true)]
async fn a_new_rule_ends_polling() {
    let weather = Weather::new();
    let hub = hub(&weather).await;
    for (action, says) in [
        (Action::Deny, "denied by the rule"),
        (Action::Ask, "must be asked again"),
    ] {
        hub.set_policy(policy(Mode::Default, []));
        let client = Client::of(&hub);
        let id = client.subscribe("SubscribePolling", measure()).await;
        let mut changes = client.listen(&id).await;
        set(&hub, action);
        let calls = weather.calls();
        hears(&mut changes).await;
        let news = client.news().await;
        assert!(
            news[0].contains("no longer watched") && news[0].contains(says),
            "{news:?}"
        );
        assert_eq!(weather.calls(), calls, "it was not called again");
    }
}

/// Consent does not cover a tool whose definition has changed.
#[tokio::test(start_paused = true)]
async fn a_new_definition_ends_permission() {
    let weather = Weather::new();
    let hub = hub(&weather).await;
    set(&hub, Action::Ask);
    let client = Client::answering(&hub, "once");
    let id = client.subscribe("SubscribePolling", measure()).await;
    let mut changes = client.listen(&id).await;
    weather.redefine();
    hears(&mut changes).await;
    let report = client.report(&id).await.unwrap();
    assert!(
        report["ended"].as_str().unwrap().contains("asked again"),
        "{report}"
    );
    assert_eq!(weather.calls(), 1);
}

/// A client cannot poll a tool that is hidden from it.
#[tokio::test]
async fn a_hidden_tool_is_not_polled() {
    let weather = Weather::new();
    let hub = hub(&weather).await;
    let filter = ToolFilter::new(Vec::new(), vec!["weather__*".to_owned()]).unwrap();
    hub.set_clients([("sprout".to_owned(), ClientSettings::filtered(filter))].into());
    let hidden = Client::named(&hub, "sprout");
    let said = hidden.failure("SubscribePolling", measure()).await;
    assert!(
        said.contains("has no tool \"measure\" that you can call"),
        "{said}"
    );
    Client::named(&hub, "oak")
        .subscribe("SubscribePolling", measure())
        .await;
}
