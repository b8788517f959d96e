//! Runs one request of a legacy session.

use std::sync::Arc;

use crate::event_stream::EventStream;
use crate::exchange::{Exchange, Output};
use crate::session::InFlightGuard;

/// Runs a request to its end, whether or not a client reads the stream: a lost connection does not
/// cancel a request (HTTPL-11).
///
/// The answer goes to `stream`, which has this number, other messages to `messages`, which may be the
/// same stream.
pub(super) async fn run(
    mut exchange: Exchange,
    ticket: InFlightGuard,
    number: u64,
    stream: Arc<EventStream>,
    messages: Arc<EventStream>,
) {
    let streaming = Arc::ptr_eq(&stream, &messages);
    let answer = loop {
        match exchange.next_unless(&ticket.cancel).await {
            Some(
                ref output @ (Output::Notification(ref message) | Output::Progress(ref message)),
            ) => {
                stream.set_asking(false);
                let is_progress = matches!(output, Output::Progress(_));
                let progress_of = (is_progress && !streaming).then_some(number);
                messages.offer_progress(message.clone(), progress_of);
                if streaming {
                    tokio::select! {
                        () = messages.room() => {}
                        () = ticket.cancel.cancelled() => {}
                    }
                }
            }
            Some(Output::Question(message)) => {
                stream.set_asking(true);
                messages.push(message);
            }
            Some(Output::Answer(answer)) => break Some(answer),
            None => break None,
        }
    };
    // Before the answer, so that no stream can have progress after it.
    messages.finish_progress(number);
    stream.end(answer);
}
