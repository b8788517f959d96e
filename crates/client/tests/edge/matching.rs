//! A dual-era HTTP server is called in the era of each caller.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plexus_mcp_client::{Era, Upstream};
use plexus_mcp_core::{Boxed, Call, EventSender, Object, Outcome, Peer, Principal, Service};
use plexus_mcp_protocol::Revision;
use plexus_mcp_protocol::messages::ClientCapabilities;
use plexus_testkit::server::{HttpServer, Offer, Received, Reply, tool};
use plexus_testkit::within;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{LEGACY, STATELESS, connected, http, raw, tools};

/// An endpoint of both eras.
async fn both() -> HttpServer {
    HttpServer::start(|request| request.reply_from(&offer(request))).await
}

fn offer(request: &Received) -> Offer {
    match request.header("mcp-protocol-version") {
        Some("2026-07-28") => Offer::tools(STATELESS, [tool("any")]),
        _ => Offer::tools(LEGACY, [tool("any")]),
    }
}

fn call_from(upstream: &Upstream, revision: Revision) -> Boxed<Outcome> {
    let none = ClientCapabilities::none();
    let peer = Peer::new(revision, none, None, Principal::anonymous());
    let (events, _asked) = EventSender::channel(Arc::new(peer), false, None);
    let params = Object::parse(&raw(&json!({"name": "any"}))).unwrap();
    let cancel = CancellationToken::new();
    upstream.call(Call::new("tools/call", params, events, cancel))
}

/// The version header of a call that the server gets from a caller of `revision`.
async fn spoken(server: &HttpServer, upstream: &Upstream, revision: Revision) -> String {
    // The outcome of the call does not matter here.
    drop(within("the outcome", call_from(upstream, revision)).await);
    let sent = server.received("tools/call").await;
    sent.header("mcp-protocol-version").unwrap().to_owned()
}

#[tokio::test]
async fn callers_meet_the_server_in_their_own_era() {
    let server = both().await;
    let upstream = connected(http(&server)).await;
    assert_eq!(tools(&upstream), ["any"]);
    for (revision, version) in [
        (LEGACY, "2025-11-25"),
        (STATELESS, "2026-07-28"),
        (Revision::V2024_11_05, "2025-11-25"),
    ] {
        assert_eq!(spoken(&server, &upstream, revision).await, version);
    }
    let handshakes = server.methods();
    let handshakes = handshakes.iter().filter(|method| *method == "initialize");
    assert_eq!(
        handshakes.count(),
        1,
        "callers that can do the same share a session"
    );
    upstream.disconnect().await;
}

/// A server of one era serves callers of both; the other era is tried only once.
#[tokio::test]
async fn a_server_of_one_era_serves_callers_of_both() {
    let offer = Offer::tools(STATELESS, [tool("any")]);
    let server = HttpServer::start(move |request| match request.mcp() {
        "initialize" => Reply::status(400),
        _ => request.reply_from(&offer),
    })
    .await;
    let upstream = connected(http(&server)).await;
    for _ in 0..2 {
        assert_eq!(spoken(&server, &upstream, LEGACY).await, "2026-07-28");
    }
    let handshakes = server.methods();
    let handshakes = handshakes.iter().filter(|method| *method == "initialize");
    assert_eq!(handshakes.count(), 1);
}

/// A handshake that fails for a reason that may be temporary is tried again later, and callers are
/// served in the stateless era until then.
#[tokio::test]
async fn a_temporary_failure_of_the_handshake_does_not_decide_the_era() {
    let initializations = AtomicUsize::new(0);
    let server = HttpServer::start(move |request| match request.mcp() {
        "initialize" if initializations.fetch_add(1, Ordering::Relaxed) == 0 => Reply::status(503),
        _ => request.reply_from(&offer(request)),
    })
    .await;
    let upstream = connected(http(&server)).await;
    for _ in 0..2 {
        assert_eq!(spoken(&server, &upstream, LEGACY).await, "2026-07-28");
    }
    let handshakes = server.methods();
    let handshakes = handshakes.iter().filter(|method| *method == "initialize");
    assert_eq!(handshakes.count(), 1, "not with every call");
    tokio::time::pause();
    tokio::time::advance(Duration::from_mins(1)).await;
    tokio::time::resume();
    assert_eq!(spoken(&server, &upstream, LEGACY).await, "2025-11-25");
}

#[tokio::test]
async fn a_server_whose_era_was_given_is_asked_for_no_other() {
    let server = both().await;
    let mut definition = http(&server);
    definition.era = Some(Era::Stateless);
    let upstream = connected(definition).await;
    assert_eq!(spoken(&server, &upstream, LEGACY).await, "2026-07-28");
    assert!(!server.methods().contains(&"initialize".to_owned()));
}
