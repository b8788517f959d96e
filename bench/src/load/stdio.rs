//! Closed-loop load over the pipes of a process.

use std::io::{Read, Write};

use anyhow::{Context as _, ensure};
use memchr::memchr_iter;
use plexus_mcp_protocol::Era;
use tokio::time::Instant;

use super::{Load, LoadResult, Window};
use crate::message::{Check, Job, Prepared, Request, answered, list, read_page};
use crate::process::{Pipes, Running};

/// The capacity of a pipe: a read returns at most this many bytes.
const READ_BUFFER_BYTES: usize = 64 * 1024;
/// Less than the capacity of a pipe, to avoid a deadlock in which both sides wait for a read.
const MAX_BYTES_IN_PIPE: usize = 60_000;

/// Keeps `load.concurrency` requests in flight over the pipes of `process`.
pub(crate) fn run(
    process: &mut Running,
    job: &Job,
    load: Load,
    is_limit: bool,
) -> anyhow::Result<LoadResult> {
    let client = if is_limit {
        Client {
            pipes: process.pipes()?,
            unread: Vec::new(),
        }
    } else {
        Client::connect(process)?
    };
    let mut requests = job.requests(Era::Handshake);
    let request = requests.pop().context("no request")?.line();
    ensure!(
        request.bytes.len() * load.concurrency < MAX_BYTES_IN_PIPE,
        "so many requests do not fit into a pipe"
    );
    let check = if is_limit {
        Check::mirror()
    } else {
        job.check(false)
    };
    let window = Window::begin(load, process.id())?;
    Loop {
        client,
        request,
        check,
        window,
        sent: vec![Instant::now(); load.concurrency],
    }
    .run()
}

/// A client with one request in flight.
pub(crate) struct Client {
    pipes: Pipes,
    /// Bytes that were received after the last response.
    unread: Vec<u8>,
}

impl Client {
    /// Performs the handshake with the process.
    pub(crate) fn connect(process: &mut Running) -> anyhow::Result<Self> {
        let mut client = Self {
            pipes: process.pipes()?,
            unread: Vec::new(),
        };
        let answer = client.ask(&Request::initialize(
            Era::Handshake.newest_revision().as_str(),
        ))?;
        let text = String::from_utf8_lossy(&answer);
        ensure!(text.contains("\"result\""), "the handshake failed: {text}");
        let initialized = Request::initialized().line();
        client.pipes.input.write_all(&initialized.bytes)?;
        Ok(client)
    }

    /// The number of tools on the first page of the list.
    pub(crate) fn first_page(&mut self) -> anyhow::Result<usize> {
        Ok(self.page(None)?.0)
    }

    /// The number of all tools.
    pub(crate) fn count_tools(&mut self) -> anyhow::Result<usize> {
        let (mut tools, mut next) = self.page(None)?;
        while let Some(cursor) = next {
            let (more, then) = self.page(Some(&cursor))?;
            tools += more;
            next = then;
        }
        Ok(tools)
    }

    fn page(&mut self, cursor: Option<&str>) -> anyhow::Result<(usize, Option<String>)> {
        read_page(&self.ask(&list(Era::Handshake, cursor))?)
    }

    /// Sends a request and returns its response; skips other messages of the server.
    fn ask(&mut self, request: &Request) -> anyhow::Result<Vec<u8>> {
        self.pipes.input.write_all(&request.line().bytes)?;
        let mut chunk = vec![0; READ_BUFFER_BYTES];
        loop {
            while let Some(end) = memchr::memchr(b'\n', &self.unread) {
                let rest = self.unread.split_off(end + 1);
                let message = std::mem::replace(&mut self.unread, rest);
                if !is_server_message(&message) {
                    return Ok(message);
                }
            }
            let read = self.pipes.output.read(&mut chunk)?;
            ensure!(read > 0, "the process ended");
            self.unread
                .extend_from_slice(chunk.get(..read).unwrap_or_default());
        }
    }
}

/// Whether a message is a notification or a request, not a response.
fn is_server_message(message: &[u8]) -> bool {
    let near = message.get(..200.min(message.len())).unwrap_or_default();
    memchr::memmem::find(near, b"\"method\"").is_some()
}

struct Loop {
    client: Client,
    request: Prepared,
    check: Check,
    window: Window,
    /// When each request in flight was sent, indexed by its number modulo the concurrency.
    sent: Vec<Instant>,
}

impl Loop {
    fn run(mut self) -> anyhow::Result<LoadResult> {
        let mut outgoing = Vec::new();
        let mut in_flight = self.sent.len();
        for number in 0..in_flight {
            self.enqueue(number as u64, Instant::now(), &mut outgoing);
        }
        let mut measured = None;
        let mut incoming = std::mem::take(&mut self.client.unread);
        let mut chunk = vec![0; READ_BUFFER_BYTES];
        while in_flight > 0 {
            if !outgoing.is_empty() {
                self.client.pipes.input.write_all(&outgoing)?;
                outgoing.clear();
            }
            let read = self.client.pipes.output.read(&mut chunk)?;
            ensure!(read > 0, "the process ended");
            incoming.extend_from_slice(chunk.get(..read).unwrap_or_default());
            let now = Instant::now();
            let mut start = 0;
            for end in memchr_iter(b'\n', &incoming) {
                let line = incoming.get(start..end).unwrap_or_default();
                start = end + 1;
                let Some(number) = answered(line) else {
                    ensure!(
                        is_server_message(line),
                        "no answer: {}",
                        String::from_utf8_lossy(line)
                    );
                    continue;
                };
                self.check.check(number, line)?;
                if measured.is_none() {
                    let slot = self.slot(number);
                    let sent = self.sent.get(slot).copied().unwrap_or(now);
                    self.window.count(sent, now);
                    measured = self.window.advance(now)?;
                }
                if measured.is_some() {
                    in_flight -= 1;
                } else {
                    // The new request takes the slot of the answered one, so that the send time is
                    // found in whichever order responses arrive.
                    let next = number + self.sent.len() as u64;
                    self.enqueue(next, now, &mut outgoing);
                }
            }
            incoming.drain(..start);
        }
        measured.context("the window never ended")
    }

    fn enqueue(&mut self, number: u64, now: Instant, outgoing: &mut Vec<u8>) {
        self.request.number(number);
        outgoing.extend_from_slice(&self.request.bytes);
        let slot = self.slot(number);
        if let Some(sent) = self.sent.get_mut(slot) {
            *sent = now;
        }
    }

    fn slot(&self, number: u64) -> usize {
        usize::try_from(number).unwrap_or(0) % self.sent.len()
    }
}
