//! What a handler can do besides returning.

mod asking;

use std::sync::{Arc, Mutex, PoisonError};

use plexus_mcp::messages::{ClientCapability, LogLevel};
use plexus_wire::Raw;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::call::Call;
use crate::event::{EventSender, Log, Progress};
use crate::excerpt::Excerpt;
use crate::local::LocalService;
use crate::peer::Peer;

/// The most streamed text that is kept for the final result; beyond it the middle is left out,
/// which the stream already carried (C57).
const MAX_COLLECTED: usize = 10 * 1024 * 1024;

/// The caller's side of one call, in the hands of a handler. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Context {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    events: EventSender,
    cancel: CancellationToken,
    params: Raw,
    service: LocalService,
    collected: Mutex<Excerpt>,
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
                params,
                service,
                collected,
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
    pub fn params(&self) -> &Raw {
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

    /// Waits until the call is over, be it that the caller no longer wants the answer or that it has
    /// been given: for work that a handler started elsewhere. The handler itself is dropped when it
    /// is cancelled.
    pub async fn cancelled(&self) {
        self.inner.cancel.cancelled().await;
    }

    /// Whether the call is over.
    pub fn is_cancelled(&self) -> bool {
        self.inner.cancel.is_cancelled()
    }

    /// A token that fires with [`Context::cancelled`], for work that runs elsewhere.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.inner.cancel
    }

    /// What [`Context::stream`] handed out.
    pub(crate) fn take_collected(&self) -> String {
        let taken = Excerpt::new(MAX_COLLECTED);
        std::mem::replace(&mut *self.lock_collected(), taken).into_string()
    }

    fn lock_collected(&self) -> std::sync::MutexGuard<'_, Excerpt> {
        // A panic elsewhere cannot leave the text half written.
        self.inner
            .collected
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
