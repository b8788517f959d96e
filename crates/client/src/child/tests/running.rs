//! Programs that run during a test, and helpers to observe them.

use std::time::Duration;

use rustix::process::{Pid, Signal, test_kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::{Instant, sleep, timeout};

use super::TEST_TIMEOUT;
use crate::child::{Child, ChildInput, ChildOutput, Program, StartError};

pub(super) struct Running {
    pub(super) child: Child,
    pub(super) input: ChildInput,
    pub(super) output: BufReader<ChildOutput>,
}

impl Running {
    pub(super) fn of(program: &Program) -> Self {
        Child::start(program).unwrap().into()
    }

    pub(super) async fn line(&mut self) -> String {
        let mut line = String::new();
        let count = within(self.output.read_line(&mut line)).await.unwrap();
        assert!(
            count > 0,
            "no more output; stderr: {:?}",
            self.child.stderr_tail()
        );
        line.trim_end().to_owned()
    }

    /// The tail of all output to standard error, read until the pipe is closed.
    pub(super) async fn whole_stderr(mut self) -> Vec<String> {
        within(self.child.stderr.closed()).await;
        self.child.stderr_tail()
    }

    /// The next line as a process id.
    pub(super) async fn pid(&mut self) -> Pid {
        parse(&self.line().await)
    }

    pub(super) fn child_pid(&self) -> Pid {
        parse(&self.child.id().to_string())
    }
}

impl From<(Child, ChildInput, ChildOutput)> for Running {
    fn from((child, input, output): (Child, ChildInput, ChildOutput)) -> Self {
        Self {
            child,
            input,
            output: BufReader::new(output),
        }
    }
}

pub(super) fn sh(script: &str) -> Program {
    Program::new("sh").args(["-c", script])
}

pub(super) fn parse(pid: &str) -> Pid {
    Pid::from_raw(pid.parse().unwrap()).unwrap()
}

pub(super) fn start_error(program: &Program) -> StartError {
    Child::start(program).expect_err("this program cannot be started")
}

pub(super) fn refused(program: &Program) -> String {
    start_error(program).to_string()
}

pub(super) fn exists(pid: Pid) -> bool {
    test_kill_process(pid).is_ok()
}

/// Whether a process exists and is not a zombie. Zombies that are not our children may stay for
/// ever if the init process of a container does not collect them.
pub(super) fn runs(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid()));
    let zombie = stat.is_ok_and(|stat| {
        let state = stat.rsplit(')').next().unwrap_or_default();
        state.trim_start().starts_with(['Z', 'X'])
    });
    exists(pid) && !zombie
}

#[cfg(target_os = "linux")]
pub(super) fn ignores(pid: Pid, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_pid())).unwrap();
    let ignored = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .unwrap();
    let ignored = u64::from_str_radix(ignored.trim(), 16).unwrap();
    ignored & (1 << (signal.as_raw() - 1)) != 0
}

pub(super) async fn within<F: Future>(future: F) -> F::Output {
    timeout(TEST_TIMEOUT, future)
        .await
        .expect("it did not happen")
}

/// Polls until `happened`, for conditions without a notification.
pub(super) async fn until(what: &str, mut happened: impl FnMut() -> bool) {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !happened() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        sleep(Duration::from_millis(5)).await;
    }
}
