//! Batches on a pipe (C04).

use plexus_mcp_wire::{Malformed, Message};

use super::Pipe;
use crate::batch;

impl Pipe {
    /// Runs a batch in a task of its own; its answers come together, other messages at once.
    pub(super) async fn batch(&self, messages: Vec<Result<Message, Malformed>>) {
        match batch::begin(&self.session, messages, None) {
            Err(answer) => self.send(answer.message).await,
            Ok(batch) => {
                let sink = self.session.sink().clone();
                self.tracker.spawn(async move {
                    if let Some(answers) = batch.run(&sink, None).await {
                        sink.send(answers).await;
                    }
                });
            }
        }
    }
}
