//! A closed loop over the pipes of a process.

use std::io::{Read, Write};

use anyhow::{Context as _, ensure};
use memchr::memchr_iter;
use tokio::time::Instant;

use super::{Load, Seen, Window};
use crate::message::{Check, Era, Job, Prepared, Request, answered, list, read_page};
use crate::process::{Pipes, Running};

/// What a pipe holds at most, so that more cannot be read at once.
const CHUNK: usize = 64 * 1024;
/// Less than what a pipe takes: if both sides waited for the other to read, nobody would.
const FITS_IN_A_PIPE: usize = 60_000;

/// Has `load.concurrency` requests in flight over the pipes of `process`.
pub(crate) fn run(
    process: &mut Running,
    job: &Job,
    load: Load,
    is_limit: bool,
) -> anyhow::Result<Seen> {
    let client = if is_limit {
        Client {
            pipes: process.pipes()?,
            unread: Vec::new(),
        }
    } else {
        Client::greet(process)?
    };
    let mut requests = job.requests(Era::Handshake);
    let request = requests.pop().context("no request")?.line();
    ensure!(
        request.bytes.len() * load.concurrency < FITS_IN_A_PIPE,
        "so many requests do not fit into a pipe"
    );
    let check = if is_limit {
        Check::mirror()
    } else {
        job.check(false)
    };
    let window = Window::begin(load, process.id());
    Loop {
        client,
        request,
        check,
        window,
        sent: vec![Instant::now(); load.concurrency],
    }
    .run()
}

/// A client that waits for each answer.
pub(crate) struct Client {
    pipes: Pipes,
    /// What came behind the last answer.
    unread: Vec<u8>,
}

impl Client {
    /// Shakes hands with the process.
    pub(crate) fn greet(process: &mut Running) -> anyhow::Result<Self> {
        let mut client = Self {
            pipes: process.pipes()?,
            unread: Vec::new(),
        };
        let answer = client.ask(&Request::initialize(Era::Handshake.revision()))?;
        let text = String::from_utf8_lossy(&answer);
        ensure!(text.contains("\"result\""), "no greeting: {text}");
        let initialized = Request::initialized().line();
        client.pipes.input.write_all(&initialized.bytes)?;
        Ok(client)
    }

    /// How many tools the first page of the list has.
    pub(crate) fn first_page(&mut self) -> anyhow::Result<usize> {
        Ok(self.page(None)?.0)
    }

    /// How many tools there are.
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

    /// The answer to a request; servers may say other things before it.
    fn ask(&mut self, request: &Request) -> anyhow::Result<Vec<u8>> {
        self.pipes.input.write_all(&request.line().bytes)?;
        let mut chunk = vec![0; CHUNK];
        loop {
            while let Some(end) = memchr::memchr(b'\n', &self.unread) {
                let rest = self.unread.split_off(end + 1);
                let message = std::mem::replace(&mut self.unread, rest);
                if !is_from_the_server(&message) {
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

/// Whether a message is no answer, but a notification or a request.
fn is_from_the_server(message: &[u8]) -> bool {
    let near = message.get(..200.min(message.len())).unwrap_or_default();
    memchr::memmem::find(near, b"\"method\"").is_some()
}

struct Loop {
    client: Client,
    request: Prepared,
    check: Check,
    window: Window,
    /// When each of the requests in flight was sent, by its number modulo how many there are.
    sent: Vec<Instant>,
}

impl Loop {
    fn run(mut self) -> anyhow::Result<Seen> {
        let mut outgoing = Vec::new();
        let mut in_flight = self.sent.len();
        for number in 0..in_flight {
            self.put(number as u64, Instant::now(), &mut outgoing);
        }
        let mut seen = None;
        let mut incoming = std::mem::take(&mut self.client.unread);
        let mut chunk = vec![0; CHUNK];
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
                        is_from_the_server(line),
                        "no answer: {}",
                        String::from_utf8_lossy(line)
                    );
                    continue;
                };
                self.check.check(number, line)?;
                if seen.is_none() {
                    let slot = self.slot(number);
                    let sent = self.sent.get(slot).copied().unwrap_or(now);
                    self.window.count(sent, now);
                    seen = self.window.advance(now)?;
                }
                if seen.is_some() {
                    in_flight -= 1;
                } else {
                    // It takes the place of the answered one, so that whichever order answers
                    // come in, each finds when it was sent.
                    let next = number + self.sent.len() as u64;
                    self.put(next, now, &mut outgoing);
                }
            }
            incoming.drain(..start);
        }
        seen.context("the window never ended")
    }

    fn put(&mut self, number: u64, now: Instant, outgoing: &mut Vec<u8>) {
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
