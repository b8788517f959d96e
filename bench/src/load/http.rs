//! A closed loop over keep-alive connections.

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use mio::{Events, Interest, Poll, Token};
use tokio::time::Instant;

use super::{Load, PATIENCE, SILENCE, Seen, Window};
use crate::answer::Answer;
use crate::message::{Check, Era, Job, Page, Prepared, Request, list, read_page};
use crate::process::pause;

/// What is to be read at once: little for small answers, so that the buffer stays in the cache.
const READ: usize = 64 * 1024;

/// One of so many long answers is looked at as a whole.
const LOOKED_AT: u64 = 16;

/// Where the load goes.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    pub(crate) path: String,
    pub(crate) era: Era,
    /// Which revision of the handshake era it speaks.
    pub(crate) handshake: &'static str,
    /// Whether it must answer with event streams, or must not; some may choose.
    pub(crate) streams: Option<bool>,
    /// Whether it answers without looking.
    pub(crate) is_limit: bool,
    /// The process whose CPU time counts.
    pub(crate) process: u32,
}

impl Target {
    fn post(&self, request: &Request, session: Option<&Session>) -> Prepared {
        let revision = match request.era() {
            Era::Handshake => self.handshake,
            Era::Stateless => Era::Stateless.revision(),
        };
        let id = session.and_then(|session| session.id.as_deref());
        request.post(self.address, &self.path, revision, id)
    }
}

/// Has `load.concurrency` connections, in a session each where there are sessions, send the job's
/// requests.
pub(crate) fn run(target: &Target, job: &Job, load: Load) -> anyhow::Result<Seen> {
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
    let mut check = job.check(target.is_limit);
    let mut scratch = vec![0; READ];
    let is_long = job.is_long();
    let mut numbers = 0..;
    let mut window = Window::begin(load, target.process);
    for connection in &mut connections {
        connection.send_next(numbers.next().unwrap_or(0), Instant::now())?;
    }
    let mut seen = None;
    let mut in_flight = load.concurrency;
    while in_flight > 0 {
        poll.poll(&mut events, Some(SILENCE))?;
        ensure!(!events.is_empty(), "no answer within {SILENCE:?}");
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
                ensure!(streams == is_stream, "{}", wrong_form(is_stream));
            }
            let now = Instant::now();
            if seen.is_none() {
                window.count(connection.sent, now);
                seen = window.advance(now)?;
            }
            if seen.is_some() {
                in_flight -= 1;
            } else {
                let number = numbers.next().unwrap_or(0);
                connection.answer.clear(is_long && number % LOOKED_AT != 0);
                connection.send_next(number, now)?;
            }
        }
    }
    drop(poll);
    for connection in connections {
        connection.close()?;
    }
    seen.context("the window never ended")
}

/// Waits until a request of the job is answered as it should be.
pub(crate) fn await_answer(target: &Target, job: &Job, patience: Duration) -> anyhow::Result<()> {
    patiently(patience, || {
        let mut asking = Asking::open(target)?;
        asking.check(job)?;
        asking.end()
    })
}

/// Waits until there are so many tools; gives the pages of the list, and the first of them whole.
pub(crate) fn await_tools(target: &Target, tools: usize) -> anyhow::Result<(Vec<Page>, Vec<u8>)> {
    patiently(PATIENCE, || {
        let mut asking = Asking::open(target)?;
        let (mut pages, mut first, mut listed, mut cursor) = (Vec::new(), Vec::new(), 0, None);
        loop {
            let answer = asking.ask(&list(target.era, cursor.as_deref()))?;
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

/// Tries again for a while; what is measured may be on its way.
fn patiently<T>(patience: Duration, attempt: impl Fn() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let began = Instant::now();
    loop {
        let done = attempt();
        if done.is_ok() || began.elapsed() > patience {
            return done;
        }
        pause(Duration::from_millis(20));
    }
}

/// A client that waits for each answer.
pub(crate) struct Asking<'a> {
    target: &'a Target,
    connection: Blocking,
    session: Option<Session>,
}

impl<'a> Asking<'a> {
    pub(crate) fn open(target: &'a Target) -> anyhow::Result<Self> {
        Ok(Self {
            target,
            session: open_session(target)?,
            connection: Blocking::open(target.address)?,
        })
    }

    /// Has a request of the job answered as it should be.
    pub(crate) fn check(&mut self, job: &Job) -> anyhow::Result<()> {
        let request = job.requests(self.target.era).pop().context("no request")?;
        let answer = self.ask(&request)?;
        job.check(self.target.is_limit).check(0, &answer)
    }

    /// Leaves the server as if nobody had been there.
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
    /// Which of the requests is in flight, under which number, and how much of it is sent.
    current: usize,
    number: u64,
    written: usize,
    sent: Instant,
    answer: Answer,
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
        let stream = Blocking::open(target.address)?.stream;
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream: mio::net::TcpStream::from_std(stream),
            session,
            requests,
            current: 0,
            number: 0,
            written: 0,
            sent: Instant::now(),
            answer: Answer::default(),
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

    /// Reads what there is, and says whether that completes the answer, which is then checked.
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
                match self.answer.skimmed() {
                    Some(ends) => check.check_ends(self.number, ends)?,
                    None => check.check(self.number, message)?,
                }
                return Ok(true);
            }
            // The edge comes again when there is more.
            if read < scratch.len() {
                return Ok(false);
            }
        }
    }

    /// Ends the session, so that the next round finds the server as this one did.
    fn close(self) -> anyhow::Result<()> {
        let Some(session) = self.session else {
            return Ok(());
        };
        session.end()
    }
}

/// A session with the target, if it is one that has sessions.
fn open_session(target: &Target) -> anyhow::Result<Option<Session>> {
    if target.is_limit || target.era == Era::Stateless {
        return Ok(None);
    }
    let mut connection = Blocking::open(target.address)?;
    Session::open(&mut connection, &target.path, target.handshake).map(Some)
}

/// A session of the handshake era; some servers give it no id.
pub(crate) struct Session {
    address: SocketAddr,
    path: String,
    revision: &'static str,
    pub(crate) id: Option<String>,
}

impl Session {
    pub(crate) fn open(
        connection: &mut Blocking,
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

    /// The head of a request without a body in this session.
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
            Blocking::open(self.address)?.exchange(delete.as_bytes())?;
        }
        Ok(())
    }
}

/// A connection on which each request waits for its answer.
pub(crate) struct Blocking {
    address: SocketAddr,
    stream: TcpStream,
}

impl Blocking {
    pub(crate) fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).context("cannot connect")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { address, stream })
    }

    pub(crate) fn exchange(&mut self, request: &[u8]) -> anyhow::Result<Answer> {
        self.until(request, |_, complete| complete)
    }

    /// Sends a request, and reads until the head of the answer is there.
    pub(crate) fn begin(&mut self, request: &[u8]) -> anyhow::Result<Answer> {
        self.until(request, |answer, _| answer.has_head())
    }

    fn until(
        &mut self,
        request: &[u8],
        enough: impl Fn(&Answer, bool) -> bool,
    ) -> anyhow::Result<Answer> {
        self.stream.write_all(request).context("cannot send")?;
        let mut answer = Answer::default();
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
