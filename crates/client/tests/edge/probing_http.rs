//! Which era does an endpoint speak? The HTTP half of the table in TRANSLATION §3.

use std::sync::Arc;

use ::http::Method;
use plexus_mcp_client::{ConnectError, Era, LinkError, Quirk, ServerState};
use plexus_testkit::server::{HttpServer, Offer, Received, Reply, tool};
use serde_json::json;

use crate::support::{LEGACY, STATELESS, connected, http, refused, revision, status, tools};

const DISCOVER: &str = "server/discover";

/// A server of an old revision that takes `server/discover` in its own way.
async fn legacy(discovered: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> HttpServer {
    let offer = Offer::tools(LEGACY, [tool("a")]);
    HttpServer::start(move |request| match request.mcp() {
        DISCOVER => discovered(request),
        _ => request.reply_from(&offer),
    })
    .await
}

fn unsupported(request: &Received, supported: &[&str]) -> Reply {
    let mut answer = request.error(-32022, "unsupported");
    answer["error"]["data"] = json!({"supported": supported, "requested": "2026-07-28"});
    Reply::status(400).with_json(&answer.to_string())
}

/// VER26-19, HDR26-01: asked with all the headers of its era.
#[tokio::test]
async fn a_stateless_server_is_only_asked_what_it_is() {
    let offer = Offer::tools(STATELESS, [tool("a")]);
    let server = HttpServer::start(move |request| request.reply_from(&offer)).await;
    let upstream = connected(http(&server)).await;
    assert_eq!(revision(&upstream), STATELESS);
    assert_eq!(tools(&upstream), ["a"]);
    let asked = server.received(DISCOVER).await;
    assert_eq!(asked.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(asked.header("mcp-method"), Some(DISCOVER));
    assert_eq!(asked.header("mcp-session-id"), None);
    assert!(!server.methods().contains(&"initialize".to_owned()));
}

/// The ways in which handshake servers refuse an unknown method.
#[tokio::test]
async fn an_error_of_an_old_server_means_an_old_server() {
    type Refusal = fn(&Received) -> Reply;
    let refusals: [(&str, Refusal); 8] = [
        ("200 with -32601", |request| {
            Reply::json(&request.error(-32601, "method not found"))
        }),
        ("400 with -32000 and no id", |_| {
            Reply::status(400).with_json(
                r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}"#,
            )
        }),
        ("400 with -32602", |request| {
            Reply::status(400).with_json(&request.error(-32602, "odd").to_string())
        }),
        ("400 and nothing", |_| Reply::status(400)),
        ("400 and a page", |_| {
            Reply::status(400).with_body("text/html", "<h1>Bad Request</h1>")
        }),
        ("404 and nothing", |_| Reply::status(404)),
        ("404 with -32601", |request| {
            Reply::status(404).with_json(&request.error(-32601, "method not found").to_string())
        }),
        ("405 and nothing", |_| Reply::status(405)),
    ];
    for (what, refusal) in refusals {
        let server = legacy(refusal).await;
        let upstream = connected(http(&server)).await;
        assert_eq!(revision(&upstream), LEGACY, "{what}");
        assert_eq!(tools(&upstream), ["a"], "{what}");
    }
}

/// VER26-19
#[tokio::test]
async fn a_version_error_leads_to_a_version_that_it_names() {
    let server = legacy(|request| unsupported(request, &["2025-11-25", "2025-06-18"])).await;
    assert_eq!(revision(&connected(http(&server)).await), LEGACY);

    let server = legacy(|request| unsupported(request, &["2099-01-01"])).await;
    let (_, error) = refused(http(&server)).await;
    assert!(
        matches!(&error, ConnectError::NoCommonVersion(versions) if versions == &["2099-01-01"]),
        "{error}"
    );
    assert!(!server.methods().contains(&"initialize".to_owned()));
}

/// S004-74, S004-K042, S004-D09: 401 becomes needs-auth, whatever else the answer
/// holds.
#[tokio::test]
async fn a_server_that_wants_credentials_needs_auth() {
    let bodies = [
        "",
        r#"{"error":"invalid_token"}"#,
        r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Unauthorized"},"id":null}"#,
    ];
    for code in [401, 403] {
        for body in bodies {
            let server = HttpServer::start(move |_| {
                Reply::status(code).with_json(body).with_header(
                    "www-authenticate",
                    r#"Bearer resource_metadata="https://a""#,
                )
            })
            .await;
            for era in [None, Some(Era::Handshake), Some(Era::Stateless)] {
                let mut definition = http(&server);
                definition.era = era;
                let (upstream, error) = refused(definition).await;
                assert_eq!(
                    status(&upstream).state,
                    ServerState::NeedsAuth,
                    "{code} {body}"
                );
                let ConnectError::Link(LinkError::NeedsAuth {
                    status, challenge, ..
                }) = error
                else {
                    panic!("{error}");
                };
                assert_eq!(status, code);
                assert!(challenge.unwrap().contains("resource_metadata"));
            }
        }
    }
}

/// Nothing is concluded from a server that is not well.
#[tokio::test]
async fn a_server_that_fails_is_of_no_era() {
    for code in [500, 502, 503] {
        let server = legacy(move |_| Reply::status(code).with_body("text/plain", "oops")).await;
        let (upstream, error) = refused(http(&server)).await;
        assert_eq!(status(&upstream).state, ServerState::Failed);
        let error = error.to_string();
        assert!(
            error.contains(&code.to_string()) && error.contains("oops"),
            "{error}"
        );
        assert!(!server.methods().contains(&"initialize".to_owned()));
    }
    let server = legacy(|_| Reply::hang_up()).await;
    let (_, error) = refused(http(&server)).await;
    assert!(
        matches!(error, ConnectError::Link(LinkError::Broken(_))),
        "{error}"
    );
    assert!(!server.methods().contains(&"initialize".to_owned()));
}

#[tokio::test]
async fn an_address_where_nobody_listens_is_named() {
    let server = HttpServer::start(|_| Reply::status(500)).await;
    let definition = http(&server);
    let address = server.url();
    drop(server);
    let (upstream, error) = refused(definition).await;
    assert!(
        matches!(error, ConnectError::Link(LinkError::Unreachable(_))),
        "{error}"
    );
    let origin = address.trim_end_matches("/mcp");
    assert!(error.to_string().contains(origin), "{error}");
    assert_eq!(status(&upstream).state, ServerState::Failed);
}

/// C22, SSE24-08, VER26-20: an endpoint that takes no POST is asked for its stream.
#[tokio::test]
async fn an_endpoint_without_post_is_tried_with_sse() {
    for code in [400, 404, 405] {
        let offer = Offer::tools(LEGACY, [tool("a")]);
        let server = crate::sse::server(offer, move |request| {
            (request.path == "/mcp" && request.method == Method::POST).then(|| Reply::status(code))
        })
        .await;
        let upstream = connected(http(&server.http)).await;
        assert_eq!(tools(&upstream), ["a"]);
        assert!(upstream.report().unwrap().quirks.contains(&Quirk::SseOnly));
    }
}

/// Where there is no stream either, the first refusal is what matters.
#[tokio::test]
async fn an_endpoint_without_anything_says_so() {
    let server = HttpServer::start(|_| Reply::status(404)).await;
    let (_, error) = refused(http(&server)).await;
    assert!(error.to_string().contains("404"), "{error}");
}

#[tokio::test]
async fn a_known_era_is_not_probed_for() {
    let offer = Offer::tools(LEGACY, [tool("a")]);
    let server = HttpServer::start(move |request| request.reply_from(&offer)).await;
    let mut definition = http(&server);
    definition.era = Some(Era::Handshake);
    connected(definition).await;
    assert!(!server.methods().contains(&DISCOVER.to_owned()));

    for refusal in [Reply::status(400), Reply::status(404)] {
        let refusal = Arc::new(std::sync::Mutex::new(Some(refusal)));
        let server = legacy(move |_| {
            let first = refusal.lock().unwrap().take();
            first.unwrap_or_else(|| Reply::status(400))
        })
        .await;
        let mut definition = http(&server);
        definition.era = Some(Era::Stateless);
        let (upstream, _) = refused(definition).await;
        assert_eq!(status(&upstream).state, ServerState::Failed);
        assert!(!server.methods().contains(&"initialize".to_owned()));
    }
}

/// VER26-21: what was found out is remembered: an old server is not asked again.
#[tokio::test]
async fn the_era_is_remembered_across_connections() {
    let server = legacy(|_| Reply::status(400)).await;
    let upstream = connected(http(&server)).await;
    upstream.reconnect().await.unwrap();
    let discovers = server.methods();
    let discovers = discovers.iter().filter(|method| *method == DISCOVER);
    assert_eq!(discovers.count(), 1);
}

/// A redirect would take the headers, and so the credentials, elsewhere.
#[tokio::test]
async fn redirects_are_not_followed() {
    let elsewhere = HttpServer::start(|_| Reply::status(200)).await;
    let location = elsewhere.url();
    for code in [301, 302, 307, 308] {
        let location = location.clone();
        let server =
            HttpServer::start(move |_| Reply::status(code).with_header("location", &location))
                .await;
        let (upstream, error) = refused(http(&server)).await;
        assert!(error.to_string().contains(&code.to_string()), "{error}");
        assert_eq!(status(&upstream).state, ServerState::Failed);
    }
    assert!(elsewhere.all().is_empty());
}
