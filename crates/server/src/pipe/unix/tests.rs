//! Every kind of descriptor that a parent may pass (S000-03, S002-02).

use std::io::{Read, Write};
use std::os::unix::net::UnixStream as BlockingSocket;

use rustix::fs::{Mode, OFlags};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

fn is_nonblocking(descriptor: &impl AsFd) -> bool {
    let flags = rustix::fs::fcntl_getfl(descriptor).unwrap();
    flags.contains(OFlags::NONBLOCK)
}

#[tokio::test]
async fn a_pipe_is_read_to_its_end() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut input = input(&reader).unwrap().unwrap();
    assert!(matches!(input, StdInput::Pipe(_)));

    let mut received = [0; 6];
    writer.write_all(b"first\n").unwrap();
    input.read_exact(&mut received).await.unwrap();
    assert_eq!(&received, b"first\n");

    writer.write_all(b"second\n").unwrap();
    drop(writer);
    let mut rest = String::new();
    input.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "second\n");
}

#[tokio::test]
async fn a_pipe_closed_before_we_look_still_ends() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(b"all there is\n").unwrap();
    drop(writer);

    let mut received = String::new();
    let mut input = input(&reader).unwrap().unwrap();
    input.read_to_string(&mut received).await.unwrap();
    assert_eq!(received, "all there is\n");
}

#[tokio::test]
async fn a_pipe_is_written() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut output = output(&writer).unwrap().unwrap();
    assert!(matches!(output, StdOutput::Pipe(_)));

    output.write_all(b"answer\n").await.unwrap();
    drop((output, writer));
    let mut received = String::new();
    reader.read_to_string(&mut received).unwrap();
    assert_eq!(received, "answer\n");
}

/// A reader that has gone is an error to the caller, not a signal that ends the process.
#[tokio::test]
async fn writing_to_a_closed_pipe_is_a_broken_pipe() {
    let (reader, writer) = std::io::pipe().unwrap();
    let mut output = output(&writer).unwrap().unwrap();
    drop(reader);
    let error = output.write_all(b"anyone?\n").await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

/// The reader closes the pipe while a write waits for room: the write fails and does not hang.
#[tokio::test]
async fn a_waiting_write_learns_that_the_reader_has_gone() {
    let (reader, writer) = std::io::pipe().unwrap();
    let mut output = output(&writer).unwrap().unwrap();
    let larger_than_the_pipe = vec![b'x'; 4 << 20];
    let (written, ()) = tokio::join!(output.write_all(&larger_than_the_pipe), async {
        tokio::task::yield_now().await;
        drop(reader);
    });
    assert_eq!(written.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_descriptors_we_inherited_stay_blocking() {
    let (reader, writer) = std::io::pipe().unwrap();
    let _input = input(&reader).unwrap().unwrap();
    let _output = output(&writer).unwrap().unwrap();
    assert!(!is_nonblocking(&reader));
    assert!(!is_nonblocking(&writer));
}

#[tokio::test]
async fn a_socket_pair_is_polled_both_ways() {
    let (ours, mut theirs) = BlockingSocket::pair().unwrap();
    let mut input = input(&ours).unwrap().unwrap();
    let mut output = output(&ours).unwrap().unwrap();
    assert!(matches!(
        (&input, &output),
        (StdInput::Socket(_), StdOutput::Socket(_))
    ));

    theirs.write_all(b"ping\n").unwrap();
    let mut received = [0; 5];
    input.read_exact(&mut received).await.unwrap();
    assert_eq!(&received, b"ping\n");

    output.write_all(b"pong\n").await.unwrap();
    theirs.read_exact(&mut received).unwrap();
    assert_eq!(&received, b"pong\n");

    drop(theirs);
    assert_eq!(input.read(&mut received).await.unwrap(), 0);
    let error = output.write_all(b"anyone?\n").await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_named_pipe_whose_writer_has_gone_still_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
    let open = |flags| rustix::fs::open(&path, flags | OFlags::NONBLOCK, Mode::empty()).unwrap();
    let reader = open(OFlags::RDONLY);
    let mut writer = std::fs::File::from(open(OFlags::WRONLY));
    writer.write_all(b"named\n").unwrap();
    drop(writer);

    let mut received = String::new();
    let mut input = input(&reader).unwrap().unwrap();
    input.read_to_string(&mut received).await.unwrap();
    assert_eq!(received, "named\n");
}

#[tokio::test]
async fn files_and_devices_are_not_polled() {
    let file = tempfile::tempfile().unwrap();
    assert!(input(&file).unwrap().is_none());
    assert!(output(&file).unwrap().is_none());
    let device = std::fs::File::open("/dev/null").unwrap();
    assert!(input(&device).unwrap().is_none());
}
