//! A child process.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use plexus_wire::{Limits, Line, LineDecoder};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot};
use tokio_util::task::TaskTracker;

use super::{Inbox, Incoming, Junk, LinkError, Outgoing, QUEUE, decoded};
use crate::child::{Child, ChildInput, ChildOutput, ExitReport, Grace, Program, StartError};
use crate::lock::lock;
use crate::status::ProcessInfo;

const READ: usize = 64 * 1024;
/// How long a process may take to say with which code it ended after its output did.
const EXIT: Duration = Duration::from_millis(500);

/// A server that is a child process of ours.
pub(crate) struct StdioLink {
    lines: mpsc::Sender<Bytes>,
    child: Arc<AsyncMutex<Option<Child>>>,
    last_words: Arc<Mutex<Vec<String>>>,
    stop: Mutex<Option<oneshot::Sender<()>>>,
    tasks: TaskTracker,
}

impl StdioLink {
    pub(crate) fn start(
        program: &Program,
        limits: Limits,
        inbox: Inbox,
    ) -> Result<Self, StartError> {
        let (child, input, output) = Child::start(program)?;
        let child = Arc::new(AsyncMutex::new(Some(child)));
        let last_words = Arc::new(Mutex::default());
        let tasks = TaskTracker::new();
        let (lines, queue) = mpsc::channel(QUEUE);
        let (stop, stopped) = oneshot::channel();
        tasks.spawn(write(input, queue));
        tasks.spawn(read(
            output,
            limits,
            inbox,
            Arc::clone(&child),
            Arc::clone(&last_words),
            stopped,
        ));
        Ok(Self {
            lines,
            child,
            last_words,
            stop: Mutex::new(Some(stop)),
            tasks,
        })
    }

    /// Sends, if there is room. What cannot be sent any more counts as sent: the end of the
    /// process is told by its reader.
    pub(crate) fn try_send(&self, outgoing: Box<Outgoing>) -> Result<(), Box<Outgoing>> {
        match self.lines.try_reserve() {
            Ok(room) => {
                room.send(outgoing.message);
                Ok(())
            }
            Err(mpsc::error::TrySendError::Full(())) => Err(outgoing),
            Err(mpsc::error::TrySendError::Closed(())) => Ok(()),
        }
    }

    pub(crate) async fn room(&self) {
        drop(self.lines.reserve().await);
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
    pub(crate) fn process(&self) -> Option<ProcessInfo> {
        let child = self.child.try_lock().ok()?;
        let child = child.as_ref()?;
        Some(ProcessInfo::new(child.id(), child.stderr_tail()))
    }

    /// Closes the child's input, and sees to it that it ends.
    pub(crate) async fn close(self) {
        let Self {
            lines,
            child,
            stop,
            tasks,
            ..
        } = self;
        drop(lines);
        drop(stop);
        tasks.close();
        let running = child.lock().await.take();
        if let Some(running) = running {
            running.stop(Grace::default()).await;
        }
        tasks.wait().await;
    }
}

/// Writes what is queued with as few system calls as possible, until nobody sends any more.
async fn write(mut input: ChildInput, mut queue: mpsc::Receiver<Bytes>) {
    let mut batch = Vec::with_capacity(QUEUE);
    let mut buffer = BytesMut::new();
    while queue.recv_many(&mut batch, QUEUE).await > 0 {
        for message in batch.drain(..) {
            buffer.extend_from_slice(&message);
            buffer.extend_from_slice(b"\n");
        }
        let written = input.write_all(&buffer).await;
        buffer.clear();
        if let Err(error) = written {
            // The reader sees the end of the process, and says why.
            tracing::debug!(%error, "the server's process takes no input any more");
            return;
        }
        if let Err(error) = input.flush().await {
            tracing::debug!(%error, "the server's process takes no input any more");
            return;
        }
    }
}

async fn read(
    mut output: ChildOutput,
    limits: Limits,
    inbox: Inbox,
    child: Arc<AsyncMutex<Option<Child>>>,
    last_words: Arc<Mutex<Vec<String>>>,
    mut stopped: oneshot::Receiver<()>,
) {
    let mut decoder = LineDecoder::new(limits.max_bytes);
    let mut buffer = BytesMut::with_capacity(READ);
    let end = loop {
        let read = tokio::select! {
            read = output.read_buf(&mut buffer) => read,
            _ = &mut stopped => return,
        };
        match read {
            Ok(0) => break None,
            Ok(_) => {}
            Err(error) => break Some(error),
        }
        while let Some(line) = decoder.next(&mut buffer) {
            let incoming = match line {
                Line::Complete(bytes) => decoded(&bytes, &limits, None),
                Line::TooLong { .. } => vec![Incoming::Junk(Junk::TooLong)],
            };
            for incoming in incoming {
                if inbox.send(incoming).await.is_err() {
                    return;
                }
            }
        }
        buffer.reserve(READ);
    };
    let reason = match end {
        Some(error) => format!("reading from the server's process failed: {error}"),
        None => farewell(&child, &last_words).await,
    };
    // The connection's task may be gone already.
    drop(
        inbox
            .send(Incoming::Closed(LinkError::Closed(reason)))
            .await,
    );
}

/// How a process ended whose output did.
async fn farewell(child: &AsyncMutex<Option<Child>>, last_words: &Mutex<Vec<String>>) -> String {
    let mut child = child.lock().await;
    let Some(running) = child.as_mut() else {
        return "the server's process was stopped".to_owned();
    };
    let report: Option<ExitReport> = tokio::time::timeout(EXIT, running.exited()).await.ok();
    *lock(last_words) = running.stderr_tail();
    match report {
        Some(report) => {
            child.take();
            format!("the server's process {report}")
        }
        None => "the server's process closed its output".to_owned(),
    }
}
