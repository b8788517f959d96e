//! Closed-loop load over keep-alive connections.

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use mio::{Events, Interest, Poll, Token};
use plexus_mcp_protocol::Era;
use tokio::time::Instant;

use super::{Load, LoadResult, READY_TIMEOUT, RESPONSE_TIMEOUT, Window};
use crate::http_response::HttpResponse;
use crate::message::{Check, Job, Page, Prepared, Request, excerpt, list, read_page};
use crate::process::pause;

/// Size of the read buffer: small enough to stay in the CPU cache.
const READ_BUFFER_BYTES: usize = 64 * 1024;

/// Of long responses, one in this many is checked as a whole.
const FULL_CHECK_INTERVAL: u64 = 16;

/// The server under load.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    pub(crate) path: String,
    pub(crate) era: Era,
    /// The revision of the handshake era that it uses.
    pub(crate) handshake: &'static str,
    /// Whether it must answer with event streams or must not; `None` if both are accepted.
    pub(crate) streams: Option<bool>,
    /// Whether clients open a session, if the era has sessions.
    pub(crate) has_sessions: bool,
    /// Whether it sends fixed responses.
    pub(crate) is_fixed: bool,
    /// The process whose CPU time is measured.
    pub(crate) process: u32,
}

impl Target {
    fn post(&self, request: &Request, session: Option<&Session>) -> Prepared {
        let revision = match request.era() {
            Era::Handshake => self.handshake,
            Era::Stateless => Era::Stateless.newest_revision().as_str(),
        };
        let id = session.and_then(|session| session.id.as_deref());
        request.post(self.address, &self.path, revision, id)
    }
}

/// Sends the job's requests over `load.concurrency` connections, each with its own session if the
/// era has sessions.
pub(crate) fn run(target: &Target, job: &Job, load: Load) -> anyhow::Result<LoadResult> {
    // Connections are opened last: some servers close those that are idle for a few seconds.
    let sessions = (0..load.concurrency)
        .map(|_| open_session(target))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let requests = job.requests(target.era);
    let mut connections = sessions
        .into_iter()
        .map(|session| Connection::open(target, session, &requests))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let mut poll = Poll::new()?;
    for (token, connection) in connections.iter_mut().enumerate() {
        let interest = Interest::READABLE | Interest::WRITABLE;
        poll.registry()
            .register(&mut connection.stream, Token(token), interest)?;
    }

    let mut events = Events::with_capacity(load.concurrency);
    let mut check = job.check(target.is_fixed);
    let mut scratch = vec![0; READ_BUFFER_BYTES];
    let is_long = job.is_long();
    let mut numbers = 0..;
    let mut window = Window::begin(load, target.process)?;
    for connection in &mut connections {
        connection.send_next(numbers.next().unwrap_or(0), Instant::now())?;
    }
    let mut measured = None;
    let mut in_flight = load.concurrency;
    while in_flight > 0 {
        poll.poll(&mut events, Some(RESPONSE_TIMEOUT))?;
        ensure!(!events.is_empty(), "no answer within {RESPONSE_TIMEOUT:?}");
        for event in &events {
            let Some(connection) = connections.get_mut(event.token().0) else {
                continue;
            };
            if event.is_writable() {
                connection.flush()?;
            }
            if !event.is_readable() || !connection.receive(&mut scratch, &mut check)? {
                continue;
            }
            if let Some(streams) = target.streams {
                let is_stream = connection.answer.is_stream();
                let message = connection.answer.body();
                ensure!(
                    streams == is_stream,
                    "{}: {}",
                    wrong_form(is_stream),
                    excerpt(message)
                );
                if is_stream {
                    Check::check_progress(connection.answer.body())?;
                }
            }
            let now = Instant::now();
            if measured.is_none() {
                window.count(connection.sent, now);
                measured = window.advance(now)?;
            }
            if measured.is_some() {
                in_flight -= 1;
            } else {
                let number = numbers.next().unwrap_or(0);
                connection
                    .answer
                    .clear(is_long && number % FULL_CHECK_INTERVAL != 0);
                connection.send_next(number, now)?;
            }
        }
    }
    drop(poll);
    for connection in connections {
        connection.close()?;
    }
    measured.context("the window never ended")
}

/// Waits until the target answers a request of the job correctly.
pub(crate) fn await_answer(target: &Target, job: &Job, timeout: Duration) -> anyhow::Result<()> {
    retry_for(timeout, || {
        let mut client = SerialClient::open(target)?;
        client.check(job)?;
        client.end()
    })
}

/// Waits until the target lists `tools` tools; returns the pages of the list, and the first page
/// whole.
pub(crate) fn await_tools(target: &Target, tools: usize) -> anyhow::Result<(Vec<Page>, Vec<u8>)> {
    retry_for(READY_TIMEOUT, || {
        let mut client = SerialClient::open(target)?;
        let (mut pages, mut first, mut listed, mut cursor) = (Vec::new(), Vec::new(), 0, None);
        loop {
            let answer = client.ask(&list(target.era, cursor.as_deref()))?;
            let (more, next) = read_page(&answer)?;
            listed += more;
            let length = answer.len();
            pages.push(Page { cursor, length });
            if first.is_empty() {
                first = answer;
            }
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        ensure!(listed >= tools, "{listed} tools instead of {tools}");
        Ok((pages, first))
    })
}

fn wrong_form(is_stream: bool) -> &'static str {
    if is_stream {
        "it answers with an event stream instead of JSON"
    } else {
        "it answers in JSON instead of an event stream"
    }
}

/// Retries `attempt` for `timeout`, since the target may not be ready yet.
fn retry_for<T>(timeout: Duration, attempt: impl Fn() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let began = Instant::now();
    loop {
        let done = attempt();
        if done.is_ok() || began.elapsed() > timeout {
            return done;
        }
        pause(Duration::from_millis(20));
    }
}

/// A client with one request in flight.
pub(crate) struct SerialClient<'a> {
    target: &'a Target,
    connection: BlockingConnection,
    session: Option<Session>,
}

impl<'a> SerialClient<'a> {
    pub(crate) fn open(target: &'a Target) -> anyhow::Result<Self> {
        Ok(Self {
            target,
            session: open_session(target)?,
            connection: BlockingConnection::open(target.address)?,
        })
    }

    /// Sends a request of the job, and checks the answer.
    pub(crate) fn check(&mut self, job: &Job) -> anyhow::Result<()> {
        let request = job.requests(self.target.era).pop().context("no request")?;
        let answer = self.ask(&request)?;
        job.check(self.target.is_fixed).check(0, &answer)
    }

    /// Ends the session, so that the server has no state left.
    fn end(self) -> anyhow::Result<()> {
        self.session.map_or(Ok(()), |session| session.end())
    }

    fn ask(&mut self, request: &Request) -> anyhow::Result<Vec<u8>> {
        let request = self.target.post(request, self.session.as_ref());
        let answer = self.connection.exchange(&request.whole())?;
        Ok(answer.message().to_vec())
    }
}

struct Connection {
    stream: mio::net::TcpStream,
    session: Option<Session>,
    requests: Vec<Prepared>,
    /// The index of the request in flight, its number, and how many bytes of it are sent.
    current: usize,
    number: u64,
    written: usize,
    sent: Instant,
    answer: HttpResponse,
}

impl Connection {
    fn open(
        target: &Target,
        session: Option<Session>,
        requests: &[Request],
    ) -> anyhow::Result<Self> {
        let requests = requests
            .iter()
            .map(|request| target.post(request, session.as_ref()))
            .collect();
        let stream = BlockingConnection::open(target.address)?.stream;
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream: mio::net::TcpStream::from_std(stream),
            session,
            requests,
            current: 0,
            number: 0,
            written: 0,
            sent: Instant::now(),
            answer: HttpResponse::default(),
        })
    }

    fn send_next(&mut self, number: u64, now: Instant) -> anyhow::Result<()> {
        self.current = (self.current + 1) % self.requests.len();
        self.number = number;
        if let Some(request) = self.requests.get_mut(self.current) {
            request.number(number);
        }
        self.written = 0;
        self.sent = now;
        self.flush()
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        let Some(Prepared { bytes, shared, .. }) = self.requests.get(self.current) else {
            return Ok(());
        };
        while self.written < bytes.len() + shared.len() {
            let own = bytes.get(self.written..).unwrap_or_default();
            let rest = shared.get(self.written.saturating_sub(bytes.len())..);
            let rest = rest.unwrap_or_default();
            let written = if rest.is_empty() {
                self.stream.write(own)
            } else {
                let both = [IoSlice::new(own), IoSlice::new(rest)];
                self.stream.write_vectored(&both)
            };
            match written {
                Ok(written) => self.written += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error).context("cannot send"),
            }
        }
        Ok(())
    }

    /// Reads the available bytes; returns whether the response is complete. A complete response is
    /// checked.
    fn receive(&mut self, scratch: &mut [u8], check: &mut Check) -> anyhow::Result<bool> {
        loop {
            let read = match self.stream.read(scratch) {
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error).context("cannot receive"),
            };
            ensure!(read > 0, "the server closed a connection");
            let complete = self.answer.feed(scratch.get(..read).unwrap_or_default())?;
            if complete {
                let status = self.answer.status();
                let message = self.answer.message();
                ensure!(
                    status == 200,
                    "status {status}: {}",
                    String::from_utf8_lossy(message)
                );
                match self.answer.ends() {
                    Some(ends) => check.check_ends(self.number, ends)?,
                    None => check.check(self.number, message)?,
                }
                return Ok(true);
            }
            // The poll is edge-triggered: there is another event when more bytes arrive.
            if read < scratch.len() {
                return Ok(false);
            }
        }
    }

    /// Ends the session, so that each round starts with the same server state.
    fn close(self) -> anyhow::Result<()> {
        let Some(session) = self.session else {
            return Ok(());
        };
        session.end()
    }
}

/// Opens a session with the target, if its era has sessions.
fn open_session(target: &Target) -> anyhow::Result<Option<Session>> {
    if !target.has_sessions || target.era == Era::Stateless {
        return Ok(None);
    }
    let mut connection = BlockingConnection::open(target.address)?;
    Session::open(&mut connection, &target.path, target.handshake).map(Some)
}

/// A session of the handshake era. Some servers do not assign a session id.
pub(crate) struct Session {
    address: SocketAddr,
    path: String,
    revision: &'static str,
    pub(crate) id: Option<String>,
}

impl Session {
    pub(crate) fn open(
        connection: &mut BlockingConnection,
        path: &str,
        revision: &'static str,
    ) -> anyhow::Result<Self> {
        let address = connection.address;
        let initialize = Request::initialize(revision).post(address, path, revision, None);
        let answer = connection.exchange(&initialize.whole())?;
        ensure!(
            answer.status() == 200,
            "initialize was refused with {}: {}",
            answer.status(),
            String::from_utf8_lossy(answer.body())
        );
        let id = answer.session().map(str::to_owned);
        let initialized = Request::initialized().post(address, path, revision, id.as_deref());
        let answer = connection.exchange(&initialized.whole())?;
        ensure!(
            (200..300).contains(&answer.status()),
            "notifications/initialized was refused with {}",
            answer.status()
        );
        Ok(Self {
            address,
            path: path.to_owned(),
            revision,
            id,
        })
    }

    /// The head of a request of this session without a body.
    pub(crate) fn head(&self, method: &str) -> String {
        let Self {
            address,
            path,
            revision,
            id,
        } = self;
        let id = id.as_deref().unwrap_or_default();
        format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\
             MCP-Protocol-Version: {revision}\r\nMcp-Session-Id: {id}\r\n\r\n"
        )
    }

    pub(crate) fn end(&self) -> anyhow::Result<()> {
        if self.id.is_some() {
            let delete = self.head("DELETE");
            BlockingConnection::open(self.address)?.exchange(delete.as_bytes())?;
        }
        Ok(())
    }
}

/// A connection with blocking I/O, for one request at a time.
pub(crate) struct BlockingConnection {
    address: SocketAddr,
    stream: TcpStream,
}

impl BlockingConnection {
    pub(crate) fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).context("cannot connect")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(READY_TIMEOUT))?;
        Ok(Self { address, stream })
    }

    pub(crate) fn exchange(&mut self, request: &[u8]) -> anyhow::Result<HttpResponse> {
        self.until(request, |_, complete| complete)
    }

    /// Sends a request, and reads until the head of the response is complete.
    pub(crate) fn begin(&mut self, request: &[u8]) -> anyhow::Result<HttpResponse> {
        self.until(request, |answer, _| answer.has_head())
    }

    fn until(
        &mut self,
        request: &[u8],
        enough: impl Fn(&HttpResponse, bool) -> bool,
    ) -> anyhow::Result<HttpResponse> {
        self.stream.write_all(request).context("cannot send")?;
        let mut answer = HttpResponse::default();
        let mut bytes = [0; 4096];
        loop {
            let read = self.stream.read(&mut bytes).context("no answer")?;
            ensure!(read > 0, "the server closed the connection");
            let complete = answer.feed(bytes.get(..read).unwrap_or_default())?;
            if enough(&answer, complete) {
                return Ok(answer);
            }
        }
    }
}
