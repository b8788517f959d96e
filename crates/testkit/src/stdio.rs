//! A client over the pipes of a server process.

use std::path::Path;

use plexus_mcp_protocol::Revision;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout};

use crate::child::{self, Exit, Log};
use crate::timeout::within;
use crate::transcript::Transcript;

/// Starts a server, writes to its standard input, and checks every line of its standard output. The
/// server is killed when this is dropped.
#[derive(Debug)]
pub struct StdioClient {
    child: Child,
    /// `None` once it is closed.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    log: Log,
    transcript: Transcript,
}

impl StdioClient {
    /// Starts `binary`.
    pub fn spawn(binary: impl AsRef<Path>, arguments: &[&str]) -> Self {
        let mut child = child::spawn(binary.as_ref(), arguments);
        let log = Log::of(&mut child);
        let input = child.stdin.take();
        let Some(output) = child.stdout.take() else {
            panic!("the server has no standard output");
        };
        Self {
            child,
            input,
            output: BufReader::new(output),
            log,
            // Before the handshake, errors have the format of the oldest revision.
            transcript: Transcript::new(Revision::V2024_11_05),
        }
    }

    /// Sends a message as one line.
    pub async fn send(&mut self, message: &Value) {
        self.send_line(message.to_string()).await;
    }

    /// Sends a line as it is. It may be an invalid message.
    pub async fn send_line(&mut self, line: impl AsRef<[u8]>) {
        self.transcript.sent(line.as_ref());
        let line = [line.as_ref(), b"\n"].concat();
        self.write(&line).await;
    }

    /// Sends a message without ending its line.
    pub async fn send_unfinished(&mut self, message: &Value) {
        let message = message.to_string();
        self.transcript.sent(message.as_bytes());
        self.write(message.as_bytes()).await;
    }

    /// The process id.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Receives the next message as JSON.
    pub async fn receive(&mut self) -> Value {
        let line = self.receive_line().await;
        serde_json::from_str(&line).unwrap_or_default()
    }

    /// The next message as text.
    pub async fn receive_line(&mut self) -> String {
        match self.next_line().await {
            Some(line) => line,
            None => panic!(
                "the server closed its output; its log: {}",
                self.log.all().await
            ),
        }
    }

    /// Closes the server's input. The server may continue to write.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Closes the server's input, and waits for its exit; returns its remaining messages.
    pub async fn finish(mut self) -> (Vec<Value>, Exit) {
        self.close_input();
        let mut rest = Vec::new();
        while let Some(line) = self.next_line().await {
            rest.push(serde_json::from_str(&line).unwrap_or_default());
        }
        let status = within("the server to end", self.child.wait()).await;
        let code = status.ok().and_then(|status| status.code());
        let log = self.log.all().await;
        (rest, Exit { code, log })
    }

    async fn write(&mut self, bytes: &[u8]) {
        let Some(input) = &mut self.input else {
            panic!("the input of the server is closed");
        };
        let written = within("the server to read its input", async {
            input.write_all(bytes).await?;
            input.flush().await
        });
        if let Err(error) = written.await {
            panic!("the server does not read its input: {error}");
        }
    }

    /// The next line, checked; `None` at the end.
    async fn next_line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = within("a line of the server", self.output.read_line(&mut line)).await;
        match read {
            Ok(0) => return None,
            Ok(_) => {}
            Err(error) => panic!("the server's output cannot be read: {error}"),
        }
        let message = line.strip_suffix('\n');
        let message =
            message.unwrap_or_else(|| panic!("the server left a line unfinished: {line}"));
        // STDIO-02: nothing but messages, one per line.
        self.transcript.received(message.as_bytes());
        Some(message.to_owned())
    }
}
