//! The transcript of a conversation between a client and a server, with checks of the server's
//! messages.

use std::collections::HashMap;

use plexus_mcp_protocol::Revision;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::schemas::Schemas;

/// Tracks pending requests, so that every response can be checked against the schema of its method.
#[derive(Debug)]
pub(crate) struct Transcript {
    /// The revision of messages before one is negotiated: that of the last message.
    assumed: Revision,
    agreed: Option<Revision>,
    /// Requests without a response, by their ids. An id may be used twice.
    open: HashMap<String, Vec<PendingRequest>>,
}

#[derive(Debug)]
struct PendingRequest {
    method: Option<String>,
    revision: Option<Revision>,
}

/// The members of a message. Some tests repeat members, which a struct would not accept.
type Envelope<'a> = HashMap<String, &'a RawValue>;

/// The part of the params with the revision of a request.
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

    /// Records a line of the client. It may be an invalid message.
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
        // The id of a result is that of a server's request, which may equal the id of a request of
        // the client.
        let has = |member| envelope.contains_key(member);
        if has("result") && !has("error") && !has("method") {
            return;
        }
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
        self.open
            .entry(canonical_id(id))
            .or_default()
            .push(PendingRequest {
                method,
                revision: stateless,
            });
    }

    /// Checks a message of the server; panics if it is invalid.
    pub(crate) fn received(&mut self, raw: &[u8]) -> Value {
        let text = String::from_utf8_lossy(raw);
        let message: Value = serde_json::from_slice(raw)
            .unwrap_or_else(|error| panic!("the server sent no JSON ({error}): {text}"));
        if message.is_array() {
            assert!(
                self.current_revision().features().batches,
                "{} has no batches: {text}",
                self.current_revision()
            );
            let members = serde_json::from_slice::<Vec<&RawValue>>(raw).unwrap_or_default();
            for member in members {
                self.received(member.get().as_bytes());
            }
            return message;
        }
        let answered = self.answered(raw, &message);
        let revision = match &answered {
            Some(PendingRequest {
                revision: Some(revision),
                ..
            }) => *revision,
            Some(PendingRequest {
                method: Some(method),
                ..
            }) if method == "initialize" => self.agree(&message),
            _ if is_subscription_message(&message) => Revision::V2026_07_28,
            _ => self.current_revision(),
        };
        let method = answered.and_then(|open| open.method);
        let checked = Schemas::get().check_server_message(revision, method.as_deref(), raw);
        checked.unwrap_or_else(|invalid| panic!("the server broke {invalid}"));
        message
    }

    /// The revision of messages that do not name one.
    pub(crate) fn current_revision(&self) -> Revision {
        self.agreed.unwrap_or(self.assumed)
    }

    /// The request that `message` answers; a response without a pending request is a failure
    /// (BASE-05).
    fn answered(&mut self, raw: &[u8], message: &Value) -> Option<PendingRequest> {
        if message.get("method").is_some() {
            return None;
        }
        let envelope: Envelope<'_> = serde_json::from_slice(raw).ok()?;
        // `null` and a missing id mean the same: the id of the request is unknown.
        let id = envelope.get("id").filter(|id| id.get() != "null")?;
        let id = canonical_id(id);
        let open = self.open.get_mut(&id).filter(|open| !open.is_empty());
        let open = open.unwrap_or_else(|| panic!("this answers nothing that was asked: {message}"));
        Some(open.remove(0))
    }

    fn agree(&mut self, message: &Value) -> Revision {
        let Some(version) = message["result"]["protocolVersion"].as_str() else {
            return self.current_revision();
        };
        let revision = version
            .parse()
            .unwrap_or_else(|error| panic!("the server wants to speak {version:?}: {error}"));
        self.agreed = Some(revision);
        revision
    }
}

/// A canonical text of an id: numbers unchanged, strings without escapes.
fn canonical_id(id: &RawValue) -> String {
    match serde_json::from_str::<String>(id.get()) {
        Ok(string) => format!("{string:?}"),
        Err(_) => id.get().to_owned(),
    }
}

fn is_subscription_message(message: &Value) -> bool {
    let meta = &message["params"]["_meta"];
    meta.get("io.modelcontextprotocol/subscriptionId").is_some()
}
