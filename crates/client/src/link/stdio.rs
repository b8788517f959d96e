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
/// How long to wait for the exit status after the output was closed.
const EXIT_STATUS_TIMEOUT: Duration = Duration::from_millis(500);

/// How long a process that takes no more input may take to exit before the connection counts as lost.
const CLOSED_INPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// A server that is a child process of ours.
pub(crate) struct StdioLink {
    input: StdinQueue,
    child: Arc<AsyncMutex<Option<Child>>>,
    last_words: Arc<Mutex<Vec<String>>>,
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
        let last_words = Arc::new(Mutex::default());
        let (input, writing) = StdinQueue::new(input);
        let stop = CancellationToken::new();
        let writing = {
            let (inbox, stop) = (Arc::clone(&inbox), stop.clone());
            async move {
                if let Err(error) = writing.await {
                    let reporting = report_closed_input(&inbox, &error);
                    stop.run_until_cancelled(reporting).await;
                }
            }
        };
        let reading = read(
            output,
            limits,
            inbox,
            Arc::clone(&child),
            Arc::clone(&last_words),
        );
        let reading = stop.clone().run_until_cancelled_owned(reading);
        let work = Box::pin(async move {
            tokio::join!(reading, writing);
        });
        let link = Self {
            input,
            child,
            last_words,
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

    pub(crate) fn last_words(&self) -> Vec<String> {
        match self.child.try_lock() {
            Ok(child) => match &*child {
                Some(child) => child.stderr_tail(),
                None => lock(&self.last_words).clone(),
            },
            Err(_) => lock(&self.last_words).clone(),
        }
    }

    /// The process, unless it has ended.
    pub(crate) async fn process(&self) -> Option<ProcessInfo> {
        let child = self.child.lock().await;
        let child = child.as_ref()?;
        Some(ProcessInfo::new(child.id(), child.stderr_tail()))
    }

    /// Closes the child's input, and sees to it that it ends.
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

/// Ends the connection of a process that lives on without reading its input: no request can reach it.
/// If the process has exited, its reader reports the reason before.
async fn report_closed_input(inbox: &Inbox, error: &io::Error) {
    tracing::debug!(%error, "the server's process takes no more input");
    tokio::time::sleep(CLOSED_INPUT_TIMEOUT).await;
    let reason = "the server's process closed its input".to_owned();
    inbox.take(Incoming::Closed(LinkError::Closed(reason)));
}

async fn read(
    mut output: ChildOutput,
    limits: Limits,
    inbox: Inbox,
    child: Arc<AsyncMutex<Option<Child>>>,
    last_words: Arc<Mutex<Vec<String>>>,
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
        None => exit_reason(&child, &last_words).await,
    };
    inbox.take(Incoming::Closed(LinkError::Closed(reason)));
}

/// Why the process closed its output.
async fn exit_reason(child: &AsyncMutex<Option<Child>>, last_words: &Mutex<Vec<String>>) -> String {
    let mut child = child.lock().await;
    let Some(running) = child.as_mut() else {
        return "the server's process was stopped".to_owned();
    };
    let report: Option<ExitReport> = tokio::time::timeout(EXIT_STATUS_TIMEOUT, running.exited())
        .await
        .ok();
    *lock(last_words) = running.stderr_tail();
    match report {
        Some(report) => {
            child.take();
            format!("the server's process {report}")
        }
        None => "the server's process closed its output".to_owned(),
    }
}
