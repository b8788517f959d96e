//! The requests that the generator sends, prepared as bytes, and the checks of the responses.

mod check;
mod job;

use std::net::SocketAddr;

use bytes::Bytes;
use plexus_mcp_protocol::Era;
use serde_json::{Map, Value, json};

pub(crate) use check::{Check, answered, excerpt, fixed_answer, fixed_progress};
pub(crate) use job::{Call, Job, Page, SIZES, TOOL, list, read_page};

/// All ids have the same length, so that a request is encoded once and only its id is replaced.
pub(crate) const FIRST_ID: u64 = 100_000_000;
const ID_DIGITS: usize = 9;
/// Up to this size, a message is written from one buffer, and its response is kept whole.
pub(crate) const MAX_SHORT_BYTES: usize = 64 * 1024;
/// The beginning of every body.
const BEFORE_ID: &str = r#"{"jsonrpc":"2.0","id":"#;

/// A message of the client, with the data for its HTTP headers.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    era: Era,
    method: &'static str,
    name: Option<String>,
    body: Bytes,
}

impl Request {
    pub(crate) fn new(era: Era, method: &'static str, mut params: Map<String, Value>) -> Self {
        let name = params.get("name").and_then(Value::as_str);
        let name = name.map(str::to_owned);
        if era == Era::Stateless {
            let meta = params.entry("_meta").or_insert_with(|| json!({}));
            if let Some(meta) = meta.as_object_mut() {
                meta.extend(stateless_meta());
            }
        }
        let params = Value::Object(params);
        let body = format!(r#"{BEFORE_ID}{FIRST_ID},"method":"{method}","params":{params}}}"#);
        Self {
            era,
            method,
            name,
            body: body.into(),
        }
    }

    /// The `initialize` request of a session, with this revision.
    pub(crate) fn initialize(revision: &str) -> Self {
        let params = json!({
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": client_info(),
        });
        let params = params.as_object().cloned().unwrap_or_default();
        Self::new(Era::Handshake, "initialize", params)
    }

    /// The notification after the response to `initialize`.
    pub(crate) fn initialized() -> Self {
        Self {
            era: Era::Handshake,
            method: "notifications/initialized",
            name: None,
            body: br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#
                .as_slice()
                .into(),
        }
    }

    /// Encodes the request as a line for stdio.
    pub(crate) fn line(&self) -> Prepared {
        let mut bytes = self.body.to_vec();
        bytes.push(b'\n');
        Prepared {
            bytes,
            shared: Bytes::new(),
            id_at: BEFORE_ID.len(),
        }
    }

    pub(crate) fn era(&self) -> Era {
        self.era
    }

    /// Encodes the request as an HTTP POST.
    pub(crate) fn post(
        &self,
        address: SocketAddr,
        path: &str,
        revision: &str,
        session: Option<&str>,
    ) -> Prepared {
        let mut headers = Vec::new();
        if self.method != "initialize" {
            headers.push(("MCP-Protocol-Version", revision));
        }
        headers.extend(session.map(|session| ("Mcp-Session-Id", session)));
        if self.era == Era::Stateless {
            headers.push(("Mcp-Method", self.method));
            headers.extend(self.name.as_deref().map(|name| ("Mcp-Name", name)));
        }
        let headers: String = headers
            .into_iter()
            .flat_map(|(name, value)| [name, ": ", value, "\r\n"])
            .collect();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n",
            self.body.len()
        );
        let id_at = head.len() + BEFORE_ID.len();
        let mut bytes = head.into_bytes();
        let mut own = self.body.clone();
        let shared = if own.len() > MAX_SHORT_BYTES {
            own.split_off(BEFORE_ID.len() + ID_DIGITS)
        } else {
            Bytes::new()
        };
        bytes.extend_from_slice(&own);
        Prepared {
            bytes,
            shared,
            id_at,
        }
    }
}

/// The bytes of a request, in which only the id changes.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) bytes: Vec<u8>,
    /// The rest of the request, which all connections share, so that it stays in the CPU cache.
    pub(crate) shared: Bytes,
    id_at: usize,
}

impl Prepared {
    /// All bytes in one buffer, for requests that are not measured.
    pub(crate) fn whole(&self) -> Vec<u8> {
        [&self.bytes[..], &self.shared].concat()
    }

    /// Sets the id of the request.
    pub(crate) fn number(&mut self, number: u64) {
        let id = id(number);
        let place = self.bytes.get_mut(self.id_at..self.id_at + ID_DIGITS);
        if let Some(place) = place {
            place.copy_from_slice(&id);
        }
    }
}

fn client_info() -> Value {
    json!({"name": "plexus-bench", "version": env!("CARGO_PKG_VERSION")})
}

fn stateless_meta() -> Map<String, Value> {
    let key = |name| format!("io.modelcontextprotocol/{name}");
    Map::from_iter([
        (
            key("protocolVersion"),
            json!(Era::Stateless.newest_revision().as_str()),
        ),
        (key("clientCapabilities"), json!({})),
        (key("clientInfo"), client_info()),
    ])
}

fn id(number: u64) -> [u8; ID_DIGITS] {
    let mut digits = [b'0'; ID_DIGITS];
    let mut rest = FIRST_ID + number % FIRST_ID;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
    }
    digits
}

#[cfg(test)]
mod tests;
