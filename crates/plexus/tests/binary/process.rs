//! A running `plexus`, with a bound on every wait.

use std::io::{self, BufRead, BufReader, PipeWriter, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

/// Far longer than anything here takes, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Says where the program keeps its data.
pub(crate) const DATA_DIR: &str = "PLEXUS_DATA_DIR";

/// The program, not started yet, in an environment that sets nothing about it.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place where these tests start the program"
)]
pub(crate) fn plexus(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plexus"));
    command
        .args(arguments)
        // Few tests are about what is offered if nothing is said.
        .env("PLEXUS_BUILTIN", "all")
        .env_remove("PLEXUS_LOG")
        .env_remove("BOSSMAN_DB_PATH")
        .env_remove("CONTEXTGRAPH_DB")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The program, running. It is killed if a test gives up on it.
pub(crate) struct Plexus {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
    /// What it keeps its data in, unless it was told otherwise.
    _data: TempDir,
}

/// How the program ended, and what it had left to say.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<String>,
    pub(crate) stderr: Vec<String>,
}

impl Plexus {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::spawn(&mut plexus(arguments))
    }

    pub(crate) fn spawn(command: &mut Command) -> Self {
        let data = tempfile::tempdir().unwrap();
        if !command.get_envs().any(|(name, _)| name == DATA_DIR) {
            command.env(DATA_DIR, data.path());
        }
        // Nor does it find what the user of this machine has configured.
        if !command.get_envs().any(|(name, _)| name == "HOME") {
            command
                .env("HOME", data.path())
                .env_remove("XDG_CONFIG_HOME");
        }
        let mut child = command.spawn().unwrap();
        Self {
            _data: data,
            stdin: child.stdin.take(),
            stdout: lines(child.stdout.take()),
            stderr: lines(child.stderr.take()),
            child,
        }
    }

    /// Writes a line to standard input.
    pub(crate) fn send(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The next line on standard output, which is one JSON-RPC message (STDIO-01, STDIO-02).
    pub(crate) fn receive(&self) -> Value {
        let line = next(&self.stdout).expect("standard output was closed");
        message(&line)
    }

    /// The next line on standard output.
    pub(crate) fn line(&self) -> String {
        next(&self.stdout).expect("standard output was closed")
    }

    /// Sends a line and gives the next message.
    pub(crate) fn ask(&mut self, line: &str) -> Value {
        self.send(line);
        self.receive()
    }

    /// The names of all tools, page by page, and anew if they change meanwhile. What else is said
    /// is passed over.
    pub(crate) fn tools(&mut self) -> Vec<String> {
        let (mut names, mut cursor) = (Vec::new(), None);
        loop {
            let params = cursor.as_ref().map(|cursor| json!({ "cursor": cursor }));
            let params = params.unwrap_or_else(|| json!({}));
            let list =
                json!({ "jsonrpc": "2.0", "id": "list", "method": "tools/list", "params": params });
            self.send(&list.to_string());
            let mut changed = false;
            let page = loop {
                let message = self.receive();
                if message["id"] == "list" {
                    break message;
                }
                changed |= message["method"] == "notifications/tools/list_changed";
            };
            if changed && cursor.is_some() {
                (names, cursor) = (Vec::new(), None);
                continue;
            }
            let tools = page["result"]["tools"].as_array().expect("a page of tools");
            let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
            names.extend(tools.iter().map(name));
            cursor = page["result"].get("nextCursor").cloned();
            if cursor.is_none() {
                return names;
            }
        }
    }

    /// Shakes hands in this revision, and gives the answer.
    pub(crate) fn initialize(&mut self, revision: &str) -> Value {
        let answer = self.ask(&format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{{}},"clientInfo":{{"name":"test","version":"0"}}}}}}"#
        ));
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        answer
    }

    /// The rest of the first line on standard error that has `start` in it, after `start`.
    pub(crate) fn wait_for_stderr(&self, start: &str) -> String {
        loop {
            let line = next(&self.stderr).expect("standard error was closed");
            if let Some((_, rest)) = line.split_once(start) {
                return rest.to_owned();
            }
        }
    }

    /// The process's number.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends the process as a crash would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    #[cfg(unix)]
    pub(crate) fn terminate(&self) {
        use rustix::process::{Pid, Signal, kill_process};

        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).unwrap();
    }

    /// Closes standard input, as a client does that has had enough.
    pub(crate) fn leave(&mut self) {
        self.stdin = None;
    }

    /// Closes standard input and waits for the end.
    pub(crate) fn end(&mut self) -> Ended {
        self.leave();
        self.wait()
    }

    /// Waits for the end.
    pub(crate) fn wait(&mut self) -> Ended {
        // Both close when the process ends, so the last wait is short.
        let stdout = std::iter::from_fn(|| next(&self.stdout)).collect();
        let stderr = std::iter::from_fn(|| next(&self.stderr)).collect();
        let code = self.child.wait().unwrap().code();
        Ended {
            code,
            stdout,
            stderr,
        }
    }
}

impl Drop for Plexus {
    fn drop(&mut self) {
        // Both fail if the process has ended, as it should have.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Reads one line as a JSON-RPC message.
pub(crate) fn message(line: &str) -> Value {
    let message: Value = serde_json::from_str(line).expect(line);
    assert_eq!(message["jsonrpc"], "2.0", "{line}");
    message
}

/// A pipe that nobody reads, nor ever will.
pub(crate) fn unread_pipe() -> PipeWriter {
    let (_, writer) = io::pipe().unwrap();
    writer
}

/// The lines of a pipe, read by a thread of its own; none if the pipe is not ours.
fn lines(pipe: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let lines = pipe
            .into_iter()
            .flat_map(|pipe| BufReader::new(pipe).lines());
        for line in lines.map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

fn next(lines: &Receiver<String>) -> Option<String> {
    match lines.recv_timeout(PATIENCE) {
        Ok(line) => Some(line),
        Err(RecvTimeoutError::Disconnected) => None,
        Err(RecvTimeoutError::Timeout) => panic!("nothing came within {PATIENCE:?}"),
    }
}
