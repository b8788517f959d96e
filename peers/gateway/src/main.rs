//! Visits an MCP server over HTTP as a client of exactly one revision: opens, lists, calls one tool,
//! closes, and prints its findings as one line of JSON.
//!
//! Every message is checked against the official schema of the revision; an invalid message ends
//! the visit.
//!
//! `visit-gateway PLAN`, where the plan is JSON: see [`Plan`].

#![expect(
    clippy::indexing_slicing,
    reason = "a member that is missing from JSON is null"
)]

mod calling;

use std::io::{self, Write};

use anyhow::Context as _;
use plexus_mcp_protocol::{Era, Revision};
use plexus_testkit::Client;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use calling::Called;

/// One visit.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Plan {
    /// The endpoint: of Streamable HTTP in the stateless era, of HTTP+SSE before.
    url: String,
    revision: String,
    /// The client capabilities to declare.
    #[serde(default)]
    capabilities: Option<Value>,
    /// The params of the call to make.
    call: Option<Value>,
}

/// The methods of the lists, and the members with their entries.
const LISTS: [(&str, &str); 4] = [
    ("tools/list", "tools"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
    ("prompts/list", "prompts"),
];

/// The findings of a visit.
#[derive(Debug, Serialize)]
struct Findings {
    revision: Value,
    tools: usize,
    resources: usize,
    templates: usize,
    prompts: usize,
    /// The errors of lists that the server cannot make.
    list_errors: Vec<String>,
    called: Option<Called>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let plan = std::env::args()
        .nth(1)
        .context("usage: visit-gateway PLAN")?;
    let plan: Plan = serde_json::from_str(&plan).context("the plan cannot be read")?;

    let mut client = plan.client().await?;
    let greeting = client.open().await;
    let offered = &greeting["capabilities"];
    let revision = if client.is_stateless() {
        greeting["supportedVersions"].clone()
    } else {
        greeting["protocolVersion"].clone()
    };
    let mut list_errors = Vec::new();
    let mut counts = [0; 4];
    for (count, (method, member)) in counts.iter_mut().zip(LISTS) {
        match entries(&mut client, offered, method, member).await {
            Ok(entries) => *count = entries,
            Err(error) => list_errors.push(error),
        }
    }
    let [tools, resources, templates, prompts] = counts;
    let findings = Findings {
        revision,
        tools,
        resources,
        templates,
        prompts,
        list_errors,
        called: match plan.call {
            Some(params) => Some(calling::call(&mut client, params).await),
            None => None,
        },
    };
    client.close().await;

    let mut line = serde_json::to_vec(&findings)?;
    line.push(b'\n');
    io::stdout().write_all(&line)?;
    Ok(())
}

impl Plan {
    async fn client(&self) -> anyhow::Result<Client> {
        let revision: Revision = self.revision.parse().context("the plan's revision")?;
        let capabilities = self.capabilities.clone().unwrap_or_else(|| json!({}));
        Ok(match revision.era() {
            Era::Stateless => Client::http(&self.url, revision, capabilities),
            Era::Handshake => Client::sse(&self.url, revision, capabilities).await,
        })
    }
}

/// The number of entries on all pages of a list; 0 if the server does not declare the capability.
///
/// # Errors
/// The message of the error with which the server answers.
async fn entries(
    client: &mut Client,
    offered: &Value,
    method: &str,
    member: &str,
) -> Result<usize, String> {
    let capability = method.split('/').next().unwrap_or_default();
    if offered.get(capability).is_none() {
        return Ok(0);
    }
    let mut entries = 0;
    let mut params = json!({});
    loop {
        let id = client.begin(method, params).await;
        let response = client.response(&id).await;
        if let Some(message) = response["error"]["message"].as_str() {
            return Err(message.to_owned());
        }
        let page = &response["result"];
        entries += page[member].as_array().map_or(0, Vec::len);
        match &page["nextCursor"] {
            Value::Null => return Ok(entries),
            cursor => params = json!({ "cursor": cursor }),
        }
    }
}
