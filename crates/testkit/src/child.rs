//! Servers as processes of their own.

use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::patience::within;

/// How a server ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Exit {
    /// Its exit code; `None` if it was killed.
    pub code: Option<i32>,
    /// What it wrote to its standard error.
    pub log: String,
}

/// What a program came to that ended by itself.
#[derive(Debug)]
#[non_exhaustive]
pub struct Finished {
    /// Its exit code; `None` if it was killed.
    pub code: Option<i32>,
    /// What it wrote to its standard output.
    pub output: String,
    /// What it wrote to its standard error.
    pub log: String,
}

/// Runs `binary` to its end.
pub async fn run(binary: impl AsRef<Path>, arguments: &[&str]) -> Finished {
    let child = spawn(binary.as_ref(), arguments);
    let output = within("the program to end", child.wait_with_output()).await;
    let output = output.unwrap_or_else(|error| panic!("the program is lost: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Finished {
        code: output.status.code(),
        output: text(&output.stdout),
        log: text(&output.stderr),
    }
}

/// A server that listens on a port of its own choice. Killed when dropped.
#[derive(Debug)]
pub struct Listening {
    child: Child,
    log: Log,
    url: String,
}

impl Listening {
    /// Starts `binary`, and waits until it says `listening on URL`.
    pub async fn start(binary: impl AsRef<Path>, arguments: &[&str]) -> Self {
        let mut child = spawn(binary.as_ref(), arguments);
        let mut log = Log::of(&mut child);
        let line = log.line_with("listening on ").await;
        let url = line.rsplit("listening on ").next().unwrap_or_default();
        let url = url.split_whitespace().next().unwrap_or_default().to_owned();
        Self { child, log, url }
    }

    /// The URL of the MCP endpoint.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The process.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits until the server has said `text` so many times.
    pub async fn said(&mut self, text: &str, times: usize) {
        let what = format!("{text:?} to be in the log of the server {times} times");
        within(&what, self.log.said(text, times)).await;
    }

    /// Waits for the server to end, which somebody else has asked it to do.
    pub async fn exit(mut self) -> Exit {
        let status = within("the server to end", self.child.wait()).await;
        let code = status.ok().and_then(|status| status.code());
        let log = self.log.all().await;
        Exit { code, log }
    }
}

/// Starts a server with pipes on all three of its streams. It is killed when dropped.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place where tests start children"
)]
pub(crate) fn spawn(binary: &Path, arguments: &[&str]) -> Child {
    Command::new(binary)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}", binary.display()))
}

/// The standard error of a child: read all the time, so that the child never waits for us.
#[derive(Debug)]
pub(crate) struct Log {
    text: Arc<Mutex<String>>,
    grown: watch::Receiver<()>,
    reader: JoinSet<()>,
}

impl Log {
    pub(crate) fn of(child: &mut Child) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let (growing, grown) = watch::channel(());
        let mut reader = JoinSet::new();
        if let Some(stderr) = child.stderr.take() {
            reader.spawn(read(stderr, Arc::clone(&text), growing));
        }
        Self {
            text,
            grown,
            reader,
        }
    }

    /// All that was written, once the child has closed it.
    pub(crate) async fn all(&mut self) -> String {
        within("the end of the log", async {
            while self.reader.join_next().await.is_some() {}
        })
        .await;
        self.so_far()
    }

    fn so_far(&self) -> String {
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        text.clone()
    }

    async fn said(&mut self, text: &str, times: usize) {
        while self.so_far().matches(text).count() < times {
            let grown = self.grown.changed().await;
            assert!(
                grown.is_ok() || self.so_far().matches(text).count() >= times,
                "the server ended without saying {text:?} {times} times"
            );
        }
    }

    async fn line_with(&mut self, wanted: &str) -> String {
        loop {
            let text = self.so_far();
            if let Some(line) = text.lines().find(|line| line.contains(wanted)) {
                return line.to_owned();
            }
            let what = format!("{wanted:?} in the log of the server");
            let grown = within(&what, self.grown.changed()).await;
            assert!(
                grown.is_ok() || self.so_far().contains(wanted),
                "the server ended without saying {wanted:?}; it said:\n{text}"
            );
        }
    }
}

async fn read(
    stderr: impl AsyncRead + Unpin,
    text: Arc<Mutex<String>>,
    growing: watch::Sender<()>,
) {
    let mut lines = BufReader::new(stderr).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let mut text = text.lock().unwrap_or_else(PoisonError::into_inner);
        text.push_str(&line);
        text.push('\n');
        drop(text);
        growing.send_replace(());
    }
}
