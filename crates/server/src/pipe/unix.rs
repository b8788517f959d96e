//! Opens descriptors for polling, without a change to descriptors that other processes share.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
#[cfg(target_os = "linux")]
use std::{
    os::fd::{AsRawFd, BorrowedFd},
    path::PathBuf,
};

use rustix::fs::FileType;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::{StdInput, StdOutput};

/// A polled stream that reads `descriptor`, or `None` if it cannot be polled.
pub(super) fn input(descriptor: &impl AsFd) -> io::Result<Option<StdInput>> {
    Ok(match file_type(descriptor)? {
        FileType::Fifo => Some(StdInput::Pipe(receiver(descriptor)?)),
        FileType::Socket => Some(StdInput::Socket(socket(descriptor)?)),
        _ => None,
    })
}

/// A polled stream that writes to `descriptor`, or `None` if it cannot be polled.
pub(super) fn output(descriptor: &impl AsFd) -> io::Result<Option<StdOutput>> {
    Ok(match file_type(descriptor)? {
        FileType::Fifo => Some(StdOutput::Pipe(sender(descriptor)?)),
        FileType::Socket => Some(StdOutput::Socket(socket(descriptor)?)),
        _ => None,
    })
}

fn file_type(descriptor: &impl AsFd) -> io::Result<FileType> {
    let status = rustix::fs::fstat(descriptor)?;
    Ok(FileType::from_raw_mode(status.st_mode))
}

fn receiver(descriptor: &impl AsFd) -> io::Result<pipe::Receiver> {
    #[cfg(target_os = "linux")]
    if let Some(path) = reopenable(descriptor.as_fd())
        && let Ok(receiver) = pipe::OpenOptions::new().open_receiver(path)
    {
        return Ok(receiver);
    }
    pipe::Receiver::from_owned_fd(duplicate(descriptor)?)
}

fn sender(descriptor: &impl AsFd) -> io::Result<pipe::Sender> {
    #[cfg(target_os = "linux")]
    if let Some(path) = reopenable(descriptor.as_fd())
        && let Ok(sender) = pipe::OpenOptions::new().open_sender(path)
    {
        return Ok(sender);
    }
    pipe::Sender::from_owned_fd(duplicate(descriptor)?)
}

fn socket(descriptor: &impl AsFd) -> io::Result<UnixStream> {
    let socket = std::os::unix::net::UnixStream::from(duplicate(descriptor)?);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}

fn duplicate(descriptor: &impl AsFd) -> io::Result<OwnedFd> {
    descriptor.as_fd().try_clone_to_owned()
}

/// The path at which an anonymous pipe can be opened a second time.
///
/// `O_NONBLOCK` belongs to the open file description, which a duplicate shares with the parent,
/// with siblings and, after `2>&1`, with our own standard error: those would start to see
/// `EAGAIN`. A second opening has flags of its own.
///
/// A named pipe is left out. Opened without blocking after its last writer has gone, it never
/// reports the hang-up, and the end of file would go unnoticed.
#[cfg(target_os = "linux")]
fn reopenable(descriptor: BorrowedFd<'_>) -> Option<PathBuf> {
    let path = PathBuf::from(format!("/proc/self/fd/{}", descriptor.as_raw_fd()));
    let target = std::fs::read_link(&path).ok()?;
    target.to_str()?.starts_with("pipe:[").then_some(path)
}

#[cfg(test)]
mod tests;
