//! A child process.

mod input;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::BytesMut;
use plexus_wire::{Limits, Line, LineDecoder};
use tokio::io::AsyncReadExt;
use tokio::sync::Mutex as AsyncMutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::input::Input;
use super::{Inbox, Incoming, Junk, LinkError, Outgoing, decoded};
use crate::child::{Child, ChildOutput, ExitReport, Grace, Program, StartError};
use crate::lock::lock;
use crate::status::ProcessInfo;

/// How much room there is to read into, and when there is too little of it.
const READ: usize = 64 * 1024;
const LITTLE: usize = 4 * 1024;
/// How long a process may take to say with which code it ended after its output did.
const EXIT: Duration = Duration::from_millis(500);

/// A server that is a child process of ours.
pub(crate) struct StdioLink {
    input: Arc<Input>,
    child: Arc<AsyncMutex<Option<Child>>>,
    last_words: Arc<Mutex<Vec<String>>>,
    stop: CancellationToken,
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
        let input = Arc::new(Input::new(input));
        let stop = CancellationToken::new();
        tasks.spawn(Arc::clone(&input).write());
        let reading = read(
            output,
            limits,
            inbox,
            Arc::clone(&child),
            Arc::clone(&last_words),
        );
        tasks.spawn(stop.clone().run_until_cancelled_owned(reading));
        Ok(Self {
            input,
            child,
            last_words,
            stop,
            tasks,
        })
    }

    /// Sends, if there is room. What cannot be sent any more counts as sent: the end of the
    /// process is told by its reader.
    pub(crate) fn try_send(&self, outgoing: Outgoing) -> Result<(), Outgoing> {
        self.input.try_send(outgoing)
    }

    pub(crate) async fn room(&self) {
        self.input.room().await;
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
    pub(crate) async fn close(&self) {
        self.input.close();
        self.stop.cancel();
        self.tasks.close();
        let running = self.child.lock().await.take();
        if let Some(running) = running {
            running.stop(Grace::default()).await;
        }
        self.tasks.wait().await;
    }
}

impl Drop for StdioLink {
    fn drop(&mut self) {
        self.input.close();
        self.stop.cancel();
    }
}

async fn read(
    mut output: ChildOutput,
    limits: Limits,
    inbox: Inbox,
    child: Arc<AsyncMutex<Option<Child>>>,
    last_words: Arc<Mutex<Vec<String>>>,
) {
    let mut decoder = LineDecoder::new(limits.max_bytes);
    let mut buffer = BytesMut::with_capacity(READ);
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
                Line::TooLong { .. } => inbox.take(Incoming::Junk(Junk::TooLong)),
            }
        }
        // What was read is others' until they are done with it; the rest of the buffer is ours.
        if buffer.capacity() - buffer.len() < LITTLE {
            buffer.reserve(READ);
        }
    };
    let reason = match end {
        Some(error) => format!("reading from the server's process failed: {error}"),
        None => farewell(&child, &last_words).await,
    };
    inbox.take(Incoming::Closed(LinkError::Closed(reason)));
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
