//! Tells whether the server is alive, and for how long it has been.

use jiff::Timestamp;
use plexus_service::{Builder, Context, Json, ToolAnnotations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::names::Names;

/// Adds the tool `health.check`. The uptime it reports is counted from here.
pub fn health(builder: Builder, names: Names) -> Builder {
    let started = Instant::now();
    let tool = names
        .tool("health", "check")
        .title("Check health")
        .description("Reports that the server is healthy, since when it runs, and its time")
        .annotations(ToolAnnotations::new().read_only(true).open_world(false));
    builder.tool(tool, move |NoArguments {}, _: Context| async move {
        Json(Health {
            status: Status::Healthy,
            uptime_seconds: started.elapsed().as_secs(),
            timestamp: format!("{:.3}", Timestamp::now()),
        })
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoArguments {}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Health {
    /// Whether the server works.
    status: Status,
    /// For how many whole seconds it has been running.
    uptime_seconds: u64,
    /// The server's time, in UTC, as RFC 3339 writes it.
    #[schemars(extend("format" = "date-time"))]
    timestamp: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Status {
    Healthy,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;

    use crate::Names;
    use crate::testing::Caller;

    /// S003-04: `health` is there, and says what the documents say it says.
    #[tokio::test(start_paused = true)]
    async fn it_reports_status_uptime_and_time() {
        let caller = Caller::of(Names::Dotted);
        tokio::time::advance(Duration::from_millis(90_500)).await;
        let result = caller.call("health.check", "{}").await.unwrap();

        let health = &result["structuredContent"];
        assert_eq!(health["status"], "healthy");
        assert_eq!(health["uptime_seconds"], 90);
        let timestamp: Timestamp = health["timestamp"].as_str().unwrap().parse().unwrap();
        assert!(timestamp.duration_until(Timestamp::now()).abs().as_secs() < 60);
        assert_eq!(health.as_object().unwrap().len(), 3);
    }

    /// TOOL-08: clients that read only text get the same data.
    #[tokio::test]
    async fn the_text_is_the_same_data() {
        let result = Caller::of(Names::Dotted)
            .call("health.check", "{}")
            .await
            .unwrap();
        let text = result["content"][0]["text"].as_str().unwrap();
        let read: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(read, result["structuredContent"]);
    }
}
