//! Streams without a server.

use futures_util::FutureExt;
use plexus_mcp_core::Principal;

use super::*;
use crate::replay_budget::ReplayBudget;

/// A stream for a request of `principal`, whose response is awaited.
fn stream(replay: Replay, budget: &Arc<ReplayBudget>, principal: &str) -> Arc<EventStream> {
    let streams = Arc::default();
    let share = budget.share(&Principal::new(principal));
    SessionStreams::open(&streams, replay, &share).1
}

fn small() -> Arc<EventStream> {
    let replay = Replay {
        messages: 8,
        bytes: 1000,
        time: Duration::from_secs(1),
        total_bytes: usize::MAX,
    };
    stream(replay, &ReplayBudget::new(usize::MAX), "kim")
}

fn fill(stream: &EventStream) {
    for number in 0..4 {
        stream.offer(Bytes::from(format!("message {number}")));
    }
}

/// C57: a sender waits for a client that reads slowly, and no message is lost.
#[tokio::test(start_paused = true)]
async fn a_slow_client_is_waited_for() {
    let stream = small();
    fill(&stream);
    assert!(stream.room().now_or_never().is_none(), "about to be read");
    let mut reader = stream.read(None);
    assert!(stream.room().now_or_never().is_none());
    for number in 1..=4 {
        assert!(matches!(reader.next(None).await, Read::Message(n, _) if n == number));
    }
    assert!(stream.room().now_or_never().is_some());
    stream.offer(Bytes::from(vec![b'x'; 500]));
    assert!(stream.room().now_or_never().is_none(), "bytes count, too");
}

#[tokio::test(start_paused = true)]
async fn senders_do_not_wait_for_a_dropped_or_stalled_reader() {
    let stream = small();
    let reader = stream.read(None);
    fill(&stream);
    stream.stop_waiting();
    let ((), ()) = tokio::join!(async { drop(reader) }, stream.room());

    let mut reader = stream.read(None);
    assert!(stream.room().now_or_never().is_none());
    let began = Instant::now();
    stream.room().await;
    assert_eq!(began.elapsed(), CLIENT_STALL_TIMEOUT);
    assert!(stream.room().now_or_never().is_some(), "once is enough");
    // After the client reads again, senders wait for it again.
    reader.next(None).await;
    fill(&stream);
    assert!(stream.room().now_or_never().is_none());
    stream.end(None);
    assert!(stream.room().now_or_never().is_some());
}

fn answer() -> EncodedResponse {
    EncodedResponse::new(200, Bytes::from_static(b"{}"))
}

/// The call and its response run on different threads.
#[test]
fn an_answer_without_other_messages_is_never_seen_before_the_end() {
    let streams: Vec<_> = (0..10_000)
        .map(|_| stream(Replay::default(), &ReplayBudget::new(usize::MAX), "kim"))
        .collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for stream in &streams {
                stream.end(Some(answer()));
            }
        });
        for stream in &streams {
            let beginning = loop {
                if let Some(beginning) = stream.peek() {
                    break beginning;
                }
                std::thread::yield_now();
            };
            assert!(matches!(beginning, Beginning::Answer(_)), "{beginning:?}");
        }
    });
}

/// An answer that the limits do not allow is no reason to wait for it.
#[test]
fn a_stream_that_was_given_up_has_no_answer() {
    let replay = Replay {
        messages: 1,
        bytes: 1,
        time: Duration::ZERO,
        total_bytes: usize::MAX,
    };
    let stream = stream(replay, &ReplayBudget::new(usize::MAX), "kim");
    stream.end(Some(EncodedResponse::new(
        200,
        Bytes::from_static(&[b' '; 100]),
    )));
    assert!(matches!(stream.peek(), Some(Beginning::Nothing)));
}

/// Streams of one session that end with an answer of this many bytes each, which is read.
fn answered(streams: &Arc<SessionStreams>, share: &Arc<ReplayShare>, bytes: usize) -> u64 {
    let (number, stream) = SessionStreams::open(streams, Replay::default(), share);
    stream.end(Some(EncodedResponse::new(200, vec![b'x'; bytes].into())));
    let mut reader = stream.read(Some(0));
    stream.stop_waiting();
    assert!(matches!(
        reader.next(None).now_or_never(),
        Some(Read::Message(1, _))
    ));
    number
}

/// The oldest streams of the principal that keeps the most are evicted. What another principal keeps
/// stays.
#[test]
fn the_budget_is_shared_fairly_and_the_oldest_messages_go_first() {
    let budget = ReplayBudget::new(100_000);
    let (kim, lee) = (Arc::default(), Arc::default());
    let share = budget.share(&Principal::new("kim"));
    let others = budget.share(&Principal::new("lee"));
    let quiet = answered(&lee, &others, 10_000);
    let numbers: Vec<_> = (0..20).map(|_| answered(&kim, &share, 10_000)).collect();
    let is_kept = |number: &u64| kim.get(*number).is_some_and(|it| it.can_resume(0));
    let kept: Vec<_> = numbers.iter().filter(|number| is_kept(number)).collect();
    assert!((6..=8).contains(&kept.len()), "{kept:?}");
    assert_eq!(
        kept,
        numbers
            .iter()
            .rev()
            .take(kept.len())
            .rev()
            .collect::<Vec<_>>()
    );
    assert!(lee.get(quiet).unwrap().can_resume(0));
    assert!(kim.get(numbers[0]).is_none(), "it takes no memory");
}

/// An answer whose response is about to begin is never evicted; one of a client that went away is.
#[test]
fn an_answer_on_its_way_is_kept() {
    let budget = ReplayBudget::new(10_000);
    let [waiting, gone] = ["kim", "lee"].map(|who| stream(Replay::default(), &budget, who));
    gone.stop_waiting();
    for stream in [&waiting, &gone] {
        stream.end(Some(EncodedResponse::new(200, vec![b'x'; 9_000].into())));
    }
    assert!(matches!(waiting.peek(), Some(Beginning::Answer(_))));
    assert!(!gone.can_resume(0));
}

/// Messages that may be dropped do not make a stream impossible to resume; answers and questions do.
#[test]
fn a_stream_without_its_answer_cannot_be_resumed() {
    let stream = small();
    let mut reader = stream.read(Some(0));
    stream.stop_waiting();
    stream.offer(Bytes::from_static(b"progress"));
    reader.next(None).now_or_never().unwrap();
    stream.evict(Evictable::Read);
    assert!(stream.can_resume(0));
    stream.push(Bytes::from_static(b"question"));
    reader.next(None).now_or_never().unwrap();
    assert!(stream.can_resume(0));
    stream.evict(Evictable::Read);
    assert!(!stream.can_resume(0) && !stream.can_resume(1));
    assert!(stream.can_resume(2), "the client has the question");
}

/// A stream that its client has probably read is kept for a short time.
#[tokio::test(start_paused = true)]
async fn a_stream_that_was_probably_read_expires_soon() {
    let replay = Replay::default();
    let [read, unread] = ["kim", "lee"].map(|who| {
        let stream = stream(replay, &ReplayBudget::new(usize::MAX), who);
        stream.end(Some(answer()));
        stream
    });
    read.expire_soon();
    assert!(!read.is_stale());
    tokio::time::advance(PROBABLY_READ_TTL).await;
    assert!(read.is_stale() && !unread.is_stale());
    tokio::time::advance(replay.time).await;
    assert!(unread.is_stale());
}

/// What streams use is returned when they are dropped.
#[test]
fn dropped_streams_use_nothing() {
    let budget = ReplayBudget::new(usize::MAX);
    let streams: Vec<_> = (0..10)
        .map(|_| stream(Replay::default(), &budget, "kim"))
        .collect();
    for stream in &streams {
        stream.push(Bytes::from_static(b"question"));
        stream.offer(Bytes::from_static(b"progress"));
    }
    let debug = format!("{budget:?}");
    assert!(!debug.contains("used: 0"), "{debug}");
    drop(streams);
    let debug = format!("{budget:?}");
    assert!(
        debug.contains("used: 0") && debug.contains("shares: Mutex { data: {}"),
        "{debug}"
    );
}

/// Equal log messages of a call are not one message, but equal list changes are.
#[tokio::test(start_paused = true)]
async fn only_changes_are_coalesced() {
    let stream = small();
    for _ in 0..3 {
        stream.offer(Bytes::from_static(b"retrying"));
        stream.offer_once(Bytes::from_static(b"list_changed"));
    }
    stream.end(None);
    let mut reader = stream.read(None);
    let mut messages = Vec::new();
    while let Read::Message(_, message) = reader.next(None).await {
        messages.push(message);
    }
    assert_eq!(
        messages,
        ["retrying", "list_changed", "retrying", "retrying"]
    );
}
