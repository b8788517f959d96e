//! The stdio transport.
//!
//! Lines are classified one by one, so both eras may interleave on one pipe. Legacy messages belong
//! to one session with a strict lifecycle; stateless ones have no session. With
//! [`Options::native`](crate::Options::native), tools can be called as methods of their own, and no
//! handshake is needed.

mod batch;
mod read_ahead;

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use plexus_mcp_core::Fault;
use plexus_mcp_core::wire_log::{Direction, log_message};
use plexus_mcp_protocol::classify::{self, Kind, MessageFacts, Route};
use plexus_mcp_protocol::lifecycle::LifecycleRules;
use plexus_mcp_protocol::messages::CancelledParams;
use plexus_mcp_protocol::{Revision, method};
use plexus_mcp_wire::{
    DecodeError, Id, Incoming, Limits, Line, LineDecoder, Malformed, Message, Notification, Raw,
    Request, Response, SkimmedEnvelope, skim,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::caller::{Caller, CallerIdentity};
use crate::edge::{Edge, anonymous};
use crate::encoder::anonymous_error;
use crate::exchange::{Exchange, Output};
use crate::lock::lock;
use crate::parsed_request::{ParsedRequest, decode_fault};
use crate::pipe;
use crate::session::{Session, cancelled};
use crate::session_sink::SessionSink;
use crate::stateless;
use crate::writer::{LineSender, LineWriter};

pub use read_ahead::ReadAhead;

/// Messages that may be queued for the writer. When the queue is full, senders wait (backpressure).
const MAX_QUEUED_MESSAGES: usize = 1024;
const READ_BUFFER_BYTES: usize = 64 * 1024;
/// A client that reads nothing for this long counts as disconnected.
const CLIENT_STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Serves the client over standard input and output, until it closes the input or the edge is shut
/// down; then shuts the edge down, and lets requests in flight finish, for [`Options::drain`] at
/// most.
///
/// [`Options::drain`]: crate::Options::drain
///
/// # Errors
/// The pipes cannot be used, or broke.
pub async fn serve(edge: &Arc<Edge>) -> io::Result<()> {
    serve_input(edge, pipe::stdin()?).await
}

/// The same, with an input that the caller has opened, such as [`ReadAhead::stdin`].
///
/// # Errors
/// The pipes cannot be used, or broke.
pub async fn serve_input<R>(edge: &Arc<Edge>, input: R) -> io::Result<()>
where
    R: AsyncRead + Unpin,
{
    let at_end = || edge.shut_down();
    serve_pipe(edge, input, pipe::stdout()?, at_end).await
}

/// As [`serve`], on any pair of byte streams. The edge stays as it is when the input ends.
///
/// # Errors
/// Reading or writing failed.
pub async fn serve_on<R, W>(edge: &Arc<Edge>, input: R, output: W) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    serve_pipe(edge, input, output, || {}).await
}

async fn serve_pipe<R, W>(
    edge: &Arc<Edge>,
    mut input: R,
    output: W,
    at_end: impl FnOnce(),
) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let tracker = TaskTracker::new();
    let (lines, writer) = LineWriter::spawn(&TaskTracker::new(), output, MAX_QUEUED_MESSAGES);
    let pipe = Pipe::new(edge, lines.clone(), tracker.clone());
    let mut received = Received::new(&edge.options.limits);
    let read = pipe.read(&mut input, &mut received).await;

    at_end();
    pipe.session.end();
    tracker.close();
    let drain = edge.options.drain;
    // A client that no longer reads must not delay the exit, nor must the tasks that wait for it.
    let end = Instant::now() + drain + drain / 4;
    let drained = async {
        if timeout(drain, tracker.wait()).await.is_err() {
            tracing::warn!(unfinished = tracker.len(), "ended with requests in flight");
        }
    };
    tokio::select! {
        // What the client has sent by now is answered even if nothing is in flight.
        biased;
        () = pipe.refuse_requests(&mut input, &mut received) => {}
        () = drained => {}
    }
    pipe.cancel_all();
    drop(timeout_at(end, tracker.wait()).await);
    drop((pipe, lines));
    let written = timeout_at(end, writer.finished()).await;
    read.and(written.unwrap_or(Ok(())))
}

/// The received part of the input.
struct Received {
    decoder: LineDecoder,
    buffer: BytesMut,
}

impl Received {
    fn new(limits: &Limits) -> Self {
        Self {
            decoder: LineDecoder::new(limits.max_bytes),
            buffer: BytesMut::with_capacity(READ_BUFFER_BYTES),
        }
    }
}

/// One client on one pipe.
struct Pipe {
    edge: Arc<Edge>,
    session: Arc<Session>,
    lines: LineSender,
    tracker: TaskTracker,
    /// Stateless requests in flight.
    stateless: Arc<Mutex<HashMap<Id, CancellationToken>>>,
    /// Whether a stateless request has come.
    stateless_spoken: AtomicBool,
    /// Fires when the client is gone.
    gone: CancellationToken,
}

impl Pipe {
    fn new(edge: &Arc<Edge>, lines: LineSender, tracker: TaskTracker) -> Self {
        let sink = SessionSink::Lines(lines.clone());
        let rules = if edge.options.native {
            LifecycleRules::UNGATED
        } else {
            LifecycleRules::STRICT
        };
        Self {
            session: Session::new(Arc::clone(edge), sink, rules, anonymous()),
            edge: Arc::clone(edge),
            lines,
            tracker,
            stateless: Arc::default(),
            stateless_spoken: AtomicBool::new(false),
            gone: CancellationToken::new(),
        }
    }

    /// Reads until the input ends, the output is closed, or the server is shut down.
    async fn read<R: AsyncRead + Unpin>(
        &self,
        input: &mut R,
        received: &mut Received,
    ) -> io::Result<()> {
        let Received { decoder, buffer } = received;
        let mut catalogue = self.edge.watch_catalogue();
        catalogue.mark_unchanged();
        loop {
            tokio::select! {
                read = input.read_buf(buffer) => {
                    let ended = read? == 0;
                    while !self.gone.is_cancelled()
                        && let Some(line) = decoder.next(buffer)
                    {
                        self.line(line).await;
                    }
                    if ended {
                        if let Some(line) = decoder.finish(buffer) {
                            self.line(line).await;
                        }
                        self.gone.cancel();
                        return Ok(());
                    }
                    buffer.reserve(READ_BUFFER_BYTES);
                }
                Ok(()) = catalogue.changed() => {
                    self.session.announce();
                }
                () = self.lines.closed() => {
                    self.gone.cancel();
                    self.cancel_all();
                    return Ok(());
                }
                () = self.gone.cancelled() => {
                    self.cancel_all();
                    return Ok(());
                }
                () = self.edge.shutdown.cancelled() => return Ok(()),
            }
        }
    }

    /// Answers requests that come while requests in flight are finished with an error, for as long
    /// as it is polled. Cancelling a request in flight is still possible.
    async fn refuse_requests<R: AsyncRead + Unpin>(&self, input: &mut R, received: &mut Received) {
        let Received { decoder, buffer } = received;
        let limits = &self.edge.options.limits;
        let fault = Fault::Busy("the server is shutting down".to_owned());
        while !self.gone.is_cancelled() {
            while let Some(line) = decoder.next(buffer) {
                let message = match line {
                    Line::TooLong { envelopes, .. } => {
                        self.refuse(&fault, envelopes).await;
                        continue;
                    }
                    Line::Complete(bytes) => match plexus_mcp_wire::decode(bytes, limits) {
                        Ok(Incoming::Single(message)) => message,
                        // The session has ended, and refuses each request of a batch.
                        Ok(Incoming::Batch(messages)) => {
                            self.batch(messages).await;
                            continue;
                        }
                        Err(error) => {
                            self.refuse(&decode_fault(error), Vec::new()).await;
                            continue;
                        }
                    },
                };
                match message {
                    Ok(Message::Request(request)) => {
                        let request = SkimmedEnvelope::Request(request.id);
                        self.refuse(&fault, vec![request]).await;
                    }
                    Ok(Message::Notification(notification)) => self.notification(&notification),
                    Ok(Message::Response(_)) | Err(_) => {}
                }
            }
            match input.read_buf(buffer).await {
                Ok(1..) => {}
                // The client has gone; requests in flight are finished all the same.
                Ok(0) | Err(_) => break,
            }
        }
        std::future::pending::<()>().await;
    }

    async fn line(&self, line: Line) {
        let limits = &self.edge.options.limits;
        if let Line::Complete(message) = &line {
            log_message(Direction::FromClient, message);
        }
        match line {
            Line::TooLong { envelopes, .. } => {
                let limit = limits.max_bytes;
                self.refuse(&Fault::TooLarge { limit }, envelopes).await;
            }
            Line::Complete(bytes) => match plexus_mcp_wire::decode(bytes.clone(), limits) {
                Ok(Incoming::Single(message)) => self.message(message).await,
                Ok(Incoming::Batch(messages)) => self.batch(messages).await,
                Err(error) => {
                    let envelopes = match error {
                        DecodeError::TooDeep { .. } => skim(&bytes),
                        // JSON-RPC 2.0: a parse error has no id, and a batch that is none is refused
                        // as a whole.
                        _ => Vec::new(),
                    };
                    self.refuse(&decode_fault(error), envelopes).await;
                }
            },
        }
    }

    /// Answers the requests of a line that was not decoded with an error, and fails our own
    /// requests whose responses were in it. A line without a readable id is answered without one.
    async fn refuse(&self, fault: &Fault, envelopes: Vec<SkimmedEnvelope>) {
        if envelopes.is_empty() {
            let answer = anonymous_error(self.spoken(), fault);
            self.send(answer.message).await;
        }
        for envelope in envelopes {
            match envelope {
                SkimmedEnvelope::Request(id) => {
                    let answer = self.edge.encoder(self.spoken()).error(&id, fault);
                    self.send(answer.message).await;
                }
                SkimmedEnvelope::Response(id) => self.session.answered(Response {
                    id: Some(id),
                    outcome: Err(fault.to_error(self.spoken())),
                }),
            }
        }
    }

    async fn message(&self, message: Result<Message, Malformed>) {
        match message {
            Err(malformed) => {
                let answer = self.session.malformed_in(self.spoken(), &malformed);
                self.send(answer.message).await;
            }
            Ok(Message::Notification(notification)) => self.notification(&notification),
            Ok(Message::Response(response)) => self.session.answered(response),
            Ok(Message::Request(request)) => self.request(request).await,
        }
    }

    async fn request(&self, request: Request) {
        let asked = match self.session.read(request) {
            Ok(asked) => asked,
            Err(answer) => return self.send(answer.message).await,
        };
        let facts = MessageFacts {
            kind: Kind::Request(&asked.method),
            requested: asked.meta.handshake_version.as_deref(),
            version_in_meta: asked.meta.protocol_version.is_some(),
            version_header: None,
            in_session: self.session.revision().is_some(),
        };
        match classify::route_line(&facts, self.edge.options.served) {
            Ok(Route::Stateless) => self.stateless_request(asked).await,
            Ok(_) => self.session_request(asked).await,
            Err(fault) => {
                let revision = match fault {
                    Fault::MissingMeta(_) | Fault::UnsupportedVersion { .. } => {
                        Revision::NEWEST_STATELESS
                    }
                    _ => self.session.spoken(),
                };
                let encoder = self.edge.encoder(revision);
                self.send(encoder.error(&asked.id, &fault).message).await;
            }
        }
    }

    async fn session_request(&self, asked: ParsedRequest) {
        let (exchange, ticket) = self.session.begin(asked, None);
        self.run(exchange, ticket.cancel.clone(), ticket).await;
    }

    async fn stateless_request(&self, asked: ParsedRequest) {
        self.stateless_spoken.store(true, Ordering::Relaxed);
        let id = asked.id.clone();
        let cancel = CancellationToken::new();
        let encoder = self.edge.encoder(Revision::NEWEST_STATELESS);
        let refused = {
            let mut stateless = lock(&self.stateless);
            if stateless.contains_key(&id) {
                Some(Fault::InvalidRequest(format!("request id {id} is in use")))
            } else if stateless.len() >= self.edge.options.max_in_flight {
                Some(Fault::Busy(
                    "too many requests in flight; try again later".to_owned(),
                ))
            } else {
                stateless.insert(id.clone(), cancel.clone());
                None
            }
        };
        if let Some(fault) = refused {
            return self.send(encoder.error(&id, &fault).message).await;
        }
        let entry = Entry {
            table: Arc::clone(&self.stateless),
            id,
        };
        let caller = Caller {
            identity: CallerIdentity::anonymous(),
            presence: Some(self.session.presence().clone()),
        };
        let exchange = stateless::begin(&self.edge, asked, None, caller);
        self.run(exchange, cancel, entry).await;
    }

    fn notification(&self, notification: &Notification) {
        if &*notification.method == method::CANCELLED
            && let Some(Ok(CancelledParams { request_id, .. })) =
                notification.params.as_ref().map(Raw::decode)
            && let Some(cancel) = lock(&self.stateless).get(&request_id)
        {
            cancel.cancel();
            return;
        }
        self.session.notified(notification);
    }

    /// Runs an exchange to its end, in a task of its own unless the answer is known. `entry` is dropped
    /// at the end.
    async fn run(
        &self,
        mut exchange: Exchange,
        cancel: CancellationToken,
        entry: impl Send + 'static,
    ) {
        let listening = match &exchange {
            Exchange::Listen(listen) => Some(listen.id().clone()),
            _ => None,
        };
        if let Exchange::Answered(answer) = exchange {
            drop(entry);
            return self.send(answer.message).await;
        }
        let sink = self.session.sink().clone();
        let gone = self.gone.clone();
        self.tracker.spawn(async move {
            loop {
                let output = tokio::select! {
                    biased;
                    // The client is gone, so the subscription has no reader. This is checked first:
                    // the end of the input also shuts the edge down, which would end the
                    // subscription with an answer.
                    () = gone.cancelled(), if listening.is_some() => None,
                    output = exchange.next_unless(&cancel) => output,
                };
                match output {
                    Some(
                        Output::Notification(message)
                        | Output::Progress(message)
                        | Output::Question(message),
                    ) => {
                        tokio::select! {
                            biased;
                            // C08: a cancelled request sends nothing more.
                            () = cancel.cancelled() => break,
                            () = sink.send(message) => {}
                        }
                    }
                    Some(Output::Answer(answer)) => {
                        if let Some(id) = &listening {
                            // The specification describes two ways to end a subscription on stdio: both are used.
                            sink.send(cancelled(id)).await;
                        }
                        sink.send(answer.message).await;
                        break;
                    }
                    None => break,
                }
            }
            drop(entry);
        });
    }

    /// The revision of errors that belong to no request.
    fn spoken(&self) -> Revision {
        match self.session.revision() {
            None if self.stateless_spoken.load(Ordering::Relaxed) => Revision::NEWEST_STATELESS,
            _ => self.session.spoken(),
        }
    }

    /// Sends from the reading loop, which must not wait for ever for a client that does not read.
    async fn send(&self, message: Bytes) {
        tokio::select! {
            biased;
            () = self.session.sink().send(message) => {}
            () = self.edge.shutdown.cancelled() => {}
            () = self.gone.cancelled() => {}
            () = tokio::time::sleep(CLIENT_STALL_TIMEOUT) => {
                tracing::warn!("the client does not read; it counts as gone");
                self.gone.cancel();
            }
        }
    }

    fn cancel_all(&self) {
        self.session.cancel_all();
        for cancel in lock(&self.stateless).values() {
            cancel.cancel();
        }
    }
}

/// A program that does not wait for requests in flight drops the future of [`serve`]. Their tasks end
/// then, and do not answer with the state of a service that is being closed.
impl Drop for Pipe {
    fn drop(&mut self) {
        self.cancel_all();
    }
}

/// Removes a stateless request from the table of in-flight requests when dropped.
struct Entry {
    table: Arc<Mutex<HashMap<Id, CancellationToken>>>,
    id: Id,
}

impl Drop for Entry {
    fn drop(&mut self) {
        lock(&self.table).remove(&self.id);
    }
}
