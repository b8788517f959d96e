//! The tail of a child's standard error, which tells why it failed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::AsyncReadExt;
use tokio::process::ChildStderr;
use tokio::task::JoinSet;

/// How many lines are kept.
pub(super) const STDERR_TAIL_MAX_LINES: usize = 64;
/// How many bytes of a line are kept.
pub(super) const STDERR_LINE_MAX_BYTES: usize = 1024;
/// How many bytes are kept in all.
pub(super) const STDERR_TAIL_MAX_BYTES: usize = 16 * 1024;

const STDERR_READ_BYTES: usize = 8 * 1024;
/// One byte less than the longest character has.
const UTF8_CONTINUATION_MAX_BYTES: usize = 3;

/// Reads the standard error of a child until that is closed, or this is dropped.
#[derive(Debug)]
pub(super) struct Stderr {
    tail: Arc<Mutex<Tail>>,
    reader: JoinSet<()>,
}

impl Stderr {
    pub(super) fn read(pipe: Option<ChildStderr>, program: String) -> Self {
        let tail = Arc::default();
        let mut reader = JoinSet::new();
        if let Some(pipe) = pipe {
            reader.spawn(read(pipe, program, Arc::clone(&tail)));
        }
        Self { tail, reader }
    }

    pub(super) fn tail(&self) -> Vec<String> {
        let tail = lock(&self.tail);
        let unfinished = Some(&tail.unfinished).filter(|text| !text.is_empty());
        tail.lines.iter().chain(unfinished).cloned().collect()
    }

    /// Waits until the pipe is closed. May be called again.
    pub(super) async fn closed(&mut self) {
        while self.reader.join_next().await.is_some() {}
    }
}

#[derive(Debug, Default)]
struct Tail {
    lines: VecDeque<String>,
    bytes: usize,
    unfinished: String,
}

impl Tail {
    fn push(&mut self, line: String) {
        self.bytes += line.len();
        self.lines.push_back(line);
        while self.lines.len() > STDERR_TAIL_MAX_LINES || self.bytes > STDERR_TAIL_MAX_BYTES {
            let Some(oldest) = self.lines.pop_front() else {
                break;
            };
            self.bytes -= oldest.len();
        }
    }
}

async fn read(mut pipe: ChildStderr, program: String, tail: Arc<Mutex<Tail>>) {
    let mut chunk = vec![0; STDERR_READ_BYTES];
    let mut line = LineStart::default();
    // A pipe that cannot be read is as good as closed.
    while let Ok(count @ 1..) = pipe.read(&mut chunk).await {
        let mut parts = chunk
            .get(..count)
            .unwrap_or_default()
            .split(|b| *b == b'\n');
        line.extend(parts.next().unwrap_or_default());
        for part in parts {
            finish(&mut line, &program, &tail);
            line.extend(part);
        }
        lock(&tail).unfinished = line.text();
    }
    if !line.bytes.is_empty() {
        finish(&mut line, &program, &tail);
    }
}

fn finish(line: &mut LineStart, program: &str, tail: &Mutex<Tail>) {
    let text = line.text();
    line.bytes.clear();
    tracing::debug!(program, "stderr: {text}");
    let mut tail = lock(tail);
    tail.unfinished.clear();
    tail.push(text);
}

/// The beginning of the line that is being read; the rest of a long one is dropped.
#[derive(Default)]
struct LineStart {
    bytes: Vec<u8>,
}

impl LineStart {
    fn extend(&mut self, part: &[u8]) {
        // A few bytes more than are shown, so that a character at the cut is whole and falls away.
        let room =
            (STDERR_LINE_MAX_BYTES + UTF8_CONTINUATION_MAX_BYTES).saturating_sub(self.bytes.len());
        self.bytes.extend(part.iter().take(room));
    }

    fn text(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.bytes).into_owned();
        text.truncate(text.floor_char_boundary(STDERR_LINE_MAX_BYTES));
        if text.ends_with('\r') {
            text.pop();
        }
        text
    }
}

fn lock(tail: &Mutex<Tail>) -> MutexGuard<'_, Tail> {
    tail.lock().unwrap_or_else(PoisonError::into_inner)
}
