//! Whether a server asks its callers anything.

use tokio::sync::watch;

/// Whether a server asks questions that do not say which call they belong to, as far as is known.
/// Once it does, callers take turns: on the next connection from the start. Clones are one.
#[derive(Debug, Clone, Default)]
pub struct Asks(watch::Sender<bool>);

impl Asks {
    /// What is known from an earlier time.
    pub fn known(asks: bool) -> Self {
        Self(watch::Sender::new(asks))
    }

    /// Whether it is known to ask.
    pub fn is_known(&self) -> bool {
        *self.0.borrow()
    }

    /// Tells when it becomes known.
    pub fn watch(&self) -> watch::Receiver<bool> {
        self.0.subscribe()
    }

    /// Takes note of a question.
    pub(crate) fn note(&self) {
        self.0
            .send_if_modified(|known| !std::mem::replace(known, true));
    }
}
