//! The requests that the generator sends, prepared as bytes, and the checks of the responses.

use std::net::SocketAddr;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use memchr::memmem;
use plexus_mcp_protocol::Era;
use serde_json::{Map, Value, json};

use crate::http_response::BodyEnds;

/// All ids have the same length, so that a request is encoded once and only its id is replaced.
pub(crate) const FIRST_ID: u64 = 100_000_000;
const ID_DIGITS: usize = 9;
/// Up to this size, a message is written from one buffer, and its response is kept whole.
pub(crate) const MAX_SHORT_BYTES: usize = 64 * 1024;
/// The beginning of every body.
const BEFORE_ID: &str = r#"{"jsonrpc":"2.0","id":"#;

/// The sizes of echoed texts, in bytes. The largest leaves room for the rest of the message, since
/// servers accept 1 MiB by default.
pub(crate) const SIZES: [usize; 3] = [100, 10 * 1024, 1023 * 1024];

/// The requests of a measurement.
#[derive(Debug, Clone)]
pub(crate) enum Job {
    /// One of these tools echoes a text of `bytes` bytes.
    Echo {
        tools: Vec<String>,
        argument: String,
        bytes: usize,
        /// Whether the client asks for progress notifications, which some servers need to stream.
        with_progress: bool,
    },
    /// This tool of the server with many tools repeats a text of `bytes` bytes.
    Repeat {
        tool: String,
        bytes: usize,
        times: u8,
    },
    /// The pages of a list of tools are requested one after the other. Their lengths are known.
    List { pages: Vec<Page> },
}

impl Job {
    /// One request for each tool or page.
    pub(crate) fn requests(&self, era: Era) -> Vec<Request> {
        match self {
            Self::List { pages } => pages
                .iter()
                .map(|page| list(era, page.cursor.as_deref()))
                .collect(),
            Self::Repeat { tool, bytes, times } => {
                let arguments = json!({"message": text(*bytes), "times": times});
                let params = [("name", json!(tool)), ("arguments", arguments)];
                let params = params.map(|(name, value)| (name.to_owned(), value));
                vec![Request::new(era, "tools/call", Map::from_iter(params))]
            }
            Self::Echo {
                tools,
                argument,
                bytes,
                with_progress,
            } => tools
                .iter()
                .map(|tool| {
                    let mut params = Map::new();
                    if *with_progress {
                        params.insert("_meta".to_owned(), json!({"progressToken": 1}));
                    }
                    params.insert("name".to_owned(), json!(tool));
                    params.insert("arguments".to_owned(), json!({argument: text(*bytes)}));
                    Request::new(era, "tools/call", params)
                })
                .collect(),
        }
    }

    /// The length of the text in the response, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Echo { bytes, .. } => *bytes,
            Self::Repeat { bytes, times, .. } => bytes * usize::from(*times),
            Self::List { .. } => 0,
        }
    }

    /// Whether responses are so long that checking each as a whole would cost more than the server
    /// spends on it.
    pub(crate) fn is_long(&self) -> bool {
        self.bytes() > MAX_SHORT_BYTES
    }

    /// The check for the responses.
    pub(crate) fn check(&self, is_limit: bool) -> Check {
        let expected = match self {
            _ if is_limit => Expected::Same,
            Self::Echo { bytes, .. } => Expected::Text(text(*bytes)),
            Self::Repeat { bytes, times, .. } => {
                Expected::Text(text(*bytes).repeat(usize::from(*times)))
            }
            Self::List { pages } => Expected::Page(pages.iter().map(|page| page.length).collect()),
        };
        Check::new(expected)
    }
}

/// A page of a list.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    /// The cursor of the page; `None` for the first page.
    pub(crate) cursor: Option<String>,
    /// The length of the response, in bytes.
    pub(crate) length: usize,
}

/// A request for the page at `cursor`.
pub(crate) fn list(era: Era, cursor: Option<&str>) -> Request {
    let cursor = cursor.map(|cursor| ("cursor".to_owned(), json!(cursor)));
    Request::new(era, "tools/list", cursor.into_iter().collect())
}

/// The number of tools on a page, and the cursor of the next page.
pub(crate) fn read_page(answer: &[u8]) -> anyhow::Result<(usize, Option<String>)> {
    let answer: Value = serde_json::from_slice(answer).context("no JSON")?;
    let tools = answer.pointer("/result/tools").and_then(Value::as_array);
    let tools = tools.with_context(|| format!("no tools: {answer}"))?;
    let next = answer.pointer("/result/nextCursor").and_then(Value::as_str);
    Ok((tools.len(), next.map(str::to_owned)))
}

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

/// The expected response.
#[derive(Debug, Clone)]
enum Expected {
    /// The response to the request, with this text.
    Text(String),
    /// The response to the request, with one of these lengths.
    Page(Vec<usize>),
    /// The same bytes as the first response.
    Same,
    /// The request itself.
    Mirror,
}

/// Checks responses.
#[derive(Debug, Clone)]
pub(crate) struct Check {
    expected: Expected,
    /// The first correct response.
    first: Vec<u8>,
}

impl Check {
    fn new(expected: Expected) -> Self {
        Self {
            expected,
            first: Vec::new(),
        }
    }

    /// For programs that echo every message.
    pub(crate) fn mirror() -> Self {
        Self::new(Expected::Mirror)
    }

    /// Checks the response to request `number`.
    pub(crate) fn check(&mut self, number: u64, answer: &[u8]) -> anyhow::Result<()> {
        let right = match &self.expected {
            Expected::Same => !answer.is_empty() && (self.first.is_empty() || self.first == answer),
            Expected::Mirror => has_id(answer, number),
            Expected::Text(text) => {
                (has_id(answer, number) && has_text(answer, text))
                    || is_echo(answer, number, text).is_ok()
            }
            Expected::Page(lengths) => lengths.contains(&answer.len()) && has_id(answer, number),
        };
        ensure!(
            right,
            "a wrong answer to request {number}: {}",
            excerpt(answer)
        );
        if self.first.is_empty() {
            self.first.extend_from_slice(answer);
        }
        Ok(())
    }

    /// Like `check`, for a long response of which only the ends are known. Since all ids have the
    /// same length, its length must be that of the first response, which was checked as a whole.
    pub(crate) fn check_ends(&self, number: u64, answer: BodyEnds<'_>) -> anyhow::Result<()> {
        let BodyEnds { start, end, length } = answer;
        let right = match &self.expected {
            Expected::Same => self.first.starts_with(start) && self.first.ends_with(end),
            _ => has_id(start, number) || has_id(end, number),
        };
        ensure!(
            right && length == self.first.len(),
            "a wrong answer to request {number}, of {length} bytes: {}",
            excerpt(start)
        );
        Ok(())
    }
}

/// A response with a text of `bytes` bytes, for servers with fixed responses.
pub(crate) fn fixed_answer(bytes: usize) -> String {
    let text = text(bytes);
    format!(
        r#"{BEFORE_ID}{FIRST_ID},"result":{{"content":[{{"type":"text","text":"{text}"}}],"isError":false}}}}"#
    )
}

/// A text of this length without characters that JSON escapes.
fn text(bytes: usize) -> String {
    "The quick brown fox jumps over the lazy dog, again and again. "
        .chars()
        .cycle()
        .take(bytes)
        .collect()
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

/// The number of the request that a message answers, if its id is near one of its ends.
pub(crate) fn answered(message: &[u8]) -> Option<u64> {
    // Most servers write the members in this order; other responses are searched.
    let digits = message
        .strip_prefix(BEFORE_ID.as_bytes())
        .and_then(|rest| rest.get(..ID_DIGITS));
    if let Some(number) = digits.and_then(number) {
        return Some(number);
    }
    let near = 200.min(message.len());
    let parts = [message.get(..near), message.get(message.len() - near..)];
    parts.into_iter().flatten().find_map(|part| {
        let key = br#""id":"#;
        let at = memmem::find(part, key)? + key.len();
        number(part.get(at..)?.trim_ascii_start().get(..ID_DIGITS)?)
    })
}

fn number(digits: &[u8]) -> Option<u64> {
    let mut id = 0;
    for digit in digits {
        let value = digit.checked_sub(b'0').filter(|value| *value < 10)?;
        id = id * 10 + u64::from(value);
    }
    id.checked_sub(FIRST_ID)
}

fn has_id(answer: &[u8], number: u64) -> bool {
    let leading = answer
        .strip_prefix(BEFORE_ID.as_bytes())
        .and_then(|rest| rest.get(..ID_DIGITS));
    if leading.is_some_and(|digits| digits == id(number)) {
        return true;
    }
    // The id is near the beginning or near the end, and long texts are not searched for it.
    let near = 200.min(answer.len());
    let id = id(number);
    let has = |part: &[u8]| memmem::find(part, &id).is_some();
    has(answer.get(..near).unwrap_or_default())
        || has(answer.get(answer.len() - near..).unwrap_or_default())
}

fn has_text(answer: &[u8], text: &str) -> bool {
    let key = br#""text":""#;
    memmem::find(answer, key).is_some_and(|at| {
        let rest = answer.get(at + key.len()..).unwrap_or_default();
        rest.starts_with(text.as_bytes()) && rest.get(text.len()) == Some(&b'"')
    })
}

/// Decodes the response, for servers that write JSON with spaces.
fn is_echo(answer: &[u8], number: u64, text: &str) -> anyhow::Result<()> {
    let answer: Value = serde_json::from_slice(answer)?;
    ensure!(answer.get("id") == Some(&json!(FIRST_ID + number)));
    ensure!(answer.pointer("/result/content/0/text") == Some(&json!(text)));
    Ok(())
}

fn excerpt(answer: &[u8]) -> String {
    let text = String::from_utf8_lossy(answer);
    text.chars().take(400).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn echo(bytes: usize) -> Job {
        Job::Echo {
            tools: vec!["say".to_owned()],
            argument: "message".to_owned(),
            bytes,
            with_progress: false,
        }
    }

    fn body(prepared: &Prepared) -> Value {
        let text = String::from_utf8(prepared.bytes.clone()).unwrap();
        let body = text
            .split_once("\r\n\r\n")
            .map_or(text.as_str(), |parts| parts.1);
        serde_json::from_str(body).unwrap()
    }

    #[test]
    fn a_request_says_the_same_in_headers_and_body() {
        let address = "127.0.0.1:80".parse().unwrap();
        let requests = echo(10).requests(Era::Stateless);
        let mut post = requests[0].post(address, "/mcp", "2026-07-28", None);
        post.number(42);
        let text = String::from_utf8(post.bytes.clone()).unwrap();
        assert!(
            text.contains("Mcp-Method: tools/call\r\nMcp-Name: say\r\n"),
            "{text}"
        );
        let body = body(&post);
        assert_eq!(body["id"], json!(100_000_042));
        assert_eq!(body["params"]["arguments"]["message"], json!("The quick "));
        let version = &body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
        assert_eq!(version, "2026-07-28");
    }

    #[test]
    fn a_line_is_a_message_of_the_session() {
        let mut line = echo(10).requests(Era::Handshake)[0].line();
        line.number(7);
        assert_eq!(line.bytes.last(), Some(&b'\n'));
        let body = body(&line);
        assert_eq!(body["id"], json!(100_000_007));
        assert_eq!(body["params"].get("_meta"), None);
    }

    #[test]
    fn answers_to_other_requests_and_other_texts_are_wrong() {
        let mut check = echo(5).check(false);
        let answer = |id: u64, text: &str| {
            json!({"id": id, "result": {"content": [{"text": text}]}}).to_string()
        };
        check
            .check(1, answer(100_000_001, "The q").as_bytes())
            .unwrap();
        let spaced = answer(100_000_001, "The q").replace(':', ": ");
        check.check(1, spaced.as_bytes()).unwrap();
        check
            .check(2, answer(100_000_001, "The q").as_bytes())
            .unwrap_err();
        check
            .check(1, answer(100_000_001, "The q…").as_bytes())
            .unwrap_err();
        let error = r#"{"id":100000001,"error":{"code":-32603,"message":"The q"}}"#;
        check.check(1, error.as_bytes()).unwrap_err();
    }

    #[test]
    fn a_long_answer_is_known_by_its_ends_and_its_length() {
        let mut check = echo(2000).check(false);
        let answer =
            |id: u64| json!({"id": id, "result": {"content": [{"text": text(2000)}]}}).to_string();
        let first = answer(100_000_001);
        check.check(1, first.as_bytes()).unwrap();
        let ends = |answer: &str, number, length| {
            let start = &answer.as_bytes()[..100];
            let end = &answer.as_bytes()[answer.len() - 100..];
            check.check_ends(number, BodyEnds { start, end, length })
        };
        ends(&answer(100_000_002), 2, first.len()).unwrap();
        ends(&answer(100_000_002), 3, first.len()).unwrap_err();
        ends(&answer(100_000_002), 2, first.len() - 1).unwrap_err();
    }

    #[test]
    fn pages_are_known_by_their_lengths() {
        let page = |id: u64, tools: &Value, next: Option<&str>| {
            json!({"id": id, "result": {"tools": tools, "nextCursor": next}}).to_string()
        };
        let first = page(
            100_000_000,
            &json!([{"name": "a"}, {"name": "b"}]),
            Some("c"),
        );
        assert_eq!(
            read_page(first.as_bytes()).unwrap(),
            (2, Some("c".to_owned()))
        );
        let pages = vec![Page {
            cursor: None,
            length: first.len(),
        }];
        let mut check = Job::List { pages }.check(false);
        check.check(0, first.as_bytes()).unwrap();
        check.check(1, first.as_bytes()).unwrap_err();
        let shorter = page(100_000_000, &json!([{"name": "a"}]), None);
        check.check(0, shorter.as_bytes()).unwrap_err();
        assert_eq!(read_page(shorter.as_bytes()).unwrap(), (1, None));
        read_page(br#"{"id":1,"error":{}}"#).unwrap_err();
    }
}
