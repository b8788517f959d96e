//! A running shell command.

use std::time::Duration;

use plexus_mcp_client::child::{
    Child, ChildErrors, ChildOutput, ExitReport, Grace, Program, StartError,
};
use plexus_mcp_core::{Context, Excerpt};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::text::Decoder;
use super::{CommandSettings, MAX_OUTPUT_BYTES};

/// Size of the read buffer.
const READ_BUFFER_BYTES: usize = 16 * 1024;
/// After the shell exited, the pipes are read until they are silent for this long. A background
/// process may keep them open.
const DRAIN_SILENCE: Duration = Duration::from_millis(200);
/// The maximum number of bytes that are read from each pipe then: more than a pipe buffer holds.
const MAX_DRAIN_BYTES: usize = 1024 * 1024;
/// How long a cancelled command has between SIGTERM and SIGKILL.
const TERMINATION_GRACE: Grace = Grace::new(Duration::ZERO, Duration::from_millis(500));

/// A running command. Dropping it ends the command, and all processes that it started.
pub(super) struct Command {
    child: Option<Child>,
    stdout: OutputStream<ChildOutput>,
    stderr: OutputStream<ChildErrors>,
    /// Runs the tasks that end cancelled commands, so that a caller that cancels does not wait.
    ending: TaskTracker,
}

/// The output and the exit of a command.
pub(super) struct Ended {
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) end: End,
}

/// How a command ended.
pub(super) enum End {
    Exited(ExitReport),
    TimedOut,
}

impl Command {
    /// Starts `command` in a shell. If it must be ended later, a task on `ending` does so.
    pub(super) fn start(
        command: String,
        settings: CommandSettings,
        ending: TaskTracker,
    ) -> Result<Self, StartError> {
        let mut program = Program::new("bash").arg("-c").arg(command);
        program.cwd = settings.cwd;
        for (name, value) in settings.env {
            program = program.env(name, value);
        }
        let (child, stdout, stderr) = Child::start_command(&program)?;
        Ok(Self {
            child: Some(child),
            stdout: OutputStream::new(stdout),
            stderr: OutputStream::new(stderr),
            ending,
        })
    }

    /// Streams the output of the command until it has ended, for `limit` at most.
    pub(super) async fn run(mut self, context: &Context, limit: Duration) -> Ended {
        let end = match timeout(limit, self.stream(context)).await {
            Ok(report) => End::Exited(report),
            Err(_late) => End::TimedOut,
        };
        match (&end, self.child.take()) {
            // Processes that the command left in the background are not waited for.
            (End::Exited(_), child) => drop(child),
            (End::TimedOut, Some(child)) => self.stop(child).await,
            (End::TimedOut, None) => {}
        }
        Ended {
            stdout: self.stdout.taken(),
            stderr: self.stderr.taken(),
            end,
        }
    }

    /// Both pipes are read at the same time, so that the command never blocks on one of them;
    /// a caller that reads slowly blocks both.
    async fn stream(&mut self, context: &Context) -> ExitReport {
        let mut exit = None;
        let mut drained_bytes = 0;
        while self.stdout.is_open() || self.stderr.is_open() || exit.is_none() {
            let (text, is_error) = tokio::select! {
                text = self.stdout.read(), if self.stdout.is_open() => (text, false),
                text = self.stderr.read(), if self.stderr.is_open() => (text, true),
                report = exited(&mut self.child), if exit.is_none() => {
                    exit = Some(report);
                    continue;
                }
                () = tokio::time::sleep(DRAIN_SILENCE), if exit.is_some() => break,
            };
            if exit.is_some() {
                drained_bytes += text.len();
                if drained_bytes > MAX_DRAIN_BYTES {
                    break;
                }
            }
            if text.is_empty() {
                continue;
            }
            if is_error {
                context.stderr(text).await;
            } else {
                context.stream_uncollected(text).await;
            }
        }
        exit.unwrap_or(ExitReport::Unknown)
    }

    /// Sends SIGTERM, then SIGKILL. The pipes are read meanwhile, so that the command can still
    /// write without SIGPIPE.
    async fn stop(&mut self, child: Child) {
        let unread = async {
            while self.stdout.is_open() || self.stderr.is_open() {
                tokio::select! {
                    _ = self.stdout.read(), if self.stdout.is_open() => {}
                    _ = self.stderr.read(), if self.stderr.is_open() => {}
                }
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            _ = child.stop(TERMINATION_GRACE) => {}
            () = unread => {}
        }
    }
}

impl Drop for Command {
    fn drop(&mut self) {
        let Some(child) = self.child.take() else {
            return;
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let mut command = Self {
                child: None,
                stdout: std::mem::take(&mut self.stdout),
                stderr: std::mem::take(&mut self.stderr),
                ending: self.ending.clone(),
            };
            let stopping = async move { command.stop(child).await };
            self.ending.spawn_on(stopping, &runtime);
        }
    }
}

/// One output stream of a command.
struct OutputStream<R> {
    pipe: Option<R>,
    chunk: Vec<u8>,
    decoder: Decoder,
    kept: Excerpt,
}

impl<R> Default for OutputStream<R> {
    fn default() -> Self {
        Self {
            pipe: None,
            chunk: vec![0; READ_BUFFER_BYTES],
            decoder: Decoder::default(),
            kept: Excerpt::new(MAX_OUTPUT_BYTES),
        }
    }
}

impl<R: AsyncRead + Unpin> OutputStream<R> {
    fn new(pipe: R) -> Self {
        Self {
            pipe: Some(pipe),
            ..Self::default()
        }
    }

    /// Takes the output that was kept.
    fn taken(&mut self) -> String {
        std::mem::take(self).kept.into_string()
    }

    fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Reads the next output, which may be empty. Dropping the future loses nothing.
    async fn read(&mut self) -> String {
        let count = match &mut self.pipe {
            Some(pipe) => pipe.read(&mut self.chunk).await,
            None => Ok(0),
        };
        // A pipe that cannot be read counts as closed.
        let bytes = self.chunk.get(..count.unwrap_or(0)).unwrap_or_default();
        let text = if bytes.is_empty() {
            self.pipe = None;
            self.decoder.finish()
        } else {
            self.decoder.decode(bytes)
        };
        self.kept.push(&text);
        text
    }
}

async fn exited(child: &mut Option<Child>) -> ExitReport {
    match child {
        Some(child) => child.exited().await,
        None => ExitReport::Unknown,
    }
}
