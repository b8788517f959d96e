//! A client of the gateway: one connection, one request at a time.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use tokio::time::Instant;

/// How long an answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);

/// A connection to the gateway, with a session of 2025-11-25.
#[derive(Debug)]
pub(super) struct Client {
    connection: Connection,
    pub(super) session: String,
}

/// A connection that is kept open.
#[derive(Debug)]
pub(super) struct Connection {
    address: SocketAddr,
    stream: BufReader<TcpStream>,
    /// The number of requests so far, for their ids.
    requests: u64,
}

/// An HTTP response.
#[derive(Debug)]
pub(super) struct HttpAnswer {
    session: Option<String>,
    body: Vec<u8>,
}

impl Client {
    /// Opens a connection and a session, for a client of this name.
    pub(super) fn open(address: SocketAddr, name: &str) -> anyhow::Result<Self> {
        let mut connection = Connection::open(address)?;
        let session = connection.open_session(name)?;
        Ok(Self {
            connection,
            session,
        })
    }

    /// Sends a request, and returns its result.
    pub(super) fn request(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        self.connection.request(&self.session, method, params)
    }

    /// Calls a tool, and returns its result.
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<Value> {
        let params = json!({"name": tool, "arguments": arguments});
        let result = self.request("tools/call", &params)?;
        let is_error = result.get("isError").and_then(Value::as_bool);
        ensure!(is_error != Some(true), "{tool} failed: {result}");
        Ok(result)
    }

    /// The median time of a call in microseconds, of so many calls with these arguments.
    pub(super) fn time_calls(
        &mut self,
        calls: u32,
        mut call: impl FnMut(u32) -> (String, Value),
    ) -> anyhow::Result<f64> {
        let mut times = Vec::new();
        for number in 0..calls {
            let (tool, arguments) = call(number);
            let began = Instant::now();
            self.call(&tool, &arguments)?;
            times.push(micros(began.elapsed()));
        }
        median(times)
    }

    /// The number of tools of the servers `up0` and so on, on all pages.
    pub(super) fn count_tools(&mut self) -> anyhow::Result<u32> {
        let mut count = 0;
        let mut cursor = None;
        loop {
            let params = match &cursor {
                Some(cursor) => json!({"cursor": cursor}),
                None => json!({}),
            };
            // The tools are counted and not parsed: parsing would take longer than listing.
            let session = Some(self.session.as_str());
            let answer = self.connection.ask(session, "tools/list", &params)?;
            let tools = memchr::memmem::find_iter(&answer.body, br#""name":"up"#);
            count += u32::try_from(tools.count())?;
            cursor = next_cursor(&answer.body)?;
            if cursor.is_none() {
                return Ok(count);
            }
        }
    }
}

impl Connection {
    pub(super) fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).context("cannot connect")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        Ok(Self {
            address,
            stream: BufReader::new(stream),
            requests: 0,
        })
    }

    /// Opens a session, and returns its id.
    pub(super) fn open_session(&mut self, name: &str) -> anyhow::Result<String> {
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": name, "version": "1"},
        });
        let answer = self.ask(None, "initialize", &params)?;
        let session = answer.session.context("no session id")?;
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        self.send(Some(&session), initialized)?;
        self.receive()?;
        Ok(session)
    }

    pub(super) fn request(
        &mut self,
        session: &str,
        method: &str,
        params: &Value,
    ) -> anyhow::Result<Value> {
        let answer = self.ask(Some(session), method, params)?;
        let mut answer: Value = serde_json::from_slice(&answer.body).context("no JSON")?;
        match answer.get_mut("result") {
            Some(result) => Ok(result.take()),
            None => bail!("{method} failed: {answer}"),
        }
    }

    fn ask(
        &mut self,
        session: Option<&str>,
        method: &str,
        params: &Value,
    ) -> anyhow::Result<HttpAnswer> {
        self.requests += 1;
        self.send(session, &message(self.requests, method, params))?;
        self.receive()
    }

    /// Sends a message without waiting for the answer.
    pub(super) fn send(&mut self, session: Option<&str>, body: &str) -> anyhow::Result<()> {
        let session = session.map_or(String::new(), |session| {
            format!("MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {session}\r\n")
        });
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json\r\n{session}Content-Length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        let mut request = head.into_bytes();
        request.extend_from_slice(body.as_bytes());
        self.stream.get_mut().write_all(&request)?;
        Ok(())
    }

    /// Receives the next answer.
    pub(super) fn receive(&mut self) -> anyhow::Result<HttpAnswer> {
        let status = self.line()?;
        let mut length = 0;
        let mut session = None;
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(": ") else {
                break;
            };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse()?,
                "mcp-session-id" => session = Some(value.to_owned()),
                "transfer-encoding" => bail!("an answer of unknown length"),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        let is_success = status
            .split(' ')
            .nth(1)
            .is_some_and(|code| code.starts_with('2'));
        ensure!(is_success, "{status}: {}", String::from_utf8_lossy(&body));
        Ok(HttpAnswer { session, body })
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        ensure!(!line.is_empty(), "the connection was closed");
        Ok(line.trim_end().to_owned())
    }
}

/// A request. No two requests of a session have the same id.
pub(super) fn message(id: u64, method: &str, params: &Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

/// The cursor in a page of a list.
fn next_cursor(page: &[u8]) -> anyhow::Result<Option<String>> {
    #[derive(serde::Deserialize)]
    struct Answer {
        result: Page,
    }
    #[derive(serde::Deserialize)]
    struct Page {
        #[serde(rename = "nextCursor")]
        next_cursor: Option<String>,
    }
    let answer: Answer = serde_json::from_slice(page).context("no page of a list")?;
    Ok(answer.result.next_cursor)
}

pub(super) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// The median of some figures.
pub(super) fn median(mut figures: Vec<f64>) -> anyhow::Result<f64> {
    figures.sort_unstable_by(f64::total_cmp);
    let middle = figures.get(figures.len() / 2);
    middle.copied().context("nothing was measured")
}
