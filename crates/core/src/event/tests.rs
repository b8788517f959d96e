use futures_util::FutureExt;
use plexus_mcp_protocol::Revision;
use plexus_mcp_protocol::messages::ClientCapabilities;

use super::*;
use crate::Principal;

fn channel() -> (EventSender, EventReceiver) {
    let (revision, capabilities) = (Revision::NEWEST_STATELESS, ClientCapabilities::everything());
    let peer = Peer::new(revision, capabilities, None, Principal::anonymous());
    EventSender::channel(Arc::new(peer), true, None)
}

fn number(event: Option<Event>) -> Option<usize> {
    match event? {
        Event::Content(text) => text.parse().ok(),
        _ => None,
    }
}

/// C57: a call that produces events faster than the edge reads them waits, and loses none.
#[tokio::test]
async fn a_full_queue_makes_the_sender_wait() {
    let (sender, mut receiver) = channel();
    for number in 0..MAX_QUEUED_EVENTS {
        let sent = sender.content(number.to_string()).now_or_never();
        assert!(sent.is_some());
    }
    let mut sending = Box::pin(sender.content(MAX_QUEUED_EVENTS.to_string()));
    assert!(sending.as_mut().now_or_never().is_none());
    assert_eq!(number(receiver.recv().await), Some(0));
    sending.await;
    for expected in 1..=MAX_QUEUED_EVENTS {
        assert_eq!(number(receiver.try_recv()), Some(expected));
    }
}

#[tokio::test]
async fn a_sender_does_not_wait_for_a_dropped_receiver() {
    let (sender, receiver) = channel();
    for number in 0..MAX_QUEUED_EVENTS {
        sender.content(number.to_string()).await;
    }
    let mut sending = Box::pin(sender.content("last".to_owned()));
    assert!(sending.as_mut().now_or_never().is_none());
    drop(receiver);
    sending.await;
    sender.content("ignored".to_owned()).await;
}
