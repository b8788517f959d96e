//! The end of subscriptions, and their owners.

use std::time::Duration;

use serde_json::json;

use crate::support::{Client, Weather, hears, hub};

fn today() -> serde_json::Value {
    json!({"server": "weather", "uri": "weather://today"})
}

fn measure() -> serde_json::Value {
    json!({"type": "tool", "server": "weather", "toolName": "measure"})
}

/// S001-20, S001-23: subscriptions are ended by id, by server, by target, or by all of these; each
/// tool ends its own kind.
#[tokio::test]
async fn subscriptions_are_ended_by_id_server_or_target() {
    let weather = Weather::new();
    let client = Client::of(&hub(&weather).await);
    let watch = "UnsubscribeMcpResource";
    let poll = "UnsubscribePolling";
    for (tool, said, ended) in [
        (watch, json!({"server": "weather"}), true),
        (watch, json!({"uri": "weather://today"}), true),
        (
            watch,
            json!({"server": "weather", "uri": "weather://today"}),
            true,
        ),
        (
            watch,
            json!({"server": "bare", "uri": "weather://today"}),
            false,
        ),
        (watch, json!({"uri": "weather://map"}), false),
        (watch, json!({"subscriptionId": "0123"}), false),
        (poll, json!({"server": "weather"}), true),
        (poll, json!({"target": "measure"}), true),
        (poll, json!({"target": "weather://today"}), false),
        (poll, json!({"server": "weather", "target": "sit"}), false),
    ] {
        let watched = client.subscribe("SubscribeMcpResource", today()).await;
        let polled = client.subscribe("SubscribePolling", measure()).await;
        let result = client.structured(tool, said.clone()).await;
        assert_eq!(result, json!({"unsubscribed": ended}), "{tool} {said}");
        let is_kept = (
            client.report(&watched).await.is_ok(),
            client.report(&polled).await.is_ok(),
        );
        let of_watch = tool == watch;
        assert_eq!(
            is_kept,
            (!ended || !of_watch, !ended || of_watch),
            "{tool} {said}"
        );
    }
    for (tool, subscribing, arguments) in [
        (watch, "SubscribeMcpResource", today()),
        (poll, "SubscribePolling", measure()),
    ] {
        let id = client.subscribe(subscribing, arguments).await;
        let by_id = json!({"subscriptionId": id});
        let ended = client.structured(tool, by_id.clone()).await;
        assert_eq!(ended, json!({"unsubscribed": true}));
        let again = client.structured(tool, by_id).await;
        assert_eq!(again, json!({"unsubscribed": false}));
        let said = client.failure(tool, json!({})).await;
        assert!(said.contains("give a subscriptionId"), "{said}");
    }
}

/// A subscription of another client is not read, watched or ended, even by its id.
#[tokio::test]
async fn a_client_cannot_access_subscriptions_of_other_clients() {
    let weather = Weather::new();
    let hub = hub(&weather).await;
    let (owner, other) = (Client::of(&hub), Client::of(&hub));
    let id = owner.subscribe("SubscribeMcpResource", today()).await;
    assert!(other.report(&id).await.is_err());
    for said in [json!({"subscriptionId": id}), json!({"server": "weather"})] {
        let ended = other.structured("UnsubscribeMcpResource", said).await;
        assert_eq!(ended, json!({"unsubscribed": false}));
    }
    assert!(owner.report(&id).await.is_ok());
}

/// Subscriptions end with their client, and polling stops.
#[tokio::test(start_paused = true)]
async fn subscriptions_end_with_their_client() {
    let weather = Weather::new();
    let hub = hub(&weather).await;
    let (client, other) = (Client::of(&hub), Client::of(&hub));
    client.subscribe("SubscribeMcpResource", today()).await;
    client.subscribe("SubscribePolling", measure()).await;
    let kept = other.subscribe("SubscribePolling", measure()).await;
    let mut changes = other.listen(&kept).await;
    client.presence.end();
    let before = weather.calls();
    weather.becomes(50);
    hears(&mut changes).await;
    assert_eq!(weather.calls(), before + 1, "only for the other");
}

/// The subscription of a client without a session expires when it is not read.
#[tokio::test(start_paused = true)]
async fn without_a_session_a_subscription_lasts_while_it_is_looked_at() {
    const MINUTE: Duration = Duration::from_mins(1);
    let weather = Weather::new();
    let client = Client::stateless(&hub(&weather).await);
    let id = client.subscribe("SubscribePolling", measure()).await;
    for _ in 0..3 {
        tokio::time::sleep(9 * MINUTE).await;
        assert!(client.report(&id).await.is_ok(), "reading renews it");
    }
    let listening = client.listen(&id).await;
    tokio::time::sleep(30 * MINUTE).await;
    assert!(client.report(&id).await.is_ok(), "a client listened");
    drop(listening);
    tokio::time::sleep(11 * MINUTE).await;
    let calls = weather.calls();
    assert!(client.report(&id).await.is_err());
    tokio::time::sleep(5 * MINUTE).await;
    assert_eq!(weather.calls(), calls);
}

/// A caller that cannot be identified has access to a subscription by its id only.
#[tokio::test]
async fn without_a_session_only_the_id_counts() {
    let weather = Weather::new();
    let client = Client::stateless(&hub(&weather).await);
    let id = client.subscribe("SubscribeMcpResource", today()).await;
    assert_ne!(client.subscribe("SubscribeMcpResource", today()).await, id);
    let mut changes = client.listen(&id).await;
    weather.becomes(21);
    hears(&mut changes).await;
    assert_eq!(client.news().await, [""; 0]);
    assert_eq!(client.report(&id).await.unwrap()["changes"], 1);
    let ended = client.structured("UnsubscribeMcpResource", today()).await;
    assert_eq!(ended, json!({"unsubscribed": false}));
    let by_id = json!({"subscriptionId": id});
    let ended = client.structured("UnsubscribeMcpResource", by_id).await;
    assert_eq!(ended, json!({"unsubscribed": true}));
}

/// The number of subscriptions of one client is limited.
#[tokio::test]
async fn there_is_a_limit_for_each_client() {
    let weather = Weather::new();
    let hub = hub(&weather).await;
    let client = Client::of(&hub);
    let polling = |number: u32| {
        let mut arguments = measure();
        arguments["arguments"] = json!({"place": number.to_string()});
        arguments
    };
    for number in 0..32 {
        client.subscribe("SubscribePolling", polling(number)).await;
    }
    let said = client.failure("SubscribePolling", polling(32)).await;
    assert!(
        said.contains("32 subscriptions already") && said.contains("end one"),
        "{said}"
    );
    Client::of(&hub)
        .subscribe("SubscribePolling", polling(32))
        .await;
    client
        .structured("UnsubscribePolling", json!({"target": "measure"}))
        .await;
    client.subscribe("SubscribePolling", polling(32)).await;
}
