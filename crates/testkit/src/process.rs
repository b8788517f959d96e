//! Child processes of a server, which the server must end.

use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::timeout::TEST_TIMEOUT;

/// A process that is not a child of the test.
#[derive(Debug)]
pub struct ForeignProcess {
    id: String,
    /// Readable when the process has ended, whether or not its parent has reaped it; `None` if it
    /// has ended already.
    handle: Option<OwnedFd>,
}

impl ForeignProcess {
    /// The process with this id.
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

    /// Waits until the process has ended.
    pub async fn ended(self) {
        let Self { id, handle } = self;
        let Some(handle) = handle else { return };
        let timeout = Timespec::try_from(TEST_TIMEOUT).ok();
        // A separate thread waits, since the runtime of the test may be needed to end the process.
        let waiting = tokio::task::spawn_blocking(move || {
            let mut handles = [PollFd::new(&handle, PollFlags::IN)];
            poll(&mut handles, timeout.as_ref())
        });
        match waiting.await {
            Ok(Ok(1..)) => {}
            other => panic!("waited {TEST_TIMEOUT:?} for process {id} to end: {other:?}"),
        }
    }
}
