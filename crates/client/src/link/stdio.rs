//! The stdio transport: a child process.

mod stdin_queue;

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::BytesMut;
use plexus_mcp_core::Boxed;
use plexus_mcp_wire::{Limits, Line, LineDecoder};
use tokio::io::AsyncReadExt;
use tokio::sync::Mutex as AsyncMutex;
use tokio_util::sync::CancellationToken;

use self::stdin_queue::StdinQueue;
use super::{Inbox, Incoming, LinkError, Outgoing, Room, decoded, rejected};
use crate::child::{Child, ChildOutput, ExitReport, Grace, Program, StartError};
use crate::lock::lock;
use crate::status::ProcessInfo;

/// The read buffer: its size, and the free space below which a new one is allocated.
const READ_BUFFER_BYTES: usize = 64 * 1024;
const READ_BUFFER_MIN_FREE_BYTES: usize = 4 * 1024;
/// How long to wait for the exit status after a pipe was closed.
const EXIT_STATUS_TIMEOUT: Duration = Duration::from_millis(500);

/// How long the reader has to report the end of a process that takes no more input.
const CLOSED_INPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// The link to a server that is a child process.
pub(crate) struct StdioLink {
    input: StdinQueue,
    child: Arc<AsyncMutex<Option<Child>>>,
    stderr_tail: Arc<Mutex<Vec<String>>>,
    stop: CancellationToken,
}

impl StdioLink {
    /// Starts `program`. Messages go in and out while the future is polled, which ends after
    /// [`close`](Self::close).
    pub(crate) fn start(
        program: &Program,
        limits: Limits,
        inbox: Inbox,
    ) -> Result<(Self, Boxed<()>), StartError> {
        let (child, input, output) = Child::start(program)?;
        let child = Arc::new(AsyncMutex::new(Some(child)));
        let stderr_tail = Arc::new(Mutex::default());
        let (input, writing) = StdinQueue::new(input);
        let stop = CancellationToken::new();
        let writing = {
            let (inbox, stop) = (Arc::clone(&inbox), stop.clone());
            let (child, stderr_tail) = (Arc::clone(&child), Arc::clone(&stderr_tail));
            async move {
                if let Err(error) = writing.await {
                    let reporting = report_closed_input(&inbox, &child, &stderr_tail, &error);
                    stop.run_until_cancelled(reporting).await;
                }
            }
        };
        let reading = read(
            output,
            limits,
            inbox,
            Arc::clone(&child),
            Arc::clone(&stderr_tail),
        );
        let reading = stop.clone().run_until_cancelled_owned(reading);
        let work = Box::pin(async move {
            tokio::join!(reading, writing);
        });
        let link = Self {
            input,
            child,
            stderr_tail,
            stop,
        };
        Ok((link, work))
    }

    /// Queues a message for the process. A message that can no longer be sent is dropped: the end of
    /// the process is reported by its reader.
    pub(crate) fn send(room: Room<'_>, outgoing: Outgoing) {
        StdinQueue::send(room, outgoing);
    }

    pub(crate) async fn room(&self) -> Room<'_> {
        self.input.room().await
    }

    pub(crate) fn stderr_tail(&self) -> Vec<String> {
        match self.child.try_lock() {
            Ok(child) => match &*child {
                Some(child) => child.stderr_tail(),
                None => lock(&self.stderr_tail).clone(),
            },
            Err(_) => lock(&self.stderr_tail).clone(),
        }
    }

    /// The process, unless it has ended.
    pub(crate) async fn process(&self) -> Option<ProcessInfo> {
        let child = self.child.lock().await;
        let child = child.as_ref()?;
        Some(ProcessInfo::new(child.id(), child.stderr_tail()))
    }

    /// Closes the child's input, and stops the child.
    pub(crate) async fn close(&self, grace: Grace) {
        self.input.close();
        self.stop.cancel();
        let running = self.child.lock().await.take();
        if let Some(running) = running {
            running.stop(grace).await;
        }
    }
}

impl Drop for StdioLink {
    fn drop(&mut self) {
        self.input.close();
        self.stop.cancel();
    }
}

/// Ends the connection of a process that no longer reads its input: no request can reach it. Its reader
/// does not notice if another process still holds the output open, such as one that it has started. If
/// none does, the reader reports the reason before.
async fn report_closed_input(
    inbox: &Inbox,
    child: &AsyncMutex<Option<Child>>,
    stderr_tail: &Mutex<Vec<String>>,
    error: &io::Error,
) {
    tracing::debug!(%error, "the server's process takes no more input");
    tokio::time::sleep(CLOSED_INPUT_TIMEOUT).await;
    let reason = exit_reason(child, stderr_tail, "closed its input").await;
    inbox.take(Incoming::Closed(LinkError::Closed(reason)));
}

async fn read(
    mut output: ChildOutput,
    limits: Limits,
    inbox: Inbox,
    child: Arc<AsyncMutex<Option<Child>>>,
    stderr_tail: Arc<Mutex<Vec<String>>>,
) {
    let mut decoder = LineDecoder::new(limits.max_bytes);
    let mut buffer = BytesMut::with_capacity(READ_BUFFER_BYTES);
    let end = loop {
        match output.read_buf(&mut buffer).await {
            Ok(0) => break None,
            Ok(_) => {}
            Err(error) => break Some(error),
        }
        while let Some(line) = decoder.next(&mut buffer) {
            match line {
                Line::Complete(bytes) => {
                    decoded(&bytes, &limits, None, |incoming| inbox.take(incoming));
                }
                Line::TooLong {
                    discarded,
                    envelopes,
                } => {
                    let limit = limits.max_bytes;
                    rejected::too_large(discarded, limit, envelopes, |incoming| {
                        inbox.take(incoming);
                    });
                }
            }
        }
        // Messages share the buffer that they were read into.
        if buffer.capacity() - buffer.len() < READ_BUFFER_MIN_FREE_BYTES {
            buffer.reserve(READ_BUFFER_BYTES);
        }
    };
    let reason = match end {
        Some(error) => format!("reading from the server's process failed: {error}"),
        None => exit_reason(&child, &stderr_tail, "closed its output").await,
    };
    inbox.take(Incoming::Closed(LinkError::Closed(reason)));
}

/// Why the process closed a pipe: it has ended, or else `observed`.
async fn exit_reason(
    child: &AsyncMutex<Option<Child>>,
    stderr_tail: &Mutex<Vec<String>>,
    observed: &str,
) -> String {
    let mut child = child.lock().await;
    let Some(running) = child.as_mut() else {
        return "the server's process was stopped".to_owned();
    };
    let report: Option<ExitReport> = tokio::time::timeout(EXIT_STATUS_TIMEOUT, running.exited())
        .await
        .ok();
    *lock(stderr_tail) = running.stderr_tail();
    match report {
        Some(report) => {
            child.take();
            format!("the server's process {report}")
        }
        None => format!("the server's process {observed}"),
    }
}
