//! The tool `health.check`: status, uptime, and the state of servers and databases.

use std::fmt;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use plexus_mcp_core::{Builder, Context, Json, ToolAnnotations};
use plexus_mcp_protocol::Revision;
use plexus_mcp_store::Store;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::names::Names;
use crate::notifying_store::timestamp_text;

/// Provides `health.check` with the state of the upstream servers. Cheap to clone.
#[derive(Clone, Default)]
pub struct Servers {
    report: Arc<OnceLock<Report>>,
}

type Report = Box<dyn Fn() -> Vec<ServerHealth> + Send + Sync>;

/// The state of one upstream server.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(
    clippy::exhaustive_structs,
    reason = "constructed by the caller of `Servers::report_by`"
)]
pub struct ServerHealth {
    /// Name of the server
    pub name: String,
    /// State of the connection
    pub state: String,
    /// Number of tools
    pub tools: u64,
    /// Why the server is not connected
    pub error: Option<String>,
}

impl Servers {
    /// Sets the function that reports the servers. It may be set after `health` was added; further
    /// calls are ignored.
    pub fn report_by(&self, report: impl Fn() -> Vec<ServerHealth> + Send + Sync + 'static) {
        drop(self.report.set(Box::new(report)));
    }

    fn report(&self) -> Vec<ServerHealth> {
        self.report.get().map(|report| report()).unwrap_or_default()
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Servers").finish_non_exhaustive()
    }
}

/// Adds the tool `health.check`. The uptime counts from this call. `activations` are the namespaces
/// that it reports; it checks `databases`.
pub fn health(
    builder: Builder,
    names: Names,
    activations: Vec<&'static str>,
    servers: &Servers,
    databases: &[Store],
) -> Builder {
    let started = Instant::now();
    let servers = servers.clone();
    let databases = databases.to_vec();
    let tool = names
        .tool("health", "check")
        .title("Check health")
        .description(
            "Reports whether the server is healthy, its uptime and time, the revisions of MCP that \
             it supports, the built-in services, the state of the upstream servers, and errors of \
             databases",
        )
        .annotations(ToolAnnotations::new().read_only(true).open_world(false));
    builder.tool(tool, move |NoArguments {}, _: Context| {
        let (activations, servers) = (activations.clone(), servers.report());
        let databases = databases.clone();
        async move {
            let problems = problems(&databases).await;
            Json(Health {
                status: if problems.is_empty() {
                    HealthStatus::Healthy
                } else {
                    HealthStatus::Degraded
                },
                uptime_seconds: started.elapsed().as_secs(),
                timestamp: timestamp_text(Timestamp::now()),
                revisions: Revision::ALL.map(Revision::as_str).to_vec(),
                activations,
                servers,
                problems,
            })
        }
    })
}

/// The errors of the databases that cannot be used.
async fn problems(databases: &[Store]) -> Vec<String> {
    let mut problems = Vec::new();
    for database in databases {
        if let Err(error) = database.check().await {
            problems.push(error.to_string());
        }
    }
    problems
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoArguments {}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Health {
    /// Whether everything works.
    status: HealthStatus,
    /// Uptime in whole seconds.
    uptime_seconds: u64,
    /// The server's time, in UTC, in RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    timestamp: String,
    /// The supported revisions of MCP, the oldest first.
    revisions: Vec<&'static str>,
    /// The namespaces of the built-in services.
    activations: Vec<&'static str>,
    /// The upstream servers.
    servers: Vec<ServerHealth>,
    /// Errors of databases, and what to do.
    problems: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum HealthStatus {
    Healthy,
    Degraded,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;

    use super::{ServerHealth, Servers};
    use crate::Names;
    use crate::testing::Caller;

    /// S003-04: `health.check` reports what the specification lists.
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
        assert_eq!(health["revisions"].as_array().unwrap().len(), 5);
        assert_eq!(health["revisions"][4], "2026-07-28");
        assert_eq!(health["activations"][0], "health");
        assert_eq!(health["servers"], serde_json::json!([]));
        assert_eq!(health["problems"], serde_json::json!([]));
        assert_eq!(health.as_object().unwrap().len(), 7);
    }

    /// The servers may be set after the service was built.
    #[tokio::test]
    async fn it_reports_the_servers_behind_it() {
        let servers = Servers::default();
        let caller = Caller::with(Names::Dotted, &servers);
        servers.report_by(|| {
            vec![ServerHealth {
                name: "git".to_owned(),
                state: "failed".to_owned(),
                tools: 0,
                error: Some("it is not there".to_owned()),
            }]
        });
        let result = caller.call("health.check", "{}").await.unwrap();
        let server = &result["structuredContent"]["servers"][0];
        assert_eq!([&server["name"], &server["state"]], ["git", "failed"]);
        assert_eq!(server["error"], "it is not there");
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
