//! Subscriptions to resources whose servers send update notifications.

use serde_json::json;

use crate::support::{Client, Weather, hears, hub};

fn today() -> serde_json::Value {
    json!({"server": "weather", "uri": "weather://today", "reason": "the picnic"})
}

/// S001-19: a change is reported once, with the next result of any tool, and with the
/// reason of the subscription.
#[tokio::test]
async fn a_change_comes_with_the_next_result_of_any_tool() {
    let weather = Weather::new();
    let hub = hub(&weather).await;
    let (client, other) = (Client::of(&hub), Client::of(&hub));
    let id = client.subscribe("SubscribeMcpResource", today()).await;
    assert_eq!(client.news().await, [""; 0]);

    let mut changes = client.listen(&id).await;
    weather.becomes(21);
    hears(&mut changes).await;
    assert_eq!(other.news().await, [""; 0], "it belongs to another client");
    let news = client.news().await;
    assert_eq!(
        news,
        [
            "[plexus] the resource \"weather://today\" of the server \"weather\" changed \
             (reason of your subscription: the picnic); read it with ReadMcpResource, \
             server \"weather\", uri \"weather://today\""
        ]
    );
    assert_eq!(client.news().await, [""; 0], "told once");

    for degrees in [22, 23] {
        weather.becomes(degrees);
        hears(&mut changes).await;
    }
    let news = client.news().await;
    assert!(news[0].contains("changed 3 times"), "{news:?}");
}

/// A client that shows only structured content would not show the report.
#[tokio::test]
async fn structured_results_are_left_as_they_are() {
    let weather = Weather::new();
    let client = Client::of(&hub(&weather).await);
    let id = client.subscribe("SubscribeMcpResource", today()).await;
    let mut changes = client.listen(&id).await;
    weather.becomes(21);
    hears(&mut changes).await;
    let result = client.call("weather__structured", json!({})).await.unwrap();
    assert_eq!(result["content"].as_array().unwrap().len(), 1, "{result}");
    assert_eq!(client.news().await.len(), 1);
}

/// A subscription is a resource: it is read by its id, also with the tool, and can be subscribed
/// to.
#[tokio::test]
async fn a_subscription_is_a_resource() {
    let weather = Weather::new();
    let client = Client::of(&hub(&weather).await);
    let id = client.subscribe("SubscribeMcpResource", today()).await;
    let mut changes = client.listen(&id).await;
    weather.becomes(21);
    hears(&mut changes).await;
    let report = client.report(&id).await.unwrap();
    let expected = json!({
        "subscriptionId": id, "server": "weather", "uri": "weather://today",
        "reason": "the picnic", "changes": 1
    });
    assert_eq!(report, expected);
    assert_eq!(client.news().await, [""; 0], "it is known already");
    let by_tool = json!({"server": "plexus-hub", "uri": format!("subscription://{id}")});
    let read = client.structured("ReadMcpResource", by_tool).await;
    let text = read["contents"][0]["text"].as_str().unwrap();
    assert!(text.contains(r#""changes":0"#), "{text}");
}

#[tokio::test]
async fn subscribing_twice_is_subscribing_once() {
    let weather = Weather::new();
    let hub = hub(&weather).await;
    let (client, other) = (Client::of(&hub), Client::of(&hub));
    let id = client.subscribe("SubscribeMcpResource", today()).await;
    assert_eq!(client.subscribe("SubscribeMcpResource", today()).await, id);
    assert_ne!(other.subscribe("SubscribeMcpResource", today()).await, id);
}
