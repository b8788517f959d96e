//! The responses of a well-behaved server.

use plexus_mcp_protocol::{Era, Revision};
use serde_json::{Value, json};

/// The features that a server offers, and its revision.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Offer {
    /// The only revision that it supports.
    pub revision: Revision,
    /// Its capabilities.
    pub capabilities: Value,
    /// Its instructions.
    pub instructions: Option<String>,
    /// Its tools.
    pub tools: Vec<Value>,
    /// Its resources.
    pub resources: Vec<Value>,
    /// Its resource templates.
    pub templates: Vec<Value>,
    /// Its prompts.
    pub prompts: Vec<Value>,
}

impl Offer {
    /// The methods that such a server answers.
    pub(super) const METHODS: [&'static str; 6] = [
        "server/discover",
        "initialize",
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "prompts/list",
    ];

    /// A server without capabilities.
    pub fn new(revision: Revision) -> Self {
        Self {
            revision,
            capabilities: json!({}),
            instructions: None,
            tools: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            prompts: Vec::new(),
        }
    }

    /// A server with these tools and the capability `listChanged`.
    pub fn tools(revision: Revision, tools: impl IntoIterator<Item = Value>) -> Self {
        let mut offer = Self::new(revision).declaring("tools", json!({"listChanged": true}));
        offer.tools.extend(tools);
        offer
    }

    /// Declares a further capability.
    #[must_use]
    pub fn declaring(mut self, capability: &str, details: Value) -> Self {
        self.capabilities[capability] = details;
        self
    }

    /// The answer to a request: a result, or an error object.
    pub fn answer(&self, method: &str) -> Result<Value, Value> {
        let stateless = self.revision.era() == Era::Stateless;
        let list = |member: &str, entries: &[Value]| {
            let mut result = json!({member: entries});
            if stateless {
                result["resultType"] = json!("complete");
                result["ttlMs"] = json!(0);
                result["cacheScope"] = json!("private");
            }
            result
        };
        match method {
            "initialize" if !stateless => Ok(self.initialized()),
            "server/discover" if stateless => Ok(self.discovered()),
            "tools/list" => Ok(list("tools", &self.tools)),
            "resources/list" => Ok(list("resources", &self.resources)),
            "resources/templates/list" => Ok(list("resourceTemplates", &self.templates)),
            "prompts/list" => Ok(list("prompts", &self.prompts)),
            _ => Err(json!({"code": -32601, "message": format!("method not found: {method}")})),
        }
    }

    /// The result of `initialize`.
    pub fn initialized(&self) -> Value {
        let mut result = json!({
            "protocolVersion": self.revision.as_str(),
            "capabilities": self.capabilities,
            "serverInfo": {"name": "scripted", "version": "1"},
        });
        if let Some(instructions) = &self.instructions {
            result["instructions"] = json!(instructions);
        }
        result
    }

    /// The result of `server/discover`.
    pub fn discovered(&self) -> Value {
        let mut result = json!({
            "resultType": "complete",
            "supportedVersions": [self.revision.as_str()],
            "capabilities": self.capabilities,
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "scripted", "version": "1"}},
        });
        if let Some(instructions) = &self.instructions {
            result["instructions"] = json!(instructions);
        }
        result
    }
}

/// A tool that accepts any arguments.
pub fn tool(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}
