//! Runs one request of a legacy session.

use std::sync::Arc;

use crate::event_stream::EventStream;
use crate::exchange::{Exchange, Output};
use crate::session::InFlightGuard;

/// Runs a request to its end, whether or not a client reads the stream: a lost connection does not
/// cancel a request (HTTPL-11).
///
/// The answer goes to `stream`, other messages to `messages`, which may be the same stream.
pub(super) async fn run(
    mut exchange: Exchange,
    ticket: InFlightGuard,
    stream: Arc<EventStream>,
    messages: Arc<EventStream>,
) {
    let streaming = Arc::ptr_eq(&stream, &messages);
    loop {
        match exchange.next_unless(&ticket.cancel).await {
            Some(Output::Notification(message)) => {
                stream.set_asking(false);
                messages.offer(message);
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
            Some(Output::Answer(answer)) => return stream.end(Some(answer)),
            None => return stream.end(None),
        }
    }
}
