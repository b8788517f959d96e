//! Server processes.

use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::timeout::within;

/// The exit of a server.
#[derive(Debug)]
#[non_exhaustive]
pub struct Exit {
    /// The exit code; `None` if it was killed.
    pub code: Option<i32>,
    /// Its standard error output.
    pub log: String,
}

/// The exit and the output of a program.
#[derive(Debug)]
#[non_exhaustive]
pub struct Finished {
    /// The exit code; `None` if it was killed.
    pub code: Option<i32>,
    /// Its standard output.
    pub output: String,
    /// Its standard error output.
    pub log: String,
}

/// Runs `binary` until it exits.
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

/// A server that listens on a free port. Killed when dropped.
#[derive(Debug)]
pub struct ListeningServer {
    child: Child,
    log: Log,
    url: String,
}

impl ListeningServer {
    /// Starts `binary`, and waits for its line `listening on URL`.
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

    /// The process id.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits until the server has logged `text` this many times. Each record that it logs meanwhile may
    /// take [`TEST_TIMEOUT`](crate::TEST_TIMEOUT).
    pub async fn wait_for_log(&mut self, text: &str, times: usize) {
        self.log.wait_for_log(text, times).await;
    }

    /// Waits for the server to exit, without stopping it.
    pub async fn exit(mut self) -> Exit {
        let status = within("the server to end", self.child.wait()).await;
        let code = status.ok().and_then(|status| status.code());
        let log = self.log.all().await;
        Exit { code, log }
    }
}

/// Starts a server with pipes for stdin, stdout and stderr. It is killed when dropped.
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

/// The standard error of a child process, read continuously so that the child never blocks.
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

    /// The whole output, after the child has closed the stream.
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

    async fn wait_for_log(&mut self, text: &str, times: usize) {
        let what = format!("{text:?} to be in the log of the server {times} times");
        while self.count(text) < times {
            let grown = within(&what, self.grown.changed()).await;
            assert!(
                grown.is_ok() || self.count(text) >= times,
                "the server ended without saying {text:?} {times} times"
            );
        }
    }

    fn count(&self, text: &str) -> usize {
        let log = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        log.matches(text).count()
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
