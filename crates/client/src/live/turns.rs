//! Turns: many calls of one caller at once, but of one caller only.

use std::sync::Mutex;

use tokio::sync::Notify;

use crate::lock::lock;

/// Whose turn it is.
#[derive(Debug, Default)]
pub(super) struct Turns {
    state: Mutex<State>,
    ended: Notify,
}

#[derive(Debug, Default)]
struct State {
    caller: usize,
    calls: usize,
}

impl Turns {
    /// Waits until no other caller has calls in flight.
    pub(super) async fn take(&self, caller: usize) -> Turn<'_> {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            {
                let mut state = lock(&self.state);
                if state.calls == 0 || state.caller == caller {
                    state.caller = caller;
                    state.calls += 1;
                    return Turn { turns: self };
                }
            }
            ended.await;
        }
    }
}

/// One call's part in a turn.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    turns: &'a Turns,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.turns.state);
        state.calls -= 1;
        if state.calls == 0 {
            self.turns.ended.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    /// TRANSLATION §4, the lane rule.
    #[tokio::test]
    async fn calls_of_one_caller_run_together_and_others_wait() {
        let turns = Turns::default();
        let first = turns.take(1).await;
        let second = turns.take(1).await;
        let mut other = Box::pin(turns.take(2));
        assert!((&mut other).now_or_never().is_none());
        drop(first);
        assert!((&mut other).now_or_never().is_none());
        drop(second);
        other.now_or_never().expect("nobody is left");
    }
}
