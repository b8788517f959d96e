//! The context of a running handler: progress, logs, streaming, questions, cancellation.

mod asides;
mod asking;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use plexus_mcp_protocol::messages::{ClientCapability, LogLevel};
use plexus_mcp_wire::{Object, Raw};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::call::Call;
use crate::event::{Event, EventSender, Log, Progress, ToolUse};
use crate::excerpt::Excerpt;
use crate::local::LocalService;
use crate::peer::Peer;
use asides::Asides;

/// The most streamed text, in bytes, that is kept for the final result. Of longer text the middle is
/// left out; the stream already carried it (C57). This is less than half of the response limit,
/// because JSON escapes may double the length.
const MAX_COLLECTED_BYTES: usize = 4 * 1024 * 1024;

/// A handler's access to its call and its caller. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Context {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    events: EventSender,
    /// Fires when the caller cancels the call.
    cancel: CancellationToken,
    is_over: AtomicBool,
    /// Fires when the call is over; created on first use.
    over: OnceLock<CancellationToken>,
    params: Object,
    service: LocalService,
    collected: Mutex<Excerpt>,
    asides: Mutex<Asides>,
}

struct Ending(Arc<Inner>);

impl Drop for Ending {
    fn drop(&mut self) {
        // Set this first, so that a token that is created in between is cancelled as well.
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
        let collected = Mutex::new(Excerpt::new(MAX_COLLECTED_BYTES));
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

    /// The caller.
    pub fn peer(&self) -> &Peer {
        self.inner.events.peer()
    }

    /// The sender of the call's events, for a handler that calls another service for its caller.
    pub fn events(&self) -> &EventSender {
        &self.inner.events
    }

    /// Whether the caller declared `capability`, so that it can be asked a question that needs it.
    pub fn supports(&self, capability: ClientCapability) -> bool {
        self.peer().supports(capability)
    }

    /// The call's parameters as received, `_meta` included.
    pub fn params(&self) -> &Object {
        &self.inner.params
    }

    /// The called service, to edit its catalogue or to announce an update.
    pub fn service(&self) -> &LocalService {
        &self.inner.service
    }

    /// Reports progress. Does nothing if the caller did not ask for progress.
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

    /// The same, with the name of the logger.
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

    /// Streams a piece of text. The pieces also become the first block of the final result, so a
    /// caller that cannot receive streamed text loses nothing.
    pub async fn stream(&self, text: impl Into<String>) {
        let text = text.into();
        self.lock_collected().push(&text);
        self.inner.events.content(text).await;
    }

    /// Streams a piece of text without adding it to the result: for handlers that collect it
    /// themselves.
    pub async fn stream_uncollected(&self, text: impl Into<String>) {
        self.inner.events.content(text.into()).await;
    }

    /// Streams the standard error of a program. It is not added to the result; the handler can
    /// add it.
    pub async fn stderr(&self, text: impl Into<String>) {
        self.inner.events.aside(Event::Stderr(text.into())).await;
    }

    /// Reports that the call itself uses a tool. The result gets a line about it (S003-42).
    pub async fn tool_used(&self, name: impl Into<String>, input: Raw) {
        let tool = ToolUse {
            name: name.into(),
            input,
        };
        let line = format!("[Tool: {}] {}", tool.name, tool.input.as_str());
        self.lock_asides().tools.add(&line);
        self.inner.events.aside(Event::ToolUse(tool)).await;
    }

    /// Reports an error from which the call recovered. It is logged and added to the result, which
    /// need not be an error (C17). An error that ends the call is the handler's return value.
    pub async fn recovered(&self, reason: impl std::fmt::Display) {
        let reason = reason.to_string();
        self.lock_asides().errors.add(&reason);
        self.inner.events.aside(Event::Recovered(reason)).await;
    }

    /// Waits until the call is over, by cancellation or by its result: for tasks that a handler
    /// started. The handler itself is dropped when the call is cancelled.
    pub async fn cancelled(&self) {
        self.cancellation().cancelled().await;
    }

    /// Whether the call is over.
    pub fn is_cancelled(&self) -> bool {
        self.inner.is_over.load(Ordering::SeqCst) || self.inner.cancel.is_cancelled()
    }

    /// A token that fires with [`Context::cancelled`], for tasks that a handler started.
    pub fn cancellation(&self) -> &CancellationToken {
        let inner = &self.inner;
        let over = inner.over.get_or_init(|| inner.cancel.child_token());
        if inner.is_over.load(Ordering::SeqCst) {
            over.cancel();
        }
        over
    }

    /// A guard that cancels the tasks of the handler when the call ends.
    pub(crate) fn ending(&self) -> impl Drop + use<> {
        Ending(Arc::clone(&self.inner))
    }

    /// The text that [`Context::stream`] streamed, if any.
    pub(crate) fn take_collected(&self) -> Option<String> {
        let mut collected = self.lock_collected();
        if collected.is_empty() {
            return None;
        }
        let taken = Excerpt::new(MAX_COLLECTED_BYTES);
        Some(std::mem::replace(&mut *collected, taken).into_string())
    }

    /// The additional text blocks of the result: tool uses and recovered errors.
    pub(crate) fn take_asides(&self) -> Vec<String> {
        std::mem::take(&mut *self.lock_asides()).into_blocks()
    }

    fn lock_asides(&self) -> std::sync::MutexGuard<'_, Asides> {
        // A panic in another thread cannot leave a line half written.
        self.inner
            .asides
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_collected(&self) -> std::sync::MutexGuard<'_, Excerpt> {
        // A panic in another thread cannot leave the text half written.
        self.inner
            .collected
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
