//! Child processes: start, supervision and termination.
//!
//! Every process of the project starts here. Each child is put into a process group, so that
//! signals reach its own children as well (`npx` starts `node`, and does not forward signals). The
//! group ends when Plexus ends, even if Plexus is killed: see `Group`. A process that leaves its
//! group with `setsid`, as daemons do, is not tracked.

mod exit;
mod group;
mod program;
mod stderr;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use tokio::process::Command;
use tokio::time::timeout;

pub use self::exit::ExitReport;
use self::group::{Group, SHELL};
pub use self::program::{Program, StartError};
use self::stderr::Stderr;

/// How long the standard error of a program that has ended is still read. It stays open while any
/// process holds it, such as a daemon that the program started.
const STDERR_DRAIN_TIMEOUT: Duration = Duration::from_millis(200);
/// How long to wait for the exit of a killed process. The kernel needs a moment to free its memory; a
/// process that is blocked in the kernel may never exit.
const KILL_WAIT_MAX: Duration = Duration::from_secs(5);

/// The standard input of a child. Dropping it asks the child to end.
pub type ChildInput = tokio::process::ChildStdin;

/// The standard output of a child.
pub type ChildOutput = tokio::process::ChildStdout;

/// The standard error of a child that is not read for us.
pub type ChildErrors = tokio::process::ChildStderr;

/// A running program, with all that it starts itself. Dropping it kills them at once.
#[derive(Debug)]
pub struct Child {
    process: tokio::process::Child,
    id: u32,
    group: Group,
    stderr: Stderr,
}

/// How long a child has for each way of being asked to end (LIFE-11, STDIO-12).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grace {
    /// After its input was closed, until SIGTERM.
    pub stdin: Duration,
    /// After SIGTERM, until SIGKILL.
    pub term: Duration,
}

impl Grace {
    /// `stdin` after the input was closed, then `term` after SIGTERM.
    pub const fn new(stdin: Duration, term: Duration) -> Self {
        Self { stdin, term }
    }

    /// The sum of both periods.
    pub(crate) fn total(self) -> Duration {
        self.stdin + self.term
    }
}

impl Default for Grace {
    fn default() -> Self {
        Self::new(Duration::from_secs(2), Duration::from_secs(2))
    }
}

impl Child {
    /// Starts `program`. Its standard error is read all the time, so that it never waits for us.
    ///
    /// Must be called within a tokio runtime.
    pub fn start(program: &Program) -> Result<(Self, ChildInput, ChildOutput), StartError> {
        Self::start_guarded(program, Path::new(SHELL))
    }

    /// Starts `program` with nothing to read, and hands out all that it writes. The caller
    /// must read both concurrently, else the program blocks; [`stderr_tail`](Self::stderr_tail) stays empty.
    ///
    /// Must be called within a tokio runtime.
    pub fn start_command(
        program: &Program,
    ) -> Result<(Self, ChildOutput, ChildErrors), StartError> {
        let (mut process, id, group) = spawn(program, Path::new(SHELL), Stdio::null())?;
        let streams = (process.stdout.take(), process.stderr.take());
        let (Some(output), Some(errors)) = streams else {
            return Err(StartError::incomplete(program));
        };
        let stderr = Stderr::read(None, program.shown_command().to_owned());
        let child = Self {
            process,
            id,
            group,
            stderr,
        };
        Ok((child, output, errors))
    }

    /// The id of the child. Its own children have other ids, in the same process group.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The last lines of its standard error: a bounded number of them, each of bounded length. Text
    /// that no line break has followed yet is the last one.
    pub fn stderr_tail(&self) -> Vec<String> {
        self.stderr.tail()
    }

    /// Waits until the program has ended; [`stderr_tail`](Self::stderr_tail) then has its last
    /// output. Its own children run on until the child is stopped or dropped.
    ///
    /// Dropping the future changes nothing; another call waits again, or reports again.
    pub async fn exited(&mut self) -> ExitReport {
        let report = self.reaped().await;
        timeout(STDERR_DRAIN_TIMEOUT, self.stderr.closed())
            .await
            .ok();
        report
    }

    /// Ends the program: waits for it to exit because its input was closed, then sends SIGTERM to
    /// its group, and finally SIGKILL. Drop the [`ChildInput`] first.
    ///
    /// The program counts as ended when every process that has its standard error open has ended,
    /// because a launcher may exit long before the server that it launched. Dropping the future
    /// kills the group at once.
    pub async fn stop(mut self, grace: Grace) -> ExitReport {
        if !self.ends_within(grace.stdin).await {
            self.group.signal(Signal::TERM);
            if !self.ends_within(grace.term).await {
                self.group.signal(Signal::KILL);
            }
        }
        let report = timeout(KILL_WAIT_MAX, self.reaped()).await;
        self.group.end().await;
        timeout(STDERR_DRAIN_TIMEOUT, self.stderr.closed())
            .await
            .ok();
        report.unwrap_or(ExitReport::Unknown)
    }

    fn start_guarded(
        program: &Program,
        shell: &Path,
    ) -> Result<(Self, ChildInput, ChildOutput), StartError> {
        let (mut process, id, group) = spawn(program, shell, Stdio::piped())?;
        let streams = (process.stdin.take(), process.stdout.take());
        let (Some(input), Some(output)) = streams else {
            return Err(StartError::incomplete(program));
        };
        let stderr = Stderr::read(process.stderr.take(), program.shown_command().to_owned());
        let child = Self {
            process,
            id,
            group,
            stderr,
        };
        Ok((child, input, output))
    }

    async fn reaped(&mut self) -> ExitReport {
        let status = self.process.wait().await;
        self.group.child_reaped();
        status.map_or(ExitReport::Unknown, ExitReport::from)
    }

    async fn ends_within(&mut self, grace: Duration) -> bool {
        let end = async {
            self.reaped().await;
            self.stderr.closed().await;
        };
        timeout(grace, end).await.is_ok()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // The runtime collects the exit statuses when it sees a dropped process end.
        self.group.signal(Signal::KILL);
    }
}

/// Starts a process in a guarded group, with pipes for what it writes.
fn spawn(
    program: &Program,
    shell: &Path,
    input: Stdio,
) -> Result<(tokio::process::Child, u32, Group), StartError> {
    let forming = Group::form(shell);
    let mut command = command(program.command.as_ref(), forming.id());
    command
        .args(&program.args)
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(cwd) = &program.cwd {
        command.current_dir(cwd);
    }
    for (name, value) in &program.env {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let process = command
        .spawn()
        .map_err(|error| StartError::new(program, error))?;
    let id = process
        .id()
        .ok_or_else(|| StartError::incomplete(program))?;
    Ok((process, id, forming.around(id)))
}

/// The one place where a process is described that is to be started.
#[expect(clippy::disallowed_methods, reason = "the place that the ban leads to")]
fn command(program: &std::ffi::OsStr, group: i32) -> Command {
    let mut command = Command::new(program);
    command.process_group(group).kill_on_drop(true);
    command
}
