//! Connections that are in nobody's use.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::connection::Connection;
use super::origin::Origin;
use crate::lock::lock;

/// How long a connection is kept without use. Node and uvicorn close theirs after five seconds,
/// and a request that meets such a close on its way fails without a safe retry.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// How many unused connections are kept for each origin.
const MAX_IDLE: usize = 256;

#[derive(Default)]
pub(super) struct Pool {
    kept: Mutex<Kept>,
    tasks: TaskTracker,
}

#[derive(Default)]
struct Kept {
    /// Those of each origin. A client has few origins at a time, most often one.
    idle: Vec<(Origin, Vec<Idle>)>,
    /// Of the task that looks after them, while there is one.
    caretaker: Option<Waker>,
}

struct Idle {
    connection: Box<Connection>,
    since: Instant,
}

impl Pool {
    /// A connection to `origin`, the one that was used last.
    pub(super) fn take(&self, origin: &Origin) -> Option<Box<Connection>> {
        let mut kept = lock(&self.kept);
        let idle = kept.of(origin)?.pop()?;
        (idle.since.elapsed() < IDLE_TIMEOUT).then_some(idle.connection)
    }

    /// Keeps a connection for whoever needs one next.
    pub(super) fn put(self: &Arc<Self>, origin: &Origin, mut connection: Box<Connection>) {
        let mut kept = lock(&self.kept);
        let caretaker = kept.caretaker.get_or_insert_with(|| {
            self.tasks.spawn(take_care(Arc::downgrade(self)));
            Waker::noop().clone()
        });
        let mut cx = Context::from_waker(caretaker);
        if connection.poll_closed(&mut cx).is_ready() {
            return;
        }
        let since = Instant::now();
        let idle = Idle { connection, since };
        match kept.of(origin) {
            Some(others) if others.len() < MAX_IDLE => others.push(idle),
            Some(_) => {}
            None => kept.idle.push((origin.clone(), vec![idle])),
        }
    }
}

impl Kept {
    fn of(&mut self, origin: &Origin) -> Option<&mut Vec<Idle>> {
        let mut all = self.idle.iter_mut();
        all.find_map(|(of, idle)| (of == origin).then_some(idle))
    }

    /// Lets go of connections that were closed, or not used for long.
    fn tidy(&mut self, cx: &mut Context<'_>) {
        let now = Instant::now();
        self.idle.retain_mut(|(_, idle)| {
            idle.retain_mut(|idle| {
                now.duration_since(idle.since) < IDLE_TIMEOUT
                    && idle.connection.poll_closed(cx).is_pending()
            });
            !idle.is_empty()
        });
    }
}

/// Looks after unused connections, for as long as there are any.
async fn take_care(pool: Weak<Pool>) {
    let mut round = pin!(tokio::time::sleep(IDLE_TIMEOUT));
    poll_fn(|cx| {
        let Some(pool) = pool.upgrade() else {
            return Poll::Ready(());
        };
        let mut kept = lock(&pool.kept);
        kept.tidy(cx);
        while round.as_mut().poll(cx).is_ready() {
            if kept.idle.is_empty() {
                kept.caretaker = None;
                return Poll::Ready(());
            }
            round.as_mut().reset(Instant::now() + IDLE_TIMEOUT / 4);
        }
        kept.caretaker = Some(cx.waker().clone());
        Poll::Pending
    })
    .await;
}
