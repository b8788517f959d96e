//! A server that speaks both eras is spoken to in the era of whoever calls.

use std::sync::Arc;

use plexus_client::{Era, Matched};
use plexus_mcp::Revision;
use plexus_mcp::messages::ClientCapabilities;
use plexus_service::{Call, EventSender, Object, Peer, Principal, Section, Service};
use plexus_testkit::server::{HttpServer, Offer, Received, Reply, tool};
use plexus_testkit::within;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{LEGACY, STATELESS, connected, http, names, raw};

/// An endpoint of both eras, with other tools in each.
async fn both() -> HttpServer {
    HttpServer::start(|request| request.plainly(&offer(request))).await
}

fn offer(request: &Received) -> Offer {
    match request.header("mcp-protocol-version") {
        Some("2026-07-28") => Offer::tools(STATELESS, [tool("new")]),
        _ => Offer::tools(LEGACY, [tool("old")]),
    }
}

fn peer(revision: Revision) -> Peer {
    let none = ClientCapabilities::none();
    Peer::new(revision, none, None, Principal::anonymous())
}

fn shown(matched: &Matched, revision: Revision) -> Vec<String> {
    let catalogue = matched.catalogue_for(&peer(revision)).unwrap();
    names(&catalogue.borrow(), Section::Tools)
}

/// Each caller sees and calls the server as it is in the caller's era.
#[tokio::test]
async fn callers_meet_the_server_in_their_own_era() {
    let server = both().await;
    let matched = Matched::to(connected(http(&server)).await).await;
    assert_eq!(shown(&matched, STATELESS), ["new"]);
    assert_eq!(shown(&matched, Revision::V2024_11_05), ["old"]);

    for (revision, version) in [(LEGACY, "2025-11-25"), (STATELESS, "2026-07-28")] {
        let (events, _asked) = EventSender::channel(Arc::new(peer(revision)), false, None);
        let params = raw(&json!({"name": "any"}));
        let call = Call::new(
            "tools/call",
            Object::parse(&params).unwrap(),
            events,
            CancellationToken::new(),
        );
        // The server has no such tool, but it is asked.
        let refused = within("the refusal", matched.call(call)).await;
        assert!(refused.is_err(), "{refused:?}");
        let sent = server.received("tools/call").await;
        assert_eq!(sent.header("mcp-protocol-version"), Some(version));
    }
    matched.disconnect().await;
}

/// A server of one era serves callers of both, and one whose era was given is not asked for another.
#[tokio::test]
async fn a_server_of_one_era_is_for_all() {
    let offer = Offer::tools(STATELESS, [tool("new")]);
    let server = HttpServer::start(move |request| match request.mcp() {
        "initialize" => Reply::status(400),
        _ => request.plainly(&offer),
    })
    .await;
    let matched = Matched::to(connected(http(&server)).await).await;
    assert_eq!(shown(&matched, LEGACY), ["new"]);

    let server = both().await;
    let mut definition = http(&server);
    definition.era = Some(Era::Stateless);
    let matched = Matched::to(connected(definition).await).await;
    assert_eq!(shown(&matched, LEGACY), ["new"]);
    assert!(!server.methods().contains(&"initialize".to_owned()));
}
