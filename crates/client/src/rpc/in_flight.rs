//! A request that was sent, and what comes of it.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use plexus_service::Boxed;
use plexus_wire::Raw;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::{RpcFailure, Shared, Update};
use crate::link::Number;
use crate::lock::lock;

/// How many notifications a request may have waiting before further ones are dropped.
const UPDATES: usize = 256;

/// Where what comes for a request waits for whoever made it.
#[derive(Default)]
pub(super) struct Slot(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    updates: VecDeque<Update>,
    answer: Option<Result<Raw, RpcFailure>>,
    waker: Option<Waker>,
    /// When whoever waits gives up.
    deadline: Option<Instant>,
    is_late: bool,
}

impl Slot {
    /// Puts something in, unless it is full.
    pub(super) fn update(&self, update: Update) -> Result<(), Update> {
        let mut waiting = lock(&self.0);
        if waiting.updates.len() >= UPDATES {
            return Err(update);
        }
        waiting.updates.push_back(update);
        waiting.wake();
        Ok(())
    }

    pub(super) fn answer(&self, answer: Result<Raw, RpcFailure>) {
        let mut waiting = lock(&self.0);
        waiting.answer = Some(answer);
        waiting.wake();
    }

    /// Tells whoever waits if it has waited long enough; else gives until when it will.
    pub(super) fn expire(&self, now: Instant) -> Option<Instant> {
        let mut waiting = lock(&self.0);
        let deadline = waiting.deadline?;
        if deadline > now {
            return Some(deadline);
        }
        waiting.deadline = None;
        waiting.is_late = true;
        waiting.wake();
        None
    }
}

impl Waiting {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn take(&mut self) -> Option<Next> {
        match self.updates.pop_front() {
            Some(update) => Some(Next::Update(update)),
            None => self.answer.take().map(Next::Answer),
        }
    }
}

/// A request that was sent. Dropping it before its answer cancels it.
pub(crate) struct InFlight {
    number: Number,
    slot: Arc<Slot>,
    carriage: Carriage,
    answered: bool,
    shared: Arc<Shared>,
}

/// What has to be done to get the answer of a request.
pub(super) enum Carriage {
    /// It has not been sent.
    None,
    /// Others see to it: the answer comes by a way that all requests share.
    Shared,
    /// This, by whoever waits for the answer.
    Own(Boxed<()>),
    /// The same, by a task.
    Task(#[expect(dead_code, reason = "it is there to be dropped")] AbortOnDropHandle<()>),
}

/// What a request in flight brings next.
pub(crate) enum Next {
    Update(Update),
    Answer(Result<Raw, RpcFailure>),
}

impl InFlight {
    pub(super) fn new(number: Number, slot: Arc<Slot>, shared: Arc<Shared>) -> Self {
        Self {
            number,
            slot,
            carriage: Carriage::None,
            answered: false,
            shared,
        }
    }

    pub(super) fn is_carried(&mut self, carriage: Carriage) {
        self.carriage = carriage;
    }

    /// The next thing, unless nothing comes before `deadline`; nothing comes after the answer.
    /// Dropping the future loses nothing.
    pub(crate) async fn next_before(&mut self, deadline: Instant) -> Option<Next> {
        self.wait_until(Some(deadline));
        let next = poll_fn(|cx| {
            let next = self.poll_next(cx);
            if next.is_pending() {
                self.shared.board.watch(deadline);
            }
            next
        });
        let next = next.await?;
        self.came(&next);
        Some(next)
    }

    /// The next thing, however long it takes. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Next {
        self.wait_until(None);
        loop {
            let next = poll_fn(|cx| self.poll_next(cx)).await;
            if let Some(next) = next {
                self.came(&next);
                return next;
            }
        }
    }

    /// The answer; what comes before it is of no interest.
    pub(crate) async fn answer(mut self) -> Result<Raw, RpcFailure> {
        loop {
            if let Next::Answer(answer) = self.next().await {
                return answer;
            }
        }
    }

    fn wait_until(&self, deadline: Option<Instant>) {
        let mut waiting = lock(&self.slot.0);
        waiting.deadline = deadline;
        waiting.is_late = false;
    }

    fn came(&mut self, next: &Next) {
        match next {
            Next::Answer(_) => self.answered = true,
            Next::Update(Update::Request(_)) => self.leave_to_a_task(),
            Next::Update(Update::Notification(_)) => {}
        }
    }

    /// What comes next; none if it is late.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Next>> {
        if let Carriage::Own(carriage) = &mut self.carriage {
            let mut waiting = lock(&self.slot.0);
            if let Some(next) = waiting.take() {
                return Poll::Ready(Some(next));
            }
            // What the carriage puts in is seen below, without a wake-up.
            waiting.waker = None;
            drop(waiting);
            if carriage.as_mut().poll(cx).is_ready() {
                self.carriage = Carriage::Shared;
            }
        }
        let mut waiting = lock(&self.slot.0);
        if let Some(next) = waiting.take() {
            return Poll::Ready(Some(next));
        }
        if waiting.is_late {
            return Poll::Ready(None);
        }
        match &mut waiting.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// A call that asked is not looked after until it has its answer, but its server still is: it may
    /// want to know whether we are there.
    fn leave_to_a_task(&mut self) {
        self.carriage = match std::mem::replace(&mut self.carriage, Carriage::Shared) {
            Carriage::Own(carriage) => {
                let task = self.shared.tasks.spawn(carriage);
                Carriage::Task(AbortOnDropHandle::new(task))
            }
            carriage => carriage,
        };
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if !self.answered {
            let is_sent = !matches!(self.carriage, Carriage::None);
            self.shared.give_up(self.number, is_sent);
        }
    }
}
