//! Detection of a program's era: the stdio half of the table in TRANSLATION §3.

use std::time::Duration;

use plexus_mcp_client::{ConnectError, Era, Quirk, ServerState};
use plexus_testkit::server::{Offer, Script, StdioServer, Step, tool};
use serde_json::json;

use crate::support::{
    LEGACY, SHORT, STATELESS, call_tool, connected, refused, revision, status, stdio, tools,
};

const DISCOVER: &str = "server/discover";

fn legacy() -> Script {
    Script::from(&Offer::tools(LEGACY, [tool("a")]))
}

fn stateless() -> Script {
    Script::from(&Offer::tools(STATELESS, [tool("a")]))
}

fn unsupported(supported: &[&str]) -> Step {
    let data = json!({"supported": supported, "requested": "2026-07-28"});
    Step::Error(json!({"code": -32022, "message": "unsupported", "data": data}))
}

/// VER26-15, VER26-16: a server that answers `server/discover` gets no `initialize`.
#[tokio::test]
async fn a_stateless_server_gets_discover_but_no_initialize() {
    let server = StdioServer::new(stateless()).await;
    let upstream = connected(stdio(&server)).await;
    let process = server.process().await;
    assert_eq!(revision(&upstream), STATELESS);
    assert_eq!(upstream.report().unwrap().facts.identity.name, "scripted");
    assert_eq!(tools(&upstream), ["a"]);
    let asked = process.received(DISCOVER).await;
    let meta = &asked["params"]["_meta"];
    assert_eq!(
        meta["io.modelcontextprotocol/protocolVersion"],
        "2026-07-28"
    );
    assert!(!process.methods().await.contains(&"initialize".to_owned()));
}

/// VER26-17, TRAP-03: most handshake-era servers answer the probe with -32601, the Python SDK 1.x
/// with -32602, and others with -32600 or -32000. Each then gets `initialize`, in the same process.
#[tokio::test]
async fn an_error_of_an_old_server_means_an_old_server() {
    for code in [-32601, -32602, -32600, -32000, 0] {
        let refusal = Step::Error(json!({"code": code, "message": "what?"}));
        let server = StdioServer::new(legacy().on(DISCOVER, [refusal])).await;
        let upstream = connected(stdio(&server)).await;
        assert_eq!(revision(&upstream), LEGACY, "{code}");
        let report = upstream.report().unwrap();
        assert_eq!(report.quirks, [Quirk::RefusesDiscover { code }]);
        let process = server.process().await;
        let methods = process.methods().await;
        assert!(
            methods.starts_with(&[
                DISCOVER.to_owned(),
                "initialize".to_owned(),
                "notifications/initialized".to_owned()
            ]),
            "{methods:?}"
        );
        server.assert_not_started_again().await;
    }
}

/// VER26-04: the probe is repeated with a version that the error names.
#[tokio::test]
async fn a_version_error_is_answered_with_a_version_that_it_names() {
    let script = stateless().on(DISCOVER, [unsupported(&["2026-07-28"])]);
    let discovered = Offer::tools(STATELESS, []).discovered();
    let script = script.then(DISCOVER, [Step::Result(discovered)]);
    let server = StdioServer::new(script).await;
    let upstream = connected(stdio(&server)).await;
    assert_eq!(revision(&upstream), STATELESS);

    let server = StdioServer::new(legacy().on(DISCOVER, [unsupported(&["2025-06-18"])])).await;
    let upstream = connected(stdio(&server)).await;
    assert_eq!(revision(&upstream), LEGACY);
}

/// TRAP-05.
#[tokio::test]
async fn a_server_that_speaks_only_unknown_versions_is_not_connected() {
    let server = StdioServer::new(legacy().on(DISCOVER, [unsupported(&["2099-01-01"])])).await;
    let (upstream, error) = refused(stdio(&server)).await;
    assert!(
        matches!(&error, ConnectError::NoCommonVersion(versions) if versions == &["2099-01-01"]),
        "{error}"
    );
    assert!(error.to_string().contains("2099-01-01"), "{error}");
    assert_eq!(status(&upstream).state, ServerState::Failed);

    let mut discovered = Offer::new(STATELESS).discovered();
    discovered["supportedVersions"] = json!(["2099-01-01"]);
    let script = stateless().on(DISCOVER, [Step::Result(discovered)]);
    let server = StdioServer::new(script).await;
    let (_, error) = refused(stdio(&server)).await;
    assert!(error.to_string().contains("2099-01-01"), "{error}");
}

/// VER26-16: errors that exist only in the stateless era do not lead to a handshake; they fail the
/// connect.
#[tokio::test]
async fn a_stateless_server_that_refuses_is_not_taken_for_an_old_one() {
    for code in [-32020, -32021] {
        let refusal = Step::Error(json!({"code": code, "message": "it needs more"}));
        let server = StdioServer::new(legacy().on(DISCOVER, [refusal])).await;
        let (_, error) = refused(stdio(&server)).await;
        assert!(error.to_string().contains("it needs more"), "{error}");
        let process = server.process().await;
        assert!(!process.methods().await.contains(&"initialize".to_owned()));
    }
}

/// TRAP-02.
#[tokio::test]
async fn a_server_that_does_not_answer_is_greeted_in_the_old_way_in_the_same_process() {
    let server = StdioServer::new(legacy().ignoring(DISCOVER)).await;
    let mut definition = stdio(&server);
    definition.timeouts.probe = SHORT;
    let upstream = connected(definition).await;
    assert_eq!(upstream.report().unwrap().quirks, [Quirk::SilentToDiscover]);
    let process = server.process().await;
    process.received("initialize").await;
    server.assert_not_started_again().await;
    // CAN-02 forbids it for `initialize` only, but a silent server would not understand it here
    // either.
    assert!(
        !process
            .methods()
            .await
            .contains(&"notifications/cancelled".to_owned())
    );
}

/// A program that starts slowly reads `server/discover` after the probe timeout, and is then locked
/// to its era. So a late answer still decides.
#[tokio::test]
async fn a_late_answer_still_decides() {
    let server = StdioServer::new(Script::silent()).await;
    let mut definition = stdio(&server);
    definition.timeouts.probe = SHORT;
    let offer = Offer::new(STATELESS);
    let starting = async {
        let process = server.process().await;
        let asked = process.received(DISCOVER).await;
        let greeted = process.received("initialize").await;
        process.reply(&asked, offer.discovered()).await;
        let refusal = json!({"code": -32022, "message": "this is 2026-07-28"});
        process.refuse(&greeted, refusal).await;
        process
    };
    let (upstream, _process) = tokio::join!(connected(definition), starting);
    assert_eq!(revision(&upstream), STATELESS);

    let server = StdioServer::new(legacy().ignoring(DISCOVER).ignoring("initialize")).await;
    let mut definition = stdio(&server);
    definition.timeouts.probe = SHORT;
    let starting = async {
        let process = server.process().await;
        let asked = process.received(DISCOVER).await;
        let greeted = process.received("initialize").await;
        process
            .refuse(&asked, json!({"code": -32602, "message": "what?"}))
            .await;
        let initialized = Offer::tools(LEGACY, [tool("a")]).initialized();
        process.reply(&greeted, initialized).await;
        process
    };
    let (upstream, _process) = tokio::join!(connected(definition), starting);
    assert_eq!(revision(&upstream), LEGACY);
    let report = upstream.report().unwrap();
    assert_eq!(report.quirks, [Quirk::RefusesDiscover { code: -32602 }]);
    assert_eq!(
        report.violations.unknown_answers, 0,
        "a late response is not counted as unknown"
    );
}

/// A slow dual-era server answers the probe and the handshake together, one with a result and one
/// with an error. The result wins, in either order.
#[tokio::test]
async fn a_good_answer_wins_over_an_error_that_comes_with_it() {
    for is_first in [true, false] {
        let server = StdioServer::new(Script::silent()).await;
        let mut definition = stdio(&server);
        definition.timeouts.probe = SHORT;
        let starting = async {
            let process = server.process().await;
            let asked = process.received(DISCOVER).await;
            let greeted = process.received("initialize").await;
            let discovered = Offer::new(STATELESS).discovered();
            let good = json!({"jsonrpc": "2.0", "id": asked["id"], "result": discovered});
            let error = json!({"code": -32600, "message": "the connection is of another era"});
            let bad = json!({"jsonrpc": "2.0", "id": greeted["id"], "error": error});
            let both = if is_first { [good, bad] } else { [bad, good] };
            let both = both.map(|answer| answer.to_string()).join("\n");
            process.perform(Step::Print(both)).await;
            process
        };
        let (upstream, _process) = tokio::join!(connected(definition), starting);
        assert_eq!(revision(&upstream), STATELESS);
        assert_eq!(upstream.report().unwrap().quirks, [], "it is only slow");
    }
}

/// A slow dual-era server that accepts both the probe and the handshake continues in the handshake
/// era, as servers of the TypeScript SDK 2 do.
#[tokio::test]
async fn a_server_that_accepts_both_greetings_is_called_in_the_older_era() {
    let offer = Offer::tools(LEGACY, [tool("a")]);
    let script = Script::from(&offer)
        .ignoring(DISCOVER)
        .ignoring("initialize");
    let server = StdioServer::new(script).await;
    let mut definition = stdio(&server);
    definition.timeouts.probe = SHORT;
    let starting = async {
        let process = server.process().await;
        let asked = process.received(DISCOVER).await;
        let greeted = process.received("initialize").await;
        let discovered = Offer::new(STATELESS).discovered();
        process.reply(&asked, discovered).await;
        process.reply(&greeted, offer.initialized()).await;
        process.received("notifications/initialized").await;
    };
    let (upstream, ()) = tokio::join!(connected(definition), starting);
    assert_eq!(revision(&upstream), LEGACY);
    assert_eq!(tools(&upstream), ["a"]);
}

/// The probe timeout does not apply if the era is configured.
#[tokio::test]
async fn a_server_that_is_known_to_be_stateless_may_be_slow_to_start() {
    let offer = Offer::tools(STATELESS, [tool("a")]);
    let server = StdioServer::new(Script::from(&offer).ignoring(DISCOVER)).await;
    let mut definition = stdio(&server);
    definition.era = Some(Era::Stateless);
    definition.timeouts.probe = Duration::ZERO;
    let starting = async {
        let process = server.process().await;
        let asked = process.received(DISCOVER).await;
        process.reply(&asked, offer.discovered()).await;
    };
    let (upstream, ()) = tokio::join!(connected(definition), starting);
    assert_eq!(tools(&upstream), ["a"]);
}

/// TRAP-01.
#[tokio::test]
async fn a_server_that_ends_is_started_again_and_greeted_in_the_old_way_first() {
    let server = StdioServer::new(legacy().on(DISCOVER, [Step::Exit(3)])).await;
    let upstream = connected(stdio(&server)).await;
    assert_eq!(upstream.report().unwrap().quirks, [Quirk::EndsOnDiscover]);
    assert_eq!(tools(&upstream), ["a"]);
    server.process().await.ended().await;
    let second = server.process().await;
    assert_eq!(second.methods().await.first().unwrap(), "initialize");
    server.assert_not_started_again().await;
}

/// S004-D14, TRAP-27: lines that are not JSON are skipped, but counted
/// and shown.
#[tokio::test]
async fn banners_are_skipped_and_counted() {
    for script in [legacy(), stateless()] {
        let script = script.start([
            Step::Print("Starting the server ...".to_owned()),
            Step::Print(String::new()),
            Step::Print("[info] ready \u{1f600}".to_owned()),
        ]);
        let server = StdioServer::new(script).await;
        let upstream = connected(stdio(&server)).await;
        let violations = upstream.report().unwrap().violations;
        assert!((2..=3).contains(&violations.not_json), "{violations:?}");
        assert_eq!(
            violations.last_undecodable.as_deref(),
            Some("[info] ready \u{1f600}")
        );
    }
}

/// TRAP-04: a discover result that lists only handshake-era revisions leads to a handshake.
#[tokio::test]
async fn a_discover_result_with_old_versions_only_means_a_handshake() {
    let mut discovered = Offer::new(STATELESS).discovered();
    discovered["supportedVersions"] = json!(["2025-06-18", "2025-11-25"]);
    let server = StdioServer::new(legacy().on(DISCOVER, [Step::Result(discovered)])).await;
    let upstream = connected(stdio(&server)).await;
    assert_eq!(revision(&upstream), LEGACY);
    server.process().await;
    server.assert_not_started_again().await;
}

/// Lenient servers answer unknown methods with arbitrary results.
#[tokio::test]
async fn an_answer_that_is_no_discover_result_means_an_old_server() {
    for answer in [
        json!({}),
        json!({"tools": []}),
        json!([]),
        json!("ok"),
        json!({"supportedVersions": "2026-07-28", "capabilities": {}}),
    ] {
        let script = legacy().on(DISCOVER, [Step::Result(answer.clone())]);
        let server = StdioServer::new(script).await;
        let upstream = connected(stdio(&server)).await;
        assert_eq!(revision(&upstream), LEGACY, "{answer}");
    }
}

/// BASE-13, TRANSLATION §3: a discover result without `resultType` is accepted.
#[tokio::test]
async fn a_discover_result_without_its_type_is_taken() {
    let mut discovered = Offer::new(STATELESS).discovered();
    discovered.as_object_mut().unwrap().remove("resultType");
    let server = StdioServer::new(stateless().on(DISCOVER, [Step::Result(discovered)])).await;
    assert_eq!(revision(&connected(stdio(&server)).await), STATELESS);
}

#[tokio::test]
async fn a_known_old_server_is_not_asked_what_it_is() {
    let server = StdioServer::new(legacy().on(DISCOVER, [Step::Exit(3)])).await;
    let mut definition = stdio(&server);
    definition.era = Some(Era::Handshake);
    let upstream = connected(definition).await;
    assert_eq!(revision(&upstream), LEGACY);
    let process = server.process().await;
    assert!(!process.methods().await.contains(&DISCOVER.to_owned()));
}

#[tokio::test]
async fn a_server_that_must_be_stateless_is_never_greeted_in_the_old_way() {
    let scripts = [
        legacy(),
        legacy().ignoring(DISCOVER),
        legacy().on(DISCOVER, [Step::Exit(1)]),
    ];
    for script in scripts {
        let server = StdioServer::new(script).await;
        let mut definition = stdio(&server);
        definition.era = Some(Era::Stateless);
        definition.timeouts.connect = SHORT;
        let (upstream, error) = refused(definition).await;
        assert_eq!(status(&upstream).state, ServerState::Failed, "{error}");
        let process = server.process().await;
        process.ended().await;
        assert!(!process.methods().await.contains(&"initialize".to_owned()));
        server.assert_not_started_again().await;
    }
}

/// VER26-21, S004-D01, TRANSLATION §3: the detected era is remembered, so that a server that exits
/// on the probe is not probed again. After a reconnect, calls use the new connection.
#[tokio::test]
async fn the_era_is_remembered_across_connections() {
    let script = legacy()
        .on(DISCOVER, [Step::Exit(3)])
        .on("tools/call", [Step::Echo]);
    let server = StdioServer::new(script).await;
    let upstream = connected(stdio(&server)).await;
    server.process().await.ended().await;
    let second = server.process().await;
    upstream.reconnect().await.unwrap();
    second.ended().await;
    let third = server.process().await;
    assert_eq!(third.methods().await.first().unwrap(), "initialize");
    call_tool(&upstream, "a").await;
    third.received("tools/call").await;
}
