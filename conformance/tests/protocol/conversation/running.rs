//! Running calls: progress, log messages, cancellation.

use plexus_mcp_protocol::Revision;
use plexus_testkit::{Client, within};
use serde_json::{Value, json};

use crate::support::{text, with_method};

every_client!(reports_progress_only_with_a_progress_token);
every_client!(streams_content_as_progress);
every_client!(logs_at_the_level_asked_for);
every_client!(cancels);

const PROGRESS: &str = "notifications/progress";
const LOG: &str = "notifications/message";

/// S003-45, PROG-01, PROG-02, PROG-04, PROG-05, C18, C19.
async fn reports_progress_only_with_a_progress_token(client: &mut Client, _: &Value) {
    let call =
        |meta: Value| json!({"name": "test_tool_with_progress", "arguments": {}, "_meta": meta});
    for token in [json!("token"), json!(7), json!("7")] {
        let params = call(json!({"progressToken": token}));
        let exchange = client.exchange("tools/call", params).await;
        let reports = with_method(&exchange.before, PROGRESS);
        let values: Vec<_> = reports
            .iter()
            .map(|report| report["params"]["progress"].as_f64().unwrap())
            .collect();
        assert_eq!(values, [0.0, 50.0, 100.0]);
        for report in reports {
            assert_eq!(report["params"]["progressToken"], token);
            assert_eq!(report["params"]["total"].as_f64(), Some(100.0));
            let has_message = report["params"].get("message").is_some();
            assert_eq!(has_message, client.revision() > Revision::V2024_11_05);
        }
    }
    let exchange = client.exchange("tools/call", call(json!({}))).await;
    assert_eq!(with_method(&exchange.before, PROGRESS), [] as [&Value; 0]);
}

/// S003-02, S003-46: streamed text is sent as progress, and is also in the result.
async fn streams_content_as_progress(client: &mut Client, _: &Value) {
    let params =
        json!({"name": "test_streaming", "arguments": {}, "_meta": {"progressToken": "t"}});
    let exchange = client.exchange("tools/call", params).await;
    let reports = with_method(&exchange.before, PROGRESS);
    let values: Vec<_> = reports
        .iter()
        .map(|report| report["params"]["progress"].as_f64().unwrap())
        .collect();
    assert!(values.is_sorted_by(|a, b| a < b), "{values:?}");
    if client.revision() > Revision::V2024_11_05 {
        let pieces = reports.iter();
        let streamed: String = pieces
            .filter_map(|report| report["params"]["message"].as_str())
            .collect();
        assert_eq!(streamed, "Hello world");
    }
    assert_eq!(text(&exchange.response["result"]), "Hello world");
}

/// S003-55, LOG-02, LOG-03, C42.
async fn logs_at_the_level_asked_for(client: &mut Client, _: &Value) {
    for (level, wanted) in [("debug", 8), ("warning", 5), ("emergency", 1)] {
        let mut params = json!({"name": "test_logging_tool", "arguments": {}});
        if client.is_stateless() {
            params["_meta"] = json!({"io.modelcontextprotocol/logLevel": level});
        } else {
            let set = client.result("logging/setLevel", json!({"level": level}));
            assert_eq!(set.await, json!({}));
        }
        let exchange = client.exchange("tools/call", params).await;
        let logged = with_method(&exchange.before, LOG);
        assert_eq!(logged.len(), wanted, "{level}: {logged:?}");
        assert_eq!(logged[wanted - 1]["params"]["level"], "emergency");
        assert_eq!(logged[0]["params"]["logger"], "test_logging_tool");
    }
    let silent = json!({"name": "test_logging_tool", "arguments": {}});
    if client.is_stateless() {
        let exchange = client.exchange("tools/call", silent.clone()).await;
        assert_eq!(with_method(&exchange.before, LOG), [] as [&Value; 0]);
    }
    let error = if client.is_stateless() {
        let mut params = silent;
        params["_meta"] = json!({"io.modelcontextprotocol/logLevel": "loud"});
        client.error("tools/call", params).await
    } else {
        client
            .error("logging/setLevel", json!({"level": "loud"}))
            .await
    };
    assert_eq!(error["code"], -32602);
}

/// S003-27, S003-55, C08, CAN-03, S002-24, S002-26, STDIO-11, HTTP26-15, HTTP26-16: the tool stops,
/// and the call gets no result. `converse` checks the latter when it closes the client.
async fn cancels(client: &mut Client, _: &Value) {
    let params = json!({"name": "test_wait_for_cancel", "arguments": {},
        "_meta": {"progressToken": "running"}});
    let id = client.begin("tools/call", params).await;
    client.expect_method(PROGRESS).await;
    let count = client.call("test_cancelled_count", json!({})).await;
    assert_eq!(text(&count), "0");

    client.cancel(&id).await;
    within("the work to stop", async {
        loop {
            let count = client.call("test_cancelled_count", json!({})).await;
            if text(&count) == "1" {
                return;
            }
        }
    })
    .await;
    let result = client.call("test_simple_text", json!({})).await;
    assert_eq!(text(&result), "This is a simple text response for testing.");
}
