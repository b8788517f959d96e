//! Polling tools and resources, with paused time.

use serde_json::json;
use tokio::time::Instant;

use crate::support::{BROKEN, Client, Weather, hears, hub};

fn measure() -> serde_json::Value {
    json!({
        "type": "tool", "server": "weather", "toolName": "measure",
        "arguments": {"place": "at home"}, "reason": "the roses"
    })
}

/// S001-21, S001-D02: changes are reported, and nothing else.
#[tokio::test(start_paused = true)]
async fn changes_of_a_polled_tool_are_reported() {
    let weather = Weather::new();
    let client = Client::of(&hub(&weather).await);
    let id = client.subscribe("SubscribePolling", measure()).await;
    assert_eq!(weather.calls(), 1, "the first look is made at once");
    let mut changes = client.listen(&id).await;
    while weather.calls() < 4 {
        tokio::time::advance(std::time::Duration::from_secs(1)).await;
    }
    assert_eq!(client.news().await, [""; 0], "nothing changed");

    weather.becomes(25);
    hears(&mut changes).await;
    let news = client.news().await;
    let read = format!("server \"plexus-hub\", uri \"subscription://{id}\"");
    assert!(
        news[0].contains("the tool \"measure\" of the server \"weather\" changed")
            && news[0].contains("the roses")
            && news[0].contains(&read),
        "{news:?}"
    );
    let report = client.report(&id).await.unwrap();
    assert_eq!(report["toolName"], "measure");
    assert_eq!(report["arguments"], json!({"place": "at home"}));
    assert_eq!(report["intervalMs"], 5000);
    assert_eq!(report["changes"], 1);
    assert_eq!(report["latest"]["content"][0]["text"], "25 degrees at home");
}

/// S001-21: resources are polled as well, for servers that send no update notifications.
#[tokio::test(start_paused = true)]
async fn a_resource_is_polled() {
    let weather = Weather::new();
    let client = Client::of(&hub(&weather).await);
    let polled = json!({"type": "resource", "server": "weather", "uri": "weather://today"});
    let id = client.subscribe("SubscribePolling", polled).await;
    let mut changes = client.listen(&id).await;
    weather.becomes(25);
    hears(&mut changes).await;
    let report = client.report(&id).await.unwrap();
    assert_eq!(report["latest"]["contents"][0]["text"], "25 degrees");
}

/// S001-22: the interval is at least one second, and five by default.
#[tokio::test(start_paused = true)]
async fn the_interval_has_bounds_and_a_default() {
    let weather = Weather::new();
    let hub = hub(&weather).await;
    let client = Client::of(&hub);
    let every = |interval: serde_json::Value| {
        let mut arguments = measure();
        arguments["intervalMs"] = interval;
        arguments
    };
    for wrong in [
        json!(999),
        json!(0),
        json!(-1),
        json!("1000"),
        json!(86_400_001),
    ] {
        let refused = client.call("SubscribePolling", every(wrong.clone())).await;
        let why = refused.unwrap_err().to_string();
        assert!(why.contains("intervalMs"), "{wrong}: {why}");
    }
    assert_eq!(weather.calls(), 0);
    for (arguments, millis) in [(every(json!(1000)), 1000), (measure(), 5000)] {
        let client = Client::of(&hub);
        let id = client.subscribe("SubscribePolling", arguments).await;
        let mut changes = client.listen(&id).await;
        let began = Instant::now();
        weather.becomes(weather.calls() + 30);
        hears(&mut changes).await;
        assert_eq!(began.elapsed().as_millis(), millis);
        client.presence.end();
    }
}

#[tokio::test]
async fn polling_needs_an_existing_tool_or_resource() {
    let weather = Weather::new();
    let client = Client::of(&hub(&weather).await);
    for (arguments, says) in [
        (
            json!({"type": "tool", "server": "weather"}),
            "give its toolName",
        ),
        (
            json!({"type": "resource", "server": "weather"}),
            "give its uri",
        ),
        (
            json!({"type": "resource", "server": "weather", "uri": "a://b", "toolName": "measure"}),
            "no toolName",
        ),
        (
            json!({"type": "tool", "server": "weather", "toolName": "guess"}),
            "the server \"weather\" has no tool \"guess\"",
        ),
        (
            json!({"type": "tool", "server": "bare", "toolName": "weather__measure"}),
            "the server \"bare\" has no tool",
        ),
        (
            json!({"type": "tool", "server": "plexus-hub", "toolName": "ListMcpResources"}),
            "not polled",
        ),
        (
            json!({"type": "resource", "server": "weather", "uri": "weather://tomorrow"}),
            "weather://tomorrow",
        ),
    ] {
        let said = client.failure("SubscribePolling", arguments).await;
        assert!(said.contains(says), "{said}");
    }
    let by_shown_name =
        json!({"type": "tool", "server": "weather", "toolName": "weather__measure"});
    client.subscribe("SubscribePolling", by_shown_name).await;
}

/// Polling ends after repeated failures, with the reason; a success in between resets the count.
#[tokio::test(start_paused = true)]
async fn polling_ends_after_five_failures_in_a_row() {
    let weather = Weather::new();
    let client = Client::of(&hub(&weather).await);
    let id = client.subscribe("SubscribePolling", measure()).await;
    let mut changes = client.listen(&id).await;
    weather.becomes(BROKEN);
    while weather.calls() < 5 {
        tokio::time::advance(std::time::Duration::from_secs(1)).await;
    }
    weather.becomes(30);
    hears(&mut changes).await;
    assert_eq!(client.report(&id).await.unwrap()["changes"], 1);

    weather.becomes(BROKEN);
    let before = weather.calls();
    hears(&mut changes).await;
    assert_eq!(weather.calls(), before + 5);
    let news = client.news().await;
    assert!(
        news[0].contains("no longer watched")
            && news[0].contains("5 polls in a row failed")
            && news[0].contains("the thermometer is broken"),
        "{news:?}"
    );
    let report = client.report(&id).await.unwrap();
    assert!(
        report["ended"].as_str().unwrap().contains("broken"),
        "{report}"
    );
    assert!(
        client.report(&id).await.is_err(),
        "there is nothing more to tell"
    );
}

/// A subscription whose first poll fails is not created.
#[tokio::test]
async fn a_failed_first_poll_creates_no_subscription() {
    let weather = Weather::new();
    weather.becomes(BROKEN);
    let client = Client::of(&hub(&weather).await);
    let said = client.failure("SubscribePolling", measure()).await;
    assert_eq!(said, "the thermometer is broken");
}
