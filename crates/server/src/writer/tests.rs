use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};

use super::*;

/// Remembers each write call.
#[derive(Debug, Default, Clone)]
struct Recorder {
    calls: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl AsyncWrite for Recorder {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.calls.lock().unwrap().push(bytes.to_vec());
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

async fn written(messages: Vec<Bytes>) -> Vec<Vec<u8>> {
    let recorder = Recorder::default();
    let (sender, writer) = LineWriter::spawn(&TaskTracker::new(), recorder.clone(), 256);
    for message in messages {
        sender.send(message).await.unwrap();
    }
    drop(sender);
    writer.finished().await.unwrap();
    let calls = recorder.calls.lock().unwrap();
    calls.clone()
}

#[tokio::test]
async fn queued_messages_are_sent_in_one_write() {
    let messages = vec!["{\"n\":1}".into(), "{\"n\":2}".into(), "{\"n\":3}".into()];
    let calls = written(messages).await;
    assert_eq!(calls, [b"{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n"]);
}

#[tokio::test]
async fn a_large_message_keeps_its_place() {
    let large = vec![b'x'; MAX_JOINED_BYTES + 1];
    let messages = vec!["before".into(), large.clone().into(), "after".into()];
    let all = written(messages).await.concat();
    let expected = [b"before\n".as_slice(), &large, b"\nafter\n"].concat();
    assert!(
        all == expected,
        "the lines are not in the order they were sent"
    );
}

/// S002-02, S003-31: no message holds a line break.
#[tokio::test]
async fn a_message_laid_out_over_lines_becomes_one() {
    let message = Bytes::from_static(b"{\r\n  \"text\": \"a\\nb\"\n}");
    let lines = written(vec![message]).await.concat();
    assert_eq!(lines, b"{    \"text\": \"a\\nb\" }\n");
}

/// Substrate wrote to stdout from several tasks, and lines interleaved (S003).
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lines_of_many_tasks_never_interleave() {
    const TASKS: usize = 32;
    const EACH: usize = 100;
    // So narrow that each line takes several writes.
    let (output, reader) = tokio::io::duplex(13);
    let tracker = TaskTracker::new();
    let (sender, writer) = LineWriter::spawn(&tracker, output, 8);
    for task in 0..TASKS {
        let sender = sender.clone();
        tracker.spawn(async move {
            for number in 0..EACH {
                let filler = "=".repeat(number % 40);
                let line = format!("{task} {number} {filler}");
                sender.send(line.into()).await.unwrap();
            }
        });
    }
    drop(sender);

    let mut next = BTreeMap::<usize, usize>::new();
    let mut lines = BufReader::new(reader).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        let mut words = line.split(' ');
        let task = words.next().unwrap().parse().unwrap();
        let number: usize = words.next().unwrap().parse().unwrap();
        assert_eq!(words.next().unwrap(), "=".repeat(number % 40));
        assert_eq!(words.next(), None);
        let expected = next.entry(task).or_default();
        assert_eq!(number, *expected, "lines of task {task} are out of order");
        *expected += 1;
    }
    assert_eq!(next.len(), TASKS);
    assert!(next.values().all(|count| *count == EACH));
    writer.finished().await.unwrap();
}

#[tokio::test]
async fn a_reader_that_does_not_read_fills_the_queue() {
    let (output, mut reader) = tokio::io::duplex(1);
    let (sender, writer) = LineWriter::spawn(&TaskTracker::new(), output, 1);
    sender.send("taken by the writer".into()).await.unwrap();
    sender.send("queued".into()).await.unwrap();
    assert_eq!(sender.try_send("dropped".into()), Err(TrySendError::Full));

    let patient = sender.clone();
    let mut waiting = Box::pin(async move { patient.send("waited".into()).await });
    assert!((&mut waiting).now_or_never().is_none());

    let mut received = String::new();
    drop(sender);
    let (sent, read) = tokio::join!(waiting, reader.read_to_string(&mut received));
    sent.unwrap();
    read.unwrap();
    assert_eq!(received, "taken by the writer\nqueued\nwaited\n");
    writer.finished().await.unwrap();
}

#[tokio::test]
async fn senders_learn_that_the_output_failed() {
    let (output, reader) = tokio::io::duplex(64);
    let (sender, writer) = LineWriter::spawn(&TaskTracker::new(), output, 4);
    drop(reader);
    sender.send("not read".into()).await.unwrap();
    sender.closed().await;
    assert_eq!(sender.send("late".into()).await, Err(Closed));
    assert_eq!(sender.try_send("late".into()), Err(TrySendError::Closed));
    let error = writer.finished().await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

/// C57: a reader that is slow costs no more memory than a fast one, however long the messages.
#[tokio::test]
async fn queued_messages_are_bounded_in_bytes() {
    let (output, mut input) = tokio::io::duplex(1024);
    let (sender, writer) = LineWriter::spawn(&TaskTracker::new(), output, 1024);
    let message = Bytes::from(vec![b'x'; 64 * 1024]);
    let mut queued = 0;
    // The writer task takes the queued messages, but cannot write them.
    while tokio::time::timeout(Duration::from_millis(20), sender.send(message.clone()))
        .await
        .is_ok()
    {
        queued += message.len();
    }
    assert!(queued <= 4 * 1024 * 1024, "{queued} bytes wait");
    assert_eq!(sender.try_send(message.clone()), Err(TrySendError::Full));
    drop(sender);
    let mut read = Vec::new();
    input.read_to_end(&mut read).await.unwrap();
    assert_eq!(read.len(), queued + queued / message.len());
    writer.finished().await.unwrap();
}
