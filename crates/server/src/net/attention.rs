//! Staying awake for a client that asks one thing after the other.
//!
//! A thread that waits for the system has to be woken, and where a processor had gone idle
//! meanwhile, that takes longer than most answers. So while a single request is under way, or was
//! just answered, we look for ourselves whether something came, for a moment, if the last time it
//! did come within such a moment. Who asks now and then, or waits for a slow tool, or is one of
//! many, costs nothing; and whoever else wants the processor has it.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http::Response;
use http_body::Body as _;
use pin_project_lite::pin_project;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio_util::task::TaskTracker;

use super::body::Body;
use super::company::{Company, Place};

/// How long we look: with 50 µs, answers of a quick server behind us came too late; with 120 they did
/// not.
const MOMENT: Duration = Duration::from_micros(150);

/// From how many bytes on an answer waits for no others.
const LONG: u64 = 64 * 1024;

/// Looks, on a task of its own, until this is dropped.
#[derive(Debug)]
pub(super) struct Attention {
    shared: Arc<Shared>,
    company: Arc<Company>,
    task: AbortHandle,
}

impl Attention {
    pub(super) fn spawn() -> Self {
        let shared = Arc::new(Shared {
            rhythm: Rhythm::default(),
            epoch: now(),
            is_looking: AtomicBool::new(false),
            wanted: Notify::new(),
        });
        let task = TaskTracker::new()
            .spawn(Arc::clone(&shared).look())
            .abort_handle();
        Self {
            shared,
            company: Arc::default(),
            task,
        }
    }

    /// A request has come, which `work` answers.
    pub(super) fn to<F: Future>(&self, work: F) -> Attended<F> {
        let shared = Arc::clone(&self.shared);
        shared.rhythm.begin(|| shared.now());
        Attended {
            stage: Stage::Working { work },
            under_way: UnderWay(shared),
            company: Arc::clone(&self.company),
        }
    }
}

impl Drop for Attention {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pin_project! {
    /// A request that is answered; under way until this is dropped.
    pub(super) struct Attended<F: Future> {
        #[pin]
        stage: Stage<F>,
        under_way: UnderWay,
        company: Arc<Company>,
    }
}

pin_project! {
    #[project = StageProjection]
    enum Stage<F: Future> {
        Working {
            #[pin]
            work: F,
        },
        // Waits for others, until it is asked for again.
        Answered {
            answer: Option<(F::Output, Place)>,
        },
    }
}

impl<F: Future<Output = Response<Body>>> Future for Attended<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        match this.stage.as_mut().project() {
            StageProjection::Working { work } => match work.poll(cx) {
                Poll::Ready(answer) => {
                    // What is long is near now, and no longer when others have had their turn.
                    let is_long = answer.body().size_hint().lower() > LONG;
                    let Some(place) = (!is_long).then(|| this.company.expect()).flatten() else {
                        return Poll::Ready(answer);
                    };
                    let answer = Some((answer, place));
                    this.stage.set(Stage::Answered { answer });
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
                Poll::Pending => {
                    this.under_way.0.attend();
                    Poll::Pending
                }
            },
            StageProjection::Answered { answer } => match answer.take() {
                Some((answer, _place)) => Poll::Ready(answer),
                None => Poll::Pending,
            },
        }
    }
}

struct UnderWay(Arc<Shared>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.rhythm.end(|| self.0.now());
        self.0.attend();
    }
}

#[derive(Debug)]
struct Shared {
    rhythm: Rhythm,
    epoch: Instant,
    is_looking: AtomicBool,
    wanted: Notify,
}

impl Shared {
    fn now(&self) -> Duration {
        now().saturating_duration_since(self.epoch)
    }

    /// Has the task look, if that is worth while and it does not already.
    fn attend(&self) {
        if self.rhythm.is_quick() && !self.is_looking.swap(true, Ordering::Relaxed) {
            self.wanted.notify_one();
        }
    }

    #[expect(clippy::infinite_loop, reason = "it ends with who has it look")]
    async fn look(self: Arc<Self>) -> Infallible {
        loop {
            self.wanted.notified().await;
            while self.rhythm.is_quick() && self.rhythm.is_fresh(self.now()) {
                let last = self.rhythm.last.load(Ordering::Relaxed);
                // The runtime asks the system for news, without waiting, before it comes back.
                tokio::task::yield_now().await;
                if self.rhythm.last.load(Ordering::Relaxed) == last {
                    std::thread::yield_now();
                }
            }
            self.is_looking.store(false, Ordering::Relaxed);
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a clock that is paused waits for us, and we would for it"
)]
fn now() -> Instant {
    Instant::now()
}

/// How soon things follow one another, as seen when there is one request at a time. What threads
/// see of each other late or not at all costs them a moment, or saves them one.
#[derive(Debug, Default)]
struct Rhythm {
    under_way: AtomicUsize,
    /// When the last request came or was answered, in nanoseconds.
    last: AtomicU64,
    /// Whether the last answer came within a moment.
    answers_are_quick: AtomicBool,
    /// Whether the last request came within a moment of the answer before.
    questions_are_quick: AtomicBool,
}

impl Rhythm {
    fn begin(&self, now: impl FnOnce() -> Duration) {
        if self.under_way.fetch_add(1, Ordering::Relaxed) == 0 {
            self.note(now(), &self.questions_are_quick);
        }
    }

    fn end(&self, now: impl FnOnce() -> Duration) {
        if self.under_way.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.note(now(), &self.answers_are_quick);
        }
    }

    fn note(&self, now: Duration, is_quick: &AtomicBool) {
        is_quick.store(self.is_fresh(now), Ordering::Relaxed);
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        self.last.store(now, Ordering::Relaxed);
    }

    /// Whether what comes next is likely to come within a moment.
    fn is_quick(&self) -> bool {
        match self.under_way.load(Ordering::Relaxed) {
            0 => self.questions_are_quick.load(Ordering::Relaxed),
            1 => self.answers_are_quick.load(Ordering::Relaxed),
            _ => false,
        }
    }

    /// Whether the last thing happened a moment ago.
    fn is_fresh(&self, now: Duration) -> bool {
        let last = Duration::from_nanos(self.last.load(Ordering::Relaxed));
        now.saturating_sub(last) <= MOMENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_micros(20);
    const LATE: Duration = Duration::from_secs(1);

    /// A client at a clock of its own.
    struct Client {
        rhythm: Rhythm,
        now: Duration,
    }

    impl Client {
        fn new() -> Self {
            let mut client = Self {
                rhythm: Rhythm::default(),
                now: LATE,
            };
            // How it is before anything was seen.
            assert!(!client.rhythm.is_quick());
            client.ask(SOON);
            client.answered(LATE);
            client
        }

        fn ask(&mut self, after: Duration) {
            self.now += after;
            self.rhythm.begin(|| self.now);
        }

        fn answered(&mut self, after: Duration) {
            self.now += after;
            self.rhythm.end(|| self.now);
        }

        fn is_awaited(&self) -> bool {
            self.rhythm.is_quick() && self.rhythm.is_fresh(self.now)
        }
    }

    #[test]
    fn a_client_is_awaited_that_came_back_at_once() {
        let mut client = Client::new();
        assert!(!client.is_awaited());
        client.ask(SOON);
        client.answered(SOON);
        assert!(client.is_awaited());
        client.now += MOMENT;
        assert!(client.is_awaited());
        client.now += SOON;
        assert!(!client.is_awaited());
    }

    #[test]
    fn a_client_that_takes_its_time_is_not_awaited() {
        let mut client = Client::new();
        client.ask(SOON);
        client.answered(SOON);
        client.ask(LATE);
        client.answered(SOON);
        assert!(!client.is_awaited());
    }

    #[test]
    fn an_answer_is_awaited_if_the_last_one_was_quick() {
        let mut client = Client::new();
        client.ask(LATE);
        assert!(!client.is_awaited());
        client.answered(SOON);
        client.ask(LATE);
        assert!(client.is_awaited());
        client.answered(LATE);
        client.ask(SOON);
        assert!(!client.is_awaited());
    }

    #[test]
    fn of_many_none_is_awaited() {
        let mut client = Client::new();
        client.ask(SOON);
        client.answered(SOON);
        client.ask(SOON);
        assert!(client.is_awaited());
        client.ask(SOON);
        assert!(!client.is_awaited());
        client.answered(SOON);
        assert!(client.is_awaited());
    }
}
