//! Batches on a pipe (C04).

use plexus_wire::{Malformed, Message};

use super::Pipe;
use crate::batch;

impl Pipe {
    /// Runs a batch in a task of its own; its answers come together, other messages at once.
    pub(super) async fn batch(&self, messages: Vec<Result<Message, Malformed>>) {
        match batch::begin(&self.session, messages, None) {
            Err(answer) => self.send(answer.into_bytes()).await,
            Ok(batch) => {
                let outlet = self.session.outlet().clone();
                self.tracker.spawn(async move {
                    if let Some(answers) = batch.run(&outlet).await {
                        outlet.send(answers).await;
                    }
                });
            }
        }
    }
}
