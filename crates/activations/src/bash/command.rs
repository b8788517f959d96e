//! One command while it runs.

use std::path::PathBuf;
use std::time::Duration;

use plexus_client::child::{
    Child, ChildErrors, ChildOutput, ExitReport, Grace, Program, StartError,
};
use plexus_service::{Context, Excerpt};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::MAX_OUTPUT;
use super::text::Decoder;

/// How much is read at a time.
const CHUNK: usize = 16 * 1024;
/// How long the outputs may be silent, once the shell has ended, before they are left to whatever
/// still holds them.
const SILENCE: Duration = Duration::from_millis(200);
/// How much is read of them then: more than a pipe holds.
const LAST_WORDS: usize = 1024 * 1024;
/// How long a command that is no longer wanted has between SIGTERM and SIGKILL.
const GRACE: Grace = Grace::new(Duration::ZERO, Duration::from_millis(500));

/// A running command. Dropping it ends the command, and all that it started.
pub(super) struct Command {
    child: Option<Child>,
    stdout: Stream<ChildOutput>,
    stderr: Stream<ChildErrors>,
    /// Where it is seen to that dropped ones end: a caller that cancels does not wait for that.
    ending: TaskTracker,
}

/// What came of a command.
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
    /// Starts `command` in a shell. Commands that must be ended are ended on `ending`.
    pub(super) fn start(
        command: String,
        cwd: Option<PathBuf>,
        ending: TaskTracker,
    ) -> Result<Self, StartError> {
        let mut program = Program::new("bash").arg("-c").arg(command);
        program.cwd = cwd;
        let (child, stdout, stderr) = Child::start_command(&program)?;
        Ok(Self {
            child: Some(child),
            stdout: Stream::new(stdout),
            stderr: Stream::new(stderr),
            ending,
        })
    }

    /// Streams what the command writes until it has ended, for `limit` at most.
    pub(super) async fn run(mut self, context: &Context, limit: Duration) -> Ended {
        let end = match timeout(limit, self.stream(context)).await {
            Ok(report) => End::Exited(report),
            Err(_late) => End::TimedOut,
        };
        match (&end, self.child.take()) {
            // What it left in the background is not asked.
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

    /// Both outputs are read at once, so that the command never waits with one for the other; it
    /// waits with both when the caller takes no more.
    async fn stream(&mut self, context: &Context) -> ExitReport {
        let mut exit = None;
        let mut last_words = 0;
        while self.stdout.is_open() || self.stderr.is_open() || exit.is_none() {
            let text = tokio::select! {
                text = self.stdout.read(), if self.stdout.is_open() => text,
                text = self.stderr.read(), if self.stderr.is_open() => text,
                report = exited(&mut self.child), if exit.is_none() => {
                    exit = Some(report);
                    continue;
                }
                () = tokio::time::sleep(SILENCE), if exit.is_some() => break,
            };
            if exit.is_some() {
                last_words += text.len();
                if last_words > LAST_WORDS {
                    break;
                }
            }
            if !text.is_empty() {
                context.stream_uncollected(text).await;
            }
        }
        exit.unwrap_or(ExitReport::Unknown)
    }

    /// Asks the command to end, then makes it. Its outputs stay open, and are read, so that it can
    /// say something in between without coming to harm.
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
            _ = child.stop(GRACE) => {}
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

/// One output of a command.
struct Stream<R> {
    pipe: Option<R>,
    chunk: Vec<u8>,
    decoder: Decoder,
    kept: Excerpt,
}

impl<R> Default for Stream<R> {
    fn default() -> Self {
        Self {
            pipe: None,
            chunk: vec![0; CHUNK],
            decoder: Decoder::default(),
            kept: Excerpt::new(MAX_OUTPUT),
        }
    }
}

impl<R: AsyncRead + Unpin> Stream<R> {
    fn new(pipe: R) -> Self {
        Self {
            pipe: Some(pipe),
            ..Self::default()
        }
    }

    /// What was kept of it.
    fn taken(&mut self) -> String {
        std::mem::take(self).kept.into_string()
    }

    fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// What was written next; nothing, perhaps. Dropping the future loses nothing.
    async fn read(&mut self) -> String {
        let count = match &mut self.pipe {
            Some(pipe) => pipe.read(&mut self.chunk).await,
            None => Ok(0),
        };
        // A pipe that cannot be read is as good as closed.
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
