//! What was said between a client and a server, and whether the server was right to say it.

use std::collections::HashMap;

use plexus_mcp::Revision;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::schemas::Schemas;

/// Keeps track of requests, so that every answer can be checked as what it is.
#[derive(Debug)]
pub(crate) struct Transcript {
    /// What messages are taken to be in while nothing was agreed on: what was spoken last.
    assumed: Revision,
    agreed: Option<Revision>,
    /// Requests without an answer, by their ids. An id may be used twice.
    open: HashMap<String, Vec<Open>>,
}

#[derive(Debug)]
struct Open {
    method: Option<String>,
    revision: Option<Revision>,
}

/// The members of a message. Tests repeat members, which a struct would not forgive.
type Envelope<'a> = HashMap<String, &'a RawValue>;

/// As much of the params as says which revision a request is in.
#[derive(Deserialize)]
struct Params {
    #[serde(rename = "_meta")]
    meta: Option<Meta>,
}

#[derive(Deserialize)]
struct Meta {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    protocol_version: Option<Value>,
}

impl Transcript {
    pub(crate) fn new(assumed: Revision) -> Self {
        Self {
            assumed,
            agreed: None,
            open: HashMap::new(),
        }
    }

    /// Takes note of what the client sends, be it a message or not.
    pub(crate) fn sent(&mut self, raw: &[u8]) {
        if let Ok(batch) = serde_json::from_slice::<Vec<&RawValue>>(raw) {
            for message in batch {
                self.sent(message.get().as_bytes());
            }
            return;
        }
        let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(raw) else {
            return;
        };
        let Some(id) = envelope.get("id") else {
            return;
        };
        let params = envelope.get("params").map(|params| params.get());
        let params = params.and_then(|params| serde_json::from_str::<Params>(params).ok());
        let version = params
            .and_then(|params| params.meta)
            .and_then(|meta| meta.protocol_version);
        let stateless = version
            .filter(Value::is_string)
            .map(|_any| Revision::V2026_07_28);
        if let Some(revision) = stateless {
            self.assumed = revision;
        }
        let method = envelope.get("method").map(|method| method.get());
        let method = method.and_then(|method| serde_json::from_str::<String>(method).ok());
        self.open.entry(spelled(id)).or_default().push(Open {
            method,
            revision: stateless,
        });
    }

    /// Checks what the server sent, or fails.
    pub(crate) fn received(&mut self, raw: &[u8]) -> Value {
        let text = String::from_utf8_lossy(raw);
        let message: Value = serde_json::from_slice(raw)
            .unwrap_or_else(|error| panic!("the server sent no JSON ({error}): {text}"));
        if message.is_array() {
            assert!(
                self.spoken().features().batches,
                "{} has no batches: {text}",
                self.spoken()
            );
            let members = serde_json::from_slice::<Vec<&RawValue>>(raw).unwrap_or_default();
            for member in members {
                self.received(member.get().as_bytes());
            }
            return message;
        }
        let answered = self.answered(raw, &message);
        let revision = match &answered {
            Some(Open {
                revision: Some(revision),
                ..
            }) => *revision,
            Some(Open {
                method: Some(method),
                ..
            }) if method == "initialize" => self.agree(&message),
            _ if is_of_a_subscription(&message) => Revision::V2026_07_28,
            _ => self.spoken(),
        };
        let method = answered.and_then(|open| open.method);
        let checked = Schemas::get().check_server_message(revision, method.as_deref(), raw);
        checked.unwrap_or_else(|invalid| panic!("the server broke {invalid}"));
        message
    }

    /// The revision that messages are in which do not say otherwise.
    pub(crate) fn spoken(&self) -> Revision {
        self.agreed.unwrap_or(self.assumed)
    }

    /// The request that `message` answers; an answer that nobody waits for is a failure (BASE-05).
    fn answered(&mut self, raw: &[u8], message: &Value) -> Option<Open> {
        if message.get("method").is_some() {
            return None;
        }
        let envelope: Envelope<'_> = serde_json::from_slice(raw).ok()?;
        // `null` and no id say the same: that of the request is unknown.
        let id = envelope.get("id").filter(|id| id.get() != "null")?;
        let id = spelled(id);
        let open = self.open.get_mut(&id).filter(|open| !open.is_empty());
        let open = open.unwrap_or_else(|| panic!("this answers nothing that was asked: {message}"));
        Some(open.remove(0))
    }

    fn agree(&mut self, message: &Value) -> Revision {
        let Some(version) = message["result"]["protocolVersion"].as_str() else {
            return self.spoken();
        };
        let revision = version
            .parse()
            .unwrap_or_else(|error| panic!("the server wants to speak {version:?}: {error}"));
        self.agreed = Some(revision);
        revision
    }
}

/// An id in one spelling: numbers of any size as they are, strings without the choice of escapes.
fn spelled(id: &RawValue) -> String {
    match serde_json::from_str::<String>(id.get()) {
        Ok(string) => format!("{string:?}"),
        Err(_) => id.get().to_owned(),
    }
}

fn is_of_a_subscription(message: &Value) -> bool {
    let meta = &message["params"]["_meta"];
    meta.get("io.modelcontextprotocol/subscriptionId").is_some()
}
