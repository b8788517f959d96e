//! What a handler can do besides returning.

mod asides;
mod asking;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use plexus_mcp::messages::{ClientCapability, LogLevel};
use plexus_wire::{Object, Raw};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::call::Call;
use crate::event::{Event, EventSender, Log, Progress, ToolUse};
use crate::excerpt::Excerpt;
use crate::local::LocalService;
use crate::peer::Peer;
use asides::Asides;

/// The most streamed text that is kept for the final result; beyond it the middle is left out,
/// which the stream already carried (C57). Less than half of what an answer may have, for JSON
/// escapes what it quotes.
const MAX_COLLECTED: usize = 4 * 1024 * 1024;

/// The caller's side of one call, in the hands of a handler. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Context {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    events: EventSender,
    /// Fires when the caller no longer wants the answer.
    cancel: CancellationToken,
    is_over: AtomicBool,
    /// Fires when the call is over; made for the first who asks for it.
    over: OnceLock<CancellationToken>,
    params: Object,
    service: LocalService,
    collected: Mutex<Excerpt>,
    asides: Mutex<Asides>,
}

struct Ending(Arc<Inner>);

impl Drop for Ending {
    fn drop(&mut self) {
        // This comes first, so that whoever asks in between is told as well.
        self.0.is_over.store(true, Ordering::SeqCst);
        if let Some(over) = self.0.over.get() {
            over.cancel();
        }
    }
}

impl Context {
    pub(crate) fn new(call: Call, service: LocalService) -> Self {
        let Call {
            events,
            cancel,
            params,
            ..
        } = call;
        let collected = Mutex::new(Excerpt::new(MAX_COLLECTED));
        Self {
            inner: Arc::new(Inner {
                events,
                cancel,
                is_over: AtomicBool::new(false),
                over: OnceLock::new(),
                params,
                service,
                collected,
                asides: Mutex::default(),
            }),
        }
    }

    /// Who is calling.
    pub fn peer(&self) -> &Peer {
        self.inner.events.peer()
    }

    /// Where the call's events go, for a handler that calls another service in its caller's name.
    pub fn events(&self) -> &EventSender {
        &self.inner.events
    }

    /// Whether the caller can be asked what needs `capability`.
    pub fn supports(&self, capability: ClientCapability) -> bool {
        self.peer().supports(capability)
    }

    /// The call's parameters as they arrived, `_meta` included.
    pub fn params(&self) -> &Object {
        &self.inner.params
    }

    /// The service that is being called, to change what it offers or to announce an update.
    pub fn service(&self) -> &LocalService {
        &self.inner.service
    }

    /// Reports how far the call got. Costs nothing if nobody wants to know.
    pub async fn progress(
        &self,
        progress: f64,
        total: Option<f64>,
        message: impl Into<Option<&str>>,
    ) {
        if self.inner.events.wants_progress() {
            let message = message.into().map(str::to_owned);
            self.inner
                .events
                .progress(Progress {
                    progress,
                    total,
                    message,
                })
                .await;
        }
    }

    /// Logs `data`, any JSON, if the caller wants messages of `level`.
    pub async fn log(&self, level: LogLevel, data: impl Serialize) {
        self.log_as(None, level, data).await;
    }

    /// The same, naming the part of the service that speaks.
    pub async fn log_as<'a>(
        &self,
        logger: impl Into<Option<&'a str>>,
        level: LogLevel,
        data: impl Serialize,
    ) {
        if !self.inner.events.wants_log(level) {
            return;
        }
        if let Ok(data) = Raw::encode(&data) {
            self.inner
                .events
                .log(Log {
                    level,
                    logger: logger.into().map(str::to_owned),
                    data,
                })
                .await;
        }
    }

    /// Hands out a piece of text at once. The pieces also make up the first block of the final
    /// result, so nothing is lost on a caller that cannot take them early.
    pub async fn stream(&self, text: impl Into<String>) {
        let text = text.into();
        self.lock_collected().push(&text);
        self.inner.events.content(text).await;
    }

    /// Hands out a piece of text at once, without making it a part of the result: for handlers
    /// that collect by themselves what they stream.
    pub async fn stream_uncollected(&self, text: impl Into<String>) {
        self.inner.events.content(text.into()).await;
    }

    /// Hands out at once what a program says on its standard error. It is not part of the result:
    /// the handler puts it there as it sees fit.
    pub async fn stderr(&self, text: impl Into<String>) {
        self.inner.events.aside(Event::Stderr(text.into())).await;
    }

    /// Says that the call uses a tool itself. The result has a line about it (S003-42).
    pub async fn tool_used(&self, name: impl Into<String>, input: Raw) {
        let tool = ToolUse {
            name: name.into(),
            input,
        };
        let line = format!("[Tool: {}] {}", tool.name, tool.input.as_str());
        self.lock_asides().tools.add(&line);
        self.inner.events.aside(Event::ToolUse(tool)).await;
    }

    /// Says what failed although the call goes on: it is logged, and kept for the result, which
    /// need not have failed for it (C17). An error that ends the call is what the handler returns.
    pub async fn recovered(&self, reason: impl std::fmt::Display) {
        let reason = reason.to_string();
        self.lock_asides().errors.add(&reason);
        self.inner.events.aside(Event::Recovered(reason)).await;
    }

    /// Waits until the call is over, be it that the caller no longer wants the answer or that it has
    /// been given: for work that a handler started elsewhere. The handler itself is dropped when it
    /// is cancelled.
    pub async fn cancelled(&self) {
        self.cancellation().cancelled().await;
    }

    /// Whether the call is over.
    pub fn is_cancelled(&self) -> bool {
        self.inner.is_over.load(Ordering::SeqCst) || self.inner.cancel.is_cancelled()
    }

    /// A token that fires with [`Context::cancelled`], for work that runs elsewhere.
    pub fn cancellation(&self) -> &CancellationToken {
        let inner = &self.inner;
        let over = inner.over.get_or_init(|| inner.cancel.child_token());
        if inner.is_over.load(Ordering::SeqCst) {
            over.cancel();
        }
        over
    }

    /// Ends what the handler started elsewhere when the call ends, however it does.
    pub(crate) fn ending(&self) -> impl Drop + use<> {
        Ending(Arc::clone(&self.inner))
    }

    /// What [`Context::stream`] handed out, if anything.
    pub(crate) fn take_collected(&self) -> Option<String> {
        let mut collected = self.lock_collected();
        if collected.is_empty() {
            return None;
        }
        let taken = Excerpt::new(MAX_COLLECTED);
        Some(std::mem::replace(&mut *collected, taken).into_string())
    }

    /// What is to be said in the result beside what was streamed, in blocks.
    pub(crate) fn take_asides(&self) -> Vec<String> {
        std::mem::take(&mut *self.lock_asides()).into_blocks()
    }

    fn lock_asides(&self) -> std::sync::MutexGuard<'_, Asides> {
        // A panic elsewhere cannot leave a line half written.
        self.inner
            .asides
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_collected(&self) -> std::sync::MutexGuard<'_, Excerpt> {
        // A panic elsewhere cannot leave the text half written.
        self.inner
            .collected
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
