//! MCP over a pair of pipes.
//!
//! Lines are classified one by one, so both eras may interleave on one pipe. Legacy messages belong
//! to one session with a strict lifecycle; stateless ones stand alone. With
//! [`Options::native`](crate::Options::native), tools can be called as methods of their own, and no
//! handshake is needed.

mod batch;

use std::collections::HashMap;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use plexus_mcp::classify::{self, Facts, Kind, Route};
use plexus_mcp::lifecycle::Rules;
use plexus_mcp::messages::CancelledParams;
use plexus_mcp::{Revision, method};
use plexus_service::Fault;
use plexus_wire::{
    DecodeError, Id, Incoming, Line, LineDecoder, Malformed, Message, Notification, Raw, Request,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::asked::Asked;
use crate::edge::{Edge, anonymous};
use crate::exchange::{Exchange, Output};
use crate::http::Admitted;
use crate::lock::lock;
use crate::outlet::Outlet;
use crate::pipe;
use crate::render::anonymous_error;
use crate::session::{Session, cancelled};
use crate::stateless;
use crate::writer::{LineSender, LineWriter};

/// How many messages may wait to be written before whoever writes more has to wait.
const QUEUE: usize = 1024;
const READ: usize = 64 * 1024;
/// After how long a client counts as gone that takes no answers.
const STALL: Duration = Duration::from_secs(30);

/// Serves the client at the other end of standard input and output, until it closes its end or
/// the edge is shut down; then lets work in flight finish, for [`Options::drain`] at most.
///
/// [`Options::drain`]: crate::Options::drain
///
/// # Errors
/// The pipes cannot be used, or broke.
pub async fn serve(edge: &Arc<Edge>) -> io::Result<()> {
    serve_on(edge, pipe::stdin()?, pipe::stdout()?).await
}

/// The same, on any pair of byte streams.
///
/// # Errors
/// Reading or writing failed.
pub async fn serve_on<R, W>(edge: &Arc<Edge>, mut input: R, output: W) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let tracker = TaskTracker::new();
    let (lines, writer) = LineWriter::spawn(&TaskTracker::new(), output, QUEUE);
    let pipe = Pipe::new(edge, lines.clone(), tracker.clone());
    let read = pipe.read(&mut input).await;

    pipe.session.end();
    tracker.close();
    if tokio::time::timeout(edge.options.drain, tracker.wait())
        .await
        .is_err()
    {
        tracing::warn!(unfinished = tracker.len(), "ended with requests in flight");
    }
    pipe.cancel_all();
    // Whoever still waits for a client that does not read is left behind.
    drop(tokio::time::timeout(edge.options.drain, tracker.wait()).await);
    drop((pipe, lines));
    // A client that no longer reads must not keep us alive.
    let written = tokio::time::timeout(edge.options.drain, writer.finished()).await;
    read.and(written.unwrap_or(Ok(())))
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
        let outlet = Outlet::Lines(lines.clone());
        let rules = if edge.options.native {
            Rules::UNGATED
        } else {
            Rules::STRICT
        };
        Self {
            session: Session::new(Arc::clone(edge), outlet, rules, anonymous()),
            edge: Arc::clone(edge),
            lines,
            tracker,
            stateless: Arc::default(),
            stateless_spoken: AtomicBool::new(false),
            gone: CancellationToken::new(),
        }
    }

    /// Reads until the input ends, the output is closed, or the server is shut down.
    async fn read<R: AsyncRead + Unpin>(&self, input: &mut R) -> io::Result<()> {
        let mut decoder = LineDecoder::new(self.edge.options.limits.max_bytes);
        let mut buffer = BytesMut::with_capacity(READ);
        let mut catalogue = self.edge.watch_catalogue();
        catalogue.mark_unchanged();
        loop {
            tokio::select! {
                read = input.read_buf(&mut buffer) => {
                    let ended = read? == 0;
                    while let Some(line) = decoder.next(&mut buffer) {
                        self.line(line).await;
                    }
                    if ended {
                        if let Some(line) = decoder.finish(&mut buffer) {
                            self.line(line).await;
                        }
                        self.gone.cancel();
                        return Ok(());
                    }
                    buffer.reserve(READ);
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

    async fn line(&self, line: Line) {
        let limit = self.edge.options.limits.max_bytes;
        let incoming = match line {
            Line::TooLong { .. } => Err(Fault::TooLarge { limit }),
            Line::Complete(bytes) => {
                plexus_wire::decode(bytes, &self.edge.options.limits).map_err(decode_fault)
            }
        };
        match incoming {
            Err(fault) => {
                let answer = anonymous_error(self.spoken(), &fault);
                self.send(answer.into_bytes()).await;
            }
            Ok(Incoming::Single(message)) => self.message(message).await,
            Ok(Incoming::Batch(messages)) => self.batch(messages).await,
        }
    }

    async fn message(&self, message: Result<Message, Malformed>) {
        match message {
            Err(malformed) => {
                let answer = self.session.malformed_in(self.spoken(), &malformed);
                self.send(answer.into_bytes()).await;
            }
            Ok(Message::Notification(notification)) => self.notification(&notification),
            Ok(Message::Response(response)) => self.session.answered(response),
            Ok(Message::Request(request)) => self.request(request).await,
        }
    }

    async fn request(&self, request: Request) {
        let asked = match self.session.read(request) {
            Ok(asked) => asked,
            Err(answer) => return self.send(answer.into_bytes()).await,
        };
        let facts = Facts {
            kind: Kind::Request(&asked.method),
            requested: asked.meta.handshake_version.as_deref(),
            version_in_meta: asked.meta.protocol_version.is_some(),
            version_header: None,
            in_session: self.session.revision().is_some(),
        };
        match classify::line(&facts, self.edge.options.served) {
            Ok(Route::Stateless) => self.stateless_request(asked).await,
            Ok(_) => self.session_request(asked).await,
            Err(fault) => {
                let revision = match fault {
                    Fault::MissingMeta(_) | Fault::UnsupportedVersion { .. } => {
                        Revision::NEWEST_STATELESS
                    }
                    _ => self.session.spoken(),
                };
                let voice = self.edge.voice(revision);
                self.send(voice.error(&asked.id, &fault).into_bytes()).await;
            }
        }
    }

    async fn session_request(&self, asked: Asked) {
        let (exchange, ticket) = self.session.begin(asked, None);
        self.run(exchange, ticket.cancel.clone(), ticket).await;
    }

    async fn stateless_request(&self, asked: Asked) {
        self.stateless_spoken.store(true, Ordering::Relaxed);
        let id = asked.id.clone();
        let cancel = CancellationToken::new();
        let voice = self.edge.voice(Revision::NEWEST_STATELESS);
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
            return self.send(voice.error(&id, &fault).into_bytes()).await;
        }
        let entry = Entry {
            table: Arc::clone(&self.stateless),
            id,
        };
        let caller = stateless::Caller {
            admitted: Admitted::anonymous(),
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

    /// Carries an exchange to its end, in a task of its own unless it is answered at once, as most
    /// are that nothing outside this process is needed for. `entry` is dropped with it.
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
        let mut first = match exchange.next_unless(&cancel).now_or_never() {
            Some(Some(Output::Answer(answer))) if listening.is_none() => {
                drop(entry);
                return self.send(answer.into_bytes()).await;
            }
            first => first,
        };
        let outlet = self.session.outlet().clone();
        let gone = self.gone.clone();
        self.tracker.spawn(async move {
            loop {
                let output = if let Some(output) = first.take() {
                    output
                } else {
                    tokio::select! {
                        output = exchange.next_unless(&cancel) => output,
                        // Nobody is left to hear what a subscription would say.
                        () = gone.cancelled(), if listening.is_some() => None,
                    }
                };
                match output {
                    Some(Output::Notification(message) | Output::Question(message)) => {
                        outlet.send(message).await;
                    }
                    Some(Output::Answer(answer)) => {
                        if let Some(id) = &listening {
                            // REVISIONS §23.1: on a pipe a subscription is ended in both ways.
                            outlet.send(cancelled(id)).await;
                        }
                        outlet.send(answer.into_bytes()).await;
                        break;
                    }
                    None => break,
                }
            }
            drop(entry);
        });
    }

    /// The revision in which errors are told that belong to no request.
    fn spoken(&self) -> Revision {
        match self.session.revision() {
            None if self.stateless_spoken.load(Ordering::Relaxed) => Revision::NEWEST_STATELESS,
            _ => self.session.spoken(),
        }
    }

    /// Sends from the reading loop, which must not wait for ever for a client that does not read.
    async fn send(&self, message: Bytes) {
        let mut sending = pin!(self.session.outlet().send(message));
        if sending.as_mut().now_or_never().is_some() {
            return;
        }
        tokio::select! {
            () = sending => {}
            () = self.edge.shutdown.cancelled() => {}
            () = tokio::time::sleep(STALL) => {
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

/// Takes a stateless request off the list of those in flight.
struct Entry {
    table: Arc<Mutex<HashMap<Id, CancellationToken>>>,
    id: Id,
}

impl Drop for Entry {
    fn drop(&mut self) {
        lock(&self.table).remove(&self.id);
    }
}

/// What a peer is told of bytes that are no message.
pub(crate) fn decode_fault(error: DecodeError) -> Fault {
    match error {
        DecodeError::TooLarge { limit } => Fault::TooLarge { limit },
        DecodeError::NotUtf8 | DecodeError::Syntax { .. } => Fault::Parse(error.to_string()),
        other => Fault::InvalidRequest(other.to_string()),
    }
}
