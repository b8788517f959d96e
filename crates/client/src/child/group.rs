//! The process group of a child, and the guard that kills it when Plexus ends, so that no process
//! is orphaned.

use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;
use tokio::time::timeout;

use super::{KILL_WAIT_MAX, command};

/// The shell that runs the guard. POSIX systems have one at this path.
pub(super) const SHELL: &str = "/bin/sh";

/// Waits for the end of its input, and then ends its own group, itself included. Until then it
/// ignores the signals of the group, except SIGKILL.
const GUARD_SCRIPT: &str =
    "trap '' HUP INT QUIT TERM; read -r line; kill -s TERM 0; sleep 2; kill -s KILL 0";

/// A child's process group.
///
/// Its leader is a guard: a shell that reads from a pipe whose other end only Plexus holds, and to
/// which nothing is ever written. When Plexus ends, SIGKILL included, the system closes that end,
/// and the guard ends the group. One guard for each child avoids two races that a single guard
/// with a registry of all children would have:
///
/// - The guard starts before the child, and the child is in the group before its program runs. So
///   the child is guarded from its first instruction.
/// - The group id is the guard's process id, which the system does not reuse until Plexus has
///   collected the guard's exit status. So a signal to the group never reaches an unrelated
///   process.
///
/// For about a millisecond, until its trap is set, the guard is sensitive to signals. If the child
/// signals its own group in that time, the group loses its guard.
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
    /// Starts a guard. Without one, for example in a container that has no shell, the child leads
    /// its group itself. If Plexus is then killed, the child sees only the end of its input.
    pub(super) fn form(shell: &Path) -> Forming {
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
                tracing::warn!(
                    shell = %shell.display(),
                    %error,
                    "cannot guard the child process: it may stay behind if plexus is killed"
                );
                Forming { guard: None }
            }
        }
    }

    /// Sends `signal` to all processes of the group.
    pub(super) fn signal(&self, signal: Signal) {
        if let Some(id) = self.id
            && let Err(error) = kill_process_group(id, signal)
        {
            tracing::debug!(%error, group = id.as_raw_pid(), "no process took the signal");
        }
    }

    /// To be called when the exit status of the child was collected.
    pub(super) fn child_reaped(&mut self) {
        // Without a guard, the system may reuse the group id once the last process of the group has
        // ended. So the rest of the group is killed now, and the id is not used again.
        if self.guard.is_none() {
            self.signal(Signal::KILL);
            self.id = None;
        }
    }

    /// Kills the rest of the group, and collects the guard.
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
    /// The group id for the child to join; zero creates a new group.
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
