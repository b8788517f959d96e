//! Processes that a server started, and must end.

use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::patience::PATIENCE;

/// A process of somebody else's.
#[derive(Debug)]
pub struct Process {
    id: String,
    /// Readable when it has ended, whether or not somebody has collected it; `None` if nothing is
    /// left of it.
    handle: Option<OwnedFd>,
}

impl Process {
    /// The process of this id.
    pub fn of(id: &str) -> Self {
        let number = id.parse().ok().and_then(Pid::from_raw);
        let number = number.unwrap_or_else(|| panic!("{id:?} is no process id"));
        let handle = match pidfd_open(number, PidfdFlags::empty()) {
            Ok(handle) => Some(handle),
            Err(Errno::SRCH) => None,
            Err(error) => panic!("cannot watch process {id}: {error}"),
        };
        let id = id.to_owned();
        Self { id, handle }
    }

    /// Waits until it has ended.
    pub async fn ended(self) {
        let Self { id, handle } = self;
        let Some(handle) = handle else { return };
        let patience = Timespec::try_from(PATIENCE).ok();
        // The runtime of the test may be what ends it, so another thread waits.
        let waiting = tokio::task::spawn_blocking(move || {
            let mut handles = [PollFd::new(&handle, PollFlags::IN)];
            poll(&mut handles, patience.as_ref())
        });
        match waiting.await {
            Ok(Ok(1..)) => {}
            other => panic!("waited {PATIENCE:?} for process {id} to end: {other:?}"),
        }
    }
}
