//! Notifications of changes, in both eras.

use plexus_testkit::Client;
use serde_json::{Value, json};

every_client!(tells_of_changes);

const WATCHED: &str = "test://watched-resource";
const UPDATED: &str = "notifications/resources/updated";
const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";

async fn tells_of_changes(client: &mut Client, _: &Value) {
    if client.is_stateless() {
        listens(client).await;
    } else {
        subscribes(client).await;
    }
}

/// S003-54, C46, SUBL-02, SUBL-03, HTTPL-13.
async fn subscribes(client: &mut Client) {
    client.call("test_touch_watched_resource", json!({})).await;
    let uri = json!({"uri": WATCHED});
    let subscribed = client.result("resources/subscribe", uri.clone()).await;
    assert_eq!(subscribed, json!({}));
    client.call("test_touch_watched_resource", json!({})).await;
    let update = client.expect_method(UPDATED).await;
    assert_eq!(update["params"]["uri"], WATCHED);

    client.call("test_trigger_tool_change", json!({})).await;
    client.expect_method(TOOLS_CHANGED).await;
    client.call("test_trigger_prompt_change", json!({})).await;
    client.expect_method(PROMPTS_CHANGED).await;

    let unsubscribed = client.result("resources/unsubscribe", uri).await;
    assert_eq!(unsubscribed, json!({}));
    client.call("test_touch_watched_resource", json!({})).await;
    client.call("test_trigger_tool_change", json!({})).await;
    client.expect_method(TOOLS_CHANGED).await;
    assert!(!client.backlog().any(|message| message["method"] == UPDATED));

    let unknown = json!({"uri": "test://nope"});
    let error = client.error("resources/subscribe", unknown).await;
    assert_eq!(error["code"], -32002);
}

/// SUB26-01 to SUB26-03, SUB26-05, SUB26-07, SUB26-09, META26-07, TRANSLATION §12 cases 13 to 15
/// and 26.
async fn listens(client: &mut Client) {
    let (numbered, named) = (json!(77), json!("77"));
    let wanted =
        json!({"toolsListChanged": true, "resourceSubscriptions": [WATCHED, "test://nope"]});
    let params = json!({"notifications": wanted});
    client
        .begin_as(&numbered, "subscriptions/listen", params)
        .await;
    let acknowledged = subscribed(client, &numbered).await;
    let honoured = json!({"toolsListChanged": true, "resourceSubscriptions": [WATCHED]});
    assert_eq!(acknowledged["params"]["notifications"], honoured);

    let params = json!({"notifications": {"promptsListChanged": true}});
    client
        .begin_as(&named, "subscriptions/listen", params)
        .await;
    subscribed(client, &named).await;

    // An empty subscription, or one to an unknown resource, stays open and receives nothing.
    for (id, wanted) in [
        (json!("nothing"), json!({})),
        (
            json!("nowhere"),
            json!({"resourceSubscriptions": ["test://nope"]}),
        ),
    ] {
        let params = json!({"notifications": wanted});
        client.begin_as(&id, "subscriptions/listen", params).await;
        let acknowledged = subscribed(client, &id).await;
        assert_eq!(acknowledged["params"]["notifications"], json!({}));
    }

    client.call("test_touch_watched_resource", json!({})).await;
    let update = client.expect_method(UPDATED).await;
    assert_eq!(update["params"]["uri"], WATCHED);
    assert_eq!(subscription(&update), &numbered);
    client.call("test_trigger_tool_change", json!({})).await;
    let change = client.expect_method(TOOLS_CHANGED).await;
    assert_eq!(subscription(&change), &numbered);
    client.call("test_trigger_prompt_change", json!({})).await;
    let change = client.expect_method(PROMPTS_CHANGED).await;
    assert_eq!(subscription(&change), &named);

    client.cancel(&numbered).await;
    client.call("test_simple_text", json!({})).await;
    client.call("test_trigger_prompt_change", json!({})).await;
    client.expect_method(PROMPTS_CHANGED).await;
    let unwanted: Vec<_> = client.backlog().collect();
    assert_eq!(unwanted, [] as [&Value; 0]);
}

/// The acknowledgement of a subscription, which must be its first message.
async fn subscribed(client: &mut Client, id: &Value) -> Value {
    let first = client
        .expect("a subscription", |message| subscription(message) == id)
        .await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    first
}

fn subscription(message: &Value) -> &Value {
    &message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"]
}
