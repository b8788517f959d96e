//! Detection of an endpoint's era: the HTTP half of the table in TRANSLATION §3.

use std::sync::{Arc, Mutex};

use ::http::Method;
use plexus_mcp_client::{ConnectError, Era, LinkError, Quirk, ServerState};
use plexus_testkit::server::{HttpServer, Offer, Received, Reply, tool};
use serde_json::json;
use tokio_util::task::TaskTracker;

use crate::support::{LEGACY, SHORT, STATELESS, connected, http, refused, revision, status, tools};

const DISCOVER: &str = "server/discover";

/// A handshake-era server whose reply to `server/discover` is `discovered`.
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

/// VER26-19, HDR26-01: the probe has all headers of the stateless era.
#[tokio::test]
async fn a_stateless_server_gets_discover_but_no_initialize() {
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
    let refusals: [(&str, Refusal); 10] = [
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
        ("500 and nothing", |_| Reply::status(500)),
        ("501 and nothing", |_| Reply::status(501)),
    ];
    for (what, refusal) in refusals {
        let server = legacy(refusal).await;
        let upstream = connected(http(&server)).await;
        assert_eq!(revision(&upstream), LEGACY, "{what}");
        assert_eq!(tools(&upstream), ["a"], "{what}");
    }
}

/// TRAP-02: a server that never answers `server/discover` is sent `initialize` as well.
#[tokio::test]
async fn a_server_that_hangs_on_the_probe_is_sent_initialize() {
    let server = legacy(|_| Reply::never()).await;
    let mut definition = http(&server);
    definition.timeouts.probe = SHORT;
    let upstream = connected(definition).await;
    assert_eq!(revision(&upstream), LEGACY);
    assert_eq!(tools(&upstream), ["a"]);
    assert_eq!(upstream.report().unwrap().quirks, [Quirk::SilentToDiscover]);
}

/// A stateless server that is slow to answer the probe refuses `initialize`; its late answer decides.
#[tokio::test]
async fn a_late_answer_to_the_probe_still_decides() {
    for refusal in [
        |request: &Received| Reply::status(400).with_json(&request.error(-32601, "no").to_string()),
        // A refusal without a JSON-RPC error.
        |_: &Received| Reply::status(400).with_body("text/plain", "Bad Request"),
    ] {
        let (late, discovered) = Reply::stream();
        let late = Mutex::new(Some((late, discovered)));
        let parked = Arc::new(Mutex::new(None));
        let offer = Offer::tools(STATELESS, [tool("a")]);
        let server = HttpServer::start({
            let parked = Arc::clone(&parked);
            move |request| match request.mcp() {
                DISCOVER => {
                    let (reply, stream) = late.lock().unwrap().take().expect("one probe");
                    let answer = request.result(&offer.answer(DISCOVER).unwrap());
                    *parked.lock().unwrap() = Some((stream, answer));
                    reply
                }
                "initialize" => {
                    let (stream, answer) = parked.lock().unwrap().take().expect("a probe");
                    // The server takes this long for the answer.
                    TaskTracker::new().spawn(async move {
                        tokio::time::sleep(SHORT).await;
                        stream.say(&answer).await;
                    });
                    refusal(request)
                }
                _ => request.reply_from(&offer),
            }
        })
        .await;
        let mut definition = http(&server);
        definition.timeouts.probe = SHORT;
        let upstream = connected(definition).await;
        assert_eq!(revision(&upstream), STATELESS);
        assert_eq!(tools(&upstream), ["a"]);
        assert_eq!(upstream.report().unwrap().quirks, [], "it is only slow");
    }
}

/// A server that speaks both eras is slow to answer the probe, and accepts `initialize` as well. Each
/// request over HTTP stands for itself, so the newer era is used, whichever answer comes first.
#[tokio::test]
async fn a_slow_server_of_both_eras_is_spoken_to_in_the_newer_one() {
    for discover_is_first in [true, false] {
        let parked = Arc::new(Mutex::new(None));
        let (newer, older) = (
            Offer::tools(STATELESS, [tool("a")]),
            Offer::tools(LEGACY, [tool("a")]),
        );
        let server = HttpServer::start(move |request| {
            let of_handshake = request.header("mcp-protocol-version") == Some(LEGACY.as_str());
            let is_get = request.method == Method::GET;
            match request.mcp() {
                DISCOVER => {
                    let (reply, stream) = Reply::stream();
                    let answer = request.result(&newer.answer(DISCOVER).unwrap());
                    *parked.lock().unwrap() = Some((stream, answer));
                    reply
                }
                "initialize" if discover_is_first => {
                    let (reply, greeting) = Reply::stream();
                    let answer = request.result(&older.initialized());
                    let (stream, discovered) = parked.lock().unwrap().take().expect("a probe");
                    TaskTracker::new().spawn(async move {
                        stream.say(&discovered).await;
                        greeting.say(&answer).await;
                    });
                    reply
                }
                _ if is_get => {
                    // The handshake is complete. The answer to the probe comes later.
                    if let Some((stream, discovered)) = parked.lock().unwrap().take() {
                        TaskTracker::new().spawn(async move {
                            tokio::time::sleep(SHORT).await;
                            stream.say(&discovered).await;
                        });
                    }
                    Reply::status(405)
                }
                "initialize" => request.reply_from(&older),
                _ if of_handshake => request.reply_from(&older),
                _ => request.reply_from(&newer),
            }
        })
        .await;
        let mut definition = http(&server);
        definition.timeouts.probe = SHORT;
        let upstream = connected(definition).await;
        assert_eq!(revision(&upstream), STATELESS, "{discover_is_first}");
        assert_eq!(tools(&upstream), ["a"]);
        assert_eq!(upstream.report().unwrap().quirks, [], "it is only slow");
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

/// S004-74, S004-K042, S004-D09: status 401 means `NeedsAuth`, whatever the rest of the response
/// is.
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

/// An error of a reverse proxy, or a broken connection, says nothing about the era, so it fails the
/// connect.
#[tokio::test]
async fn a_server_that_fails_is_of_no_era() {
    for code in [502, 503, 504] {
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
async fn an_unreachable_address_is_named_in_the_error() {
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

/// C22, SSE24-08, VER26-20: if an endpoint refuses POST, HTTP+SSE is tried.
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

/// If HTTP+SSE fails, too, the error shows the first refusal.
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

/// VER26-21: the detected era is remembered, so that a reconnect does not probe again.
#[tokio::test]
async fn the_era_is_remembered_across_connections() {
    let server = legacy(|_| Reply::status(400)).await;
    let upstream = connected(http(&server)).await;
    upstream.reconnect().await.unwrap();
    let discovers = server.methods();
    let discovers = discovers.iter().filter(|method| *method == DISCOVER);
    assert_eq!(discovers.count(), 1);
}

/// Following a redirect would send the headers, and so the credentials, to another server.
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
