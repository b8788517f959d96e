//! Our client visits a server made with the official Rust SDK, in either era.

use std::sync::Arc;

use plexus_mcp_client::{ClientCapabilities, Definition, Era, Program, Target, Upstream};
use plexus_mcp_core::{Call, EventSender, Limits, Object, Peer, Principal, Raw, Section, Service};
use plexus_mcp_protocol::Revision;
use tokio_util::sync::CancellationToken;

/// Acceptance 3 of the client edge: it connects, lists the tools, calls one, and disconnects.
#[tokio::test]
async fn the_official_rust_server_is_visited_in_either_era() {
    let tests = std::env::current_exe().unwrap();
    let built = tests.parent().and_then(|deps| deps.parent()).unwrap();
    let program = built.join("examples").join("rmcp-echo");
    for (era, revision) in [
        (None, Revision::V2026_07_28),
        (Some(Era::Handshake), Revision::V2025_11_25),
        (Some(Era::Stateless), Revision::V2026_07_28),
    ] {
        let program = Program::new(program.to_str().unwrap());
        let mut definition = Definition::new(Target::Stdio(program));
        definition.era = era;
        let upstream = Upstream::new(definition);
        upstream.connect().await.unwrap();
        let report = upstream.report().unwrap();
        assert_eq!(report.facts.revision, revision, "{era:?}");
        assert!(report.list_problems.is_empty() && report.quarantined.is_empty());
        let catalogue = Arc::clone(&upstream.catalogue().borrow());
        assert_eq!(catalogue.list(Section::Tools).entries().len(), 1);

        let none = ClientCapabilities::none();
        let peer = Peer::new(Revision::V2026_07_28, none, None, Principal::anonymous());
        let (events, _queue) = EventSender::channel(Arc::new(peer), false, None);
        let params = r#"{"name":"echo","arguments":{"text":"hello"}}"#;
        let params = Raw::parse(params.into(), &Limits::default()).unwrap();
        let call = Call::new(
            "tools/call",
            Object::parse(&params).unwrap(),
            events,
            CancellationToken::new(),
        );
        let result = upstream.call(call).await.unwrap();
        assert!(
            result.as_str().contains(r#""text":"hello""#),
            "{}",
            result.as_str()
        );
        upstream.disconnect().await;
    }
}
