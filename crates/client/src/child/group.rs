//! The process group of a child, and the guard that kills it when Plexus ends, so that no process
//! is orphaned.

use std::path::Path;
use std::process::Stdio;
use std::sync::Once;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;
use tokio::time::timeout;

use super::{KILL_WAIT_MAX, command};

/// What runs the guards; POSIX puts a shell there on every system.
pub(super) const SHELL: &str = "/bin/sh";

/// Waits for the end of its input, and then ends its own group, itself included. Until then it
/// ignores what the group is sent, except SIGKILL.
const GUARD_SCRIPT: &str =
    "trap '' HUP INT QUIT TERM; read -r line; kill -s TERM 0; sleep 2; kill -s KILL 0";

/// A child's process group.
///
/// Its leader is a guard: a shell that holds the reading end of a pipe of which only we hold the
/// other, and that never sees a byte on it. However we end, SIGKILL included, the system closes our
/// end, and the guard ends the group. This leaves no gap that a registry of children, kept by one
/// guard for all of them, would have:
///
/// - The guard is there before the child, and the child is in the group before its program runs, so
///   there is no moment at which our death leaves it alone.
/// - The number of the group is the guard's, and stays taken until we collect the guard's exit
///   status. A signal for the group therefore never meets strangers that were given the number.
///
/// For about a millisecond, until its trap is set, the guard is still sensitive to signals. One that
/// the child sends its own group in that time leaves the group without a guard.
#[derive(Debug)]
pub(super) struct Group {
    id: Option<Pid>,
    guard: Option<Child>,
}

/// A group that has no child yet, and perhaps no guard either.
pub(super) struct Forming {
    guard: Option<(Pid, Child)>,
}

impl Group {
    /// Starts a guard. Without one, as in a container that has no shell, the child leads its group
    /// itself, and our violent death leaves it to notice that its input has ended.
    pub(super) fn form(shell: &Path) -> Forming {
        static WARNING: Once = Once::new();

        let mut guard = command(shell.as_os_str(), 0);
        guard
            .args(["-c", GUARD_SCRIPT, "plexus-guard"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        match guard.spawn() {
            Ok(guard) => Forming {
                guard: guard.id().and_then(pid).map(|id| (id, guard)),
            },
            Err(error) => {
                WARNING.call_once(|| {
                    tracing::warn!(
                        shell = %shell.display(),
                        %error,
                        "cannot guard child processes: they may stay behind if plexus is killed"
                    );
                });
                Forming { guard: None }
            }
        }
    }

    /// Sends `signal` to all in the group.
    pub(super) fn signal(&self, signal: Signal) {
        if let Some(id) = self.id
            && let Err(error) = kill_process_group(id, signal)
        {
            tracing::debug!(%error, group = id.as_raw_pid(), "no process took the signal");
        }
    }

    /// To be called when the exit status of the child was collected.
    pub(super) fn child_reaped(&mut self) {
        // Without a guard the system may give the number to others once the last of the group has
        // ended, so what is left of the group goes now and the number is not used again.
        if self.guard.is_none() {
            self.signal(Signal::KILL);
            self.id = None;
        }
    }

    /// Kills what is left of the group, and collects the guard.
    pub(super) async fn end(&mut self) {
        self.signal(Signal::KILL);
        if let Some(guard) = &mut self.guard
            && let Ok(Ok(_)) = timeout(KILL_WAIT_MAX, guard.wait()).await
        {
            self.id = None;
        }
    }
}

impl Forming {
    /// What the system is told that the child's group is; zero means one of its own.
    pub(super) fn id(&self) -> i32 {
        self.guard.as_ref().map_or(0, |(id, _)| id.as_raw_pid())
    }

    /// The group, now that `child` is in it.
    pub(super) fn around(self, child: u32) -> Group {
        match self.guard {
            Some((id, guard)) => Group {
                id: Some(id),
                guard: Some(guard),
            },
            None => Group {
                id: pid(child),
                guard: None,
            },
        }
    }
}

fn pid(id: u32) -> Option<Pid> {
    i32::try_from(id).ok().and_then(Pid::from_raw)
}
