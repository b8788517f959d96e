//! A running `plexus` process, with a timeout on every wait.

use std::io::{self, BufRead, BufReader, PipeWriter, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

/// Test timeout, longer than any operation here takes even on a busy machine.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The variable with the data directory.
pub(crate) const DATA_DIR: &str = "PLEXUS_DATA_DIR";

/// The command of the program, in an environment without its variables.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place where these tests start the program"
)]
pub(crate) fn plexus(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plexus"));
    command
        .args(arguments)
        // Most tests need all built-in services, not the default selection.
        .env("PLEXUS_BUILTIN", "all")
        .env_remove("PLEXUS_LOG")
        .env_remove("BOSSMAN_DB_PATH")
        .env_remove("CONTEXTGRAPH_DB")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The same with this limit on open files.
#[cfg(unix)]
#[expect(
    clippy::disallowed_methods,
    reason = "the one place where these tests start the program"
)]
pub(crate) fn plexus_with_open_files(limit: u32, arguments: &[&str]) -> Command {
    let inner = plexus(arguments);
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("ulimit -n {limit} && exec \"$0\" \"$@\"")])
        .arg(inner.get_program())
        .args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A running process. It is killed if the test fails.
pub(crate) struct Plexus {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
    /// The data directory, unless the test set another.
    _data: TempDir,
}

/// The exit status of the process, and its remaining output.
#[derive(Debug)]
pub(crate) struct ProcessOutput {
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
        // The configuration of the user who runs the tests is not used either.
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

    /// The next message, without `list_changed` notifications: a gateway may send one of those
    /// whenever a server becomes ready.
    pub(crate) fn receive_past_list_changes(&self) -> Value {
        loop {
            let message = self.receive();
            let method = message["method"].as_str().unwrap_or_default();
            if !method.ends_with("/list_changed") {
                return message;
            }
        }
    }

    /// Sends a line and returns the next message that is not a `list_changed` notification.
    pub(crate) fn ask(&mut self, line: &str) -> Value {
        self.send(line);
        self.receive_past_list_changes()
    }

    /// The names of all tools, page by page. Starts again if the list changes meanwhile. Other
    /// messages are skipped.
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

    /// Performs the handshake in this revision, and returns the response.
    pub(crate) fn initialize(&mut self, revision: &str) -> Value {
        let answer = self.ask(&format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{{}},"clientInfo":{{"name":"test","version":"0"}}}}}}"#
        ));
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        answer
    }

    /// Waits for a line on standard error that contains `start`, and returns the text after it.
    pub(crate) fn wait_for_stderr(&self, start: &str) -> String {
        loop {
            let line = next(&self.stderr).expect("standard error was closed");
            if let Some((_, rest)) = line.split_once(start) {
                return rest.to_owned();
            }
        }
    }

    /// The process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills the process (SIGKILL).
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    #[cfg(unix)]
    pub(crate) fn terminate(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    #[cfg(unix)]
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        use rustix::process::{Pid, kill_process};

        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Closes standard input, like a client that disconnects.
    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Closes standard input and waits for the exit.
    pub(crate) fn end(&mut self) -> ProcessOutput {
        self.close_stdin();
        self.wait()
    }

    /// Waits for the exit.
    pub(crate) fn wait(&mut self) -> ProcessOutput {
        // Both streams close when the process exits, so the last wait is short.
        let stdout = std::iter::from_fn(|| next(&self.stdout)).collect();
        let stderr = std::iter::from_fn(|| next(&self.stderr)).collect();
        let code = self.child.wait().unwrap().code();
        ProcessOutput {
            code,
            stdout,
            stderr,
        }
    }
}

impl Drop for Plexus {
    fn drop(&mut self) {
        // Both fail if the process has exited already.
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

/// A pipe that is never read.
pub(crate) fn unread_pipe() -> PipeWriter {
    let (_, writer) = io::pipe().unwrap();
    writer
}

/// The lines of a pipe, read by a separate thread; empty if the pipe was not captured.
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
    match lines.recv_timeout(TEST_TIMEOUT) {
        Ok(line) => Some(line),
        Err(RecvTimeoutError::Disconnected) => None,
        Err(RecvTimeoutError::Timeout) => panic!("nothing came within {TEST_TIMEOUT:?}"),
    }
}
