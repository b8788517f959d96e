//! Listing and reading.

use plexus_mcp_core::{Fault, Section, Service};
use serde_json::{Value, json};

use crate::support::{Client, Weather, hub};

/// S001-17…23, S001-32: the six tools have their plain names and the expected arguments.
#[tokio::test]
async fn the_six_tools_are_there_under_their_own_names() {
    let hub = hub(&Weather::new()).await;
    let catalogue = hub.catalogue().borrow().clone();
    let shown = |name: &str| -> (Vec<String>, Vec<String>) {
        let entry = catalogue.list(Section::Tools).get(name).expect(name);
        let definition: Value = entry.definition.decode().unwrap();
        let schema = &definition["inputSchema"];
        assert_eq!(schema["additionalProperties"], false, "{name}");
        let mut takes: Vec<_> = schema["properties"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        takes.sort();
        let needs = schema["required"].as_array().cloned().unwrap_or_default();
        let needs = needs.iter().map(|name| name.as_str().unwrap().to_owned());
        (takes, needs.collect())
    };
    let all: [(&str, &[&str], &[&str]); 6] = [
        ("ListMcpResources", &["server"], &[]),
        ("ReadMcpResource", &["server", "uri"], &["server", "uri"]),
        (
            "SubscribeMcpResource",
            &["reason", "server", "uri"],
            &["server", "uri"],
        ),
        (
            "UnsubscribeMcpResource",
            &["server", "subscriptionId", "uri"],
            &[],
        ),
        (
            "SubscribePolling",
            &[
                "arguments",
                "intervalMs",
                "reason",
                "server",
                "toolName",
                "type",
                "uri",
            ],
            &["type", "server"],
        ),
        (
            "UnsubscribePolling",
            &["server", "subscriptionId", "target"],
            &[],
        ),
    ];
    for (name, takes, needs) in all {
        let (really_takes, really_needs) = shown(name);
        assert_eq!(really_takes, takes, "{name}");
        assert_eq!(really_needs, needs, "{name}");
    }
    let polling = catalogue.list(Section::Tools).get("SubscribePolling");
    let polling: Value = polling.unwrap().definition.decode().unwrap();
    let properties = &polling["inputSchema"]["properties"];
    assert_eq!(properties["type"]["enum"], json!(["tool", "resource"]));
    assert_eq!(properties["intervalMs"]["minimum"], 1000);
    assert_eq!(properties["intervalMs"]["default"], 5000);
}

/// S001-17, S001-49, S001-77 (V9): resources of all servers, or of one.
#[tokio::test]
async fn resources_are_listed_with_their_servers() {
    let weather = Weather::new();
    let client = Client::of(&hub(&weather).await);
    let expected = json!([
        {
            "uri": "weather://today", "name": "today", "mimeType": "text/plain",
            "description": "How warm it is", "server": "weather"
        },
        {"uri": "weather://map", "name": "map", "server": "weather"},
    ]);
    for arguments in [
        json!({}),
        json!({"server": "weather"}),
        json!({"server": null}),
    ] {
        let listed = client.text("ListMcpResources", arguments).await;
        let listed: Value = serde_json::from_str(&listed).unwrap();
        assert_eq!(listed, expected);
    }
    let none = client
        .text("ListMcpResources", json!({"server": "bare"}))
        .await;
    assert_eq!(none, "[]");
}

/// S001-18, S001-77 (V9), C55: text is returned as it is; for binary content the model gets a
/// description.
#[tokio::test]
async fn resources_are_read_by_server_and_uri() {
    let weather = Weather::new();
    let client = Client::of(&hub(&weather).await);
    let today = json!({"server": "weather", "uri": "weather://today"});
    let read = client.structured("ReadMcpResource", today).await;
    let expected = json!({"contents": [{"uri": "weather://today", "text": "20 degrees"}]});
    assert_eq!(read, expected);

    let map = json!({"server_name": "weather", "uri": "weather://map"});
    let read = client.call("ReadMcpResource", map).await.unwrap();
    let blob = &read["structuredContent"]["contents"][0];
    assert_eq!(blob["blob"], "aGVsbG8=");
    let text = read["content"][0]["text"].as_str().unwrap();
    let told: Value = serde_json::from_str(text).unwrap();
    assert_eq!(told["contents"][0]["blob"], "[image/png, 5 bytes]");
}

#[tokio::test]
async fn unknown_names_are_reported_with_the_available_names() {
    let weather = Weather::new();
    let hub = hub(&weather).await;
    let client = Client::of(&hub);
    for (tool, arguments) in [
        ("ListMcpResources", json!({"server": "wether"})),
        (
            "ReadMcpResource",
            json!({"server": "wether", "uri": "a://b"}),
        ),
        (
            "SubscribeMcpResource",
            json!({"server": "wether", "uri": "a://b"}),
        ),
        (
            "SubscribePolling",
            json!({"type": "resource", "server": "wether", "uri": "a://b"}),
        ),
    ] {
        let said = client.failure(tool, arguments).await;
        assert_eq!(
            said,
            r#"there is no server "wether"; there are "plexus-hub", "weather", "bare""#
        );
    }
    let missing = json!({"server": "weather", "uri": "weather://tomorrow"});
    let said = client.failure("ReadMcpResource", missing.clone()).await;
    assert!(
        said.contains("weather://tomorrow") && said.contains("\"weather\""),
        "{said}"
    );
    let said = client.failure("SubscribeMcpResource", missing).await;
    assert!(said.contains("weather://tomorrow"), "{said}");

    hub.toggle("weather", false).unwrap();
    let said = client
        .failure("ListMcpResources", json!({"server": "weather"}))
        .await;
    assert!(
        said.contains("the server \"weather\" is disabled"),
        "{said}"
    );
    let refused = client
        .call("ReadMcpResource", json!({"server": "weather"}))
        .await;
    let Err(Fault::InvalidArguments(why)) = refused else {
        panic!("{refused:?}");
    };
    assert!(why.contains("uri"), "{why}");
}
