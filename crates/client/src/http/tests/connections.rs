//! The life of connections: connect, reuse, idle close, loss.

use std::time::Duration;

use futures_util::FutureExt;
use http_body_util::Full;
use hyper_util::client::legacy::connect::capture_connection;

use super::peer::{EMPTY, Peer};
use super::{client, get, options, post};
use crate::http::lost::{lost, unless_lost};
use crate::http::{HttpClient, HttpError, Stage};

#[tokio::test]
async fn a_refused_connection_is_safe_to_retry() {
    let peer = Peer::bind().await;
    let address = peer.address;
    drop(peer);
    let error = client()
        .send(get(&format!("http://{address}/mcp?token=s3cret")))
        .await
        .unwrap_err();
    assert!(matches!(error, HttpError::Connect { .. }), "{error:?}");
    assert!(error.is_connect());
    assert!(!error.is_timeout());
    assert_eq!(
        error.to_string(),
        format!("cannot connect to http://{address}")
    );
    assert!(!format!("{error:?}").contains("s3cret"));
}

/// S004-46.
#[tokio::test]
async fn a_server_that_never_answers_is_given_up_and_told_so() {
    let mut options = options();
    options.headers_timeout = Some(Duration::from_millis(20));
    let client = HttpClient::new(&options).unwrap();
    let peer = Peer::bind().await;
    let url = peer.url("/");
    let (error, ()) = tokio::join!(client.send(get(&url)), async {
        // On a busy machine the time may be over before the request has come.
        peer.accept().await.closed_at_last().await;
    });
    let error = error.unwrap_err();
    assert!(error.is_timeout());
    assert!(!error.is_connect(), "there was a connection");
    assert_eq!(
        error.to_string(),
        format!("http://{} did not answer within 20ms", peer.address)
    );
}

#[tokio::test]
async fn the_time_to_connect_covers_the_handshake() {
    let mut options = options();
    options.connect_timeout = Duration::from_millis(20);
    let client = HttpClient::new(&options).unwrap();
    let peer = Peer::bind().await;
    let url = format!("https://{}/", peer.address);
    let (error, _link) = tokio::join!(client.send(get(&url)), peer.accept());
    let error = error.unwrap_err();
    assert!(error.is_timeout() && error.is_connect());
    let HttpError::Timeout { stage, .. } = error else {
        panic!("{error:?}");
    };
    assert_eq!(stage, Stage::Connect);
}

/// Closing the stream is how a request of 2026-07-28 is cancelled.
#[tokio::test]
async fn dropping_a_request_closes_its_connection() {
    let client = client();
    let peer = Peer::bind().await;
    let url = peer.url("/");
    let mut sending = Box::pin(client.send(post(&url, "{}")));
    let mut link = tokio::select! {
        _ = &mut sending => panic!("no server answered"),
        link = async {
            let mut link = peer.accept().await;
            link.request().await;
            link
        } => link,
    };
    drop(sending);
    link.closed().await;
}

#[tokio::test]
async fn dropping_an_event_source_closes_its_connection() {
    let client = client();
    let peer = Peer::bind().await;
    let url = peer.url("/");
    let (response, mut link) = tokio::join!(client.send(get(&url)), async {
        let mut link = peer.accept().await;
        link.request().await;
        link.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            .await;
        link.chunk(b"data: 1\n\n").await;
        link
    });
    let mut events = response.unwrap().events();
    assert_eq!(events.next().await.unwrap().unwrap().data, "1");
    drop(events);
    link.closed().await;
}

#[tokio::test]
async fn dropping_an_answer_with_an_unread_body_closes_its_connection() {
    let client = client();
    let peer = Peer::bind().await;
    let url = peer.url("/");
    let (response, mut link) = tokio::join!(client.send(get(&url)), async {
        let mut link = peer.accept().await;
        link.request().await;
        link.write("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n1234")
            .await;
        link
    });
    drop(response.unwrap());
    link.closed().await;
}

#[tokio::test]
async fn requests_share_a_connection_and_an_idle_one_closes_with_the_client() {
    let client = client();
    let peer = Peer::bind().await;
    let url = peer.url("/");
    let sending = async {
        for _ in 0..3 {
            let response = client.send(post(&url, "{}")).await.unwrap();
            response.bytes().await.unwrap();
        }
    };
    let ((), mut link) = tokio::join!(sending, async {
        let mut link = peer.accept().await;
        for _ in 0..3 {
            link.request().await;
            link.write(EMPTY).await;
        }
        link
    });
    drop(client);
    link.closed().await;
}

#[tokio::test]
async fn a_connection_closed_while_idle_is_replaced_unnoticed() {
    let client = client();
    let peer = Peer::bind().await;
    let url = peer.url("/");
    let mut first = peer.used_by(&client).await;
    first.shut_down().await;
    first.closed().await;

    let (response, request) = tokio::join!(client.send(post(&url, "2")), async {
        let mut link = peer.accept().await;
        let request = link.request().await;
        link.write(EMPTY).await;
        request
    });
    assert_eq!(response.unwrap().status, 200);
    assert!(request.ends_with("\r\n\r\n2"));
}

/// A call that may have run must not run twice, be the connection new or used.
#[tokio::test]
async fn a_request_that_was_sent_is_never_sent_again() {
    let client = client();
    let peer = Peer::bind().await;
    let url = peer.url("/");
    for is_reused in [false, true] {
        let (error, ()) = tokio::join!(
            async {
                if is_reused {
                    let response = client.send(post(&url, "first")).await.unwrap();
                    response.bytes().await.unwrap();
                }
                client.send(post(&url, "call")).await.unwrap_err()
            },
            async {
                let mut link = peer.accept().await;
                if is_reused {
                    assert!(link.request().await.ends_with("first"));
                    link.write(EMPTY).await;
                }
                assert!(link.request().await.ends_with("call"));
            }
        );
        assert!(matches!(error, HttpError::Broken { .. }), "{error:?}");
        assert!(!error.is_connect());
        assert!(peer.accept().now_or_never().is_none());
    }
}

#[tokio::test]
async fn an_answer_that_is_not_http_is_broken() {
    let client = client();
    let peer = Peer::bind().await;
    let url = peer.url("/");
    let (error, ()) = tokio::join!(client.send(get(&url)), async {
        let mut link = peer.accept().await;
        link.request().await;
        link.write("220 mail ready\r\n\r\n").await;
    });
    let error = error.unwrap_err();
    assert!(matches!(error, HttpError::Broken { .. }), "{error:?}");
}

/// hyper can lose a request that it passes to a connection which closes at that moment.
#[tokio::test]
async fn a_request_without_an_outcome_ends_with_its_connection() {
    let client = client();
    let peer = Peer::bind().await;
    let mut request = get(&peer.url("/")).map(Full::new);
    let connection = capture_connection(&mut request);
    let opening = client.opening.clone();
    let sending = client.client.request(request);
    let closing = async {
        let link = peer.accept().await;
        let is_open = lost(connection.clone(), opening.clone())
            .now_or_never()
            .is_none();
        assert!(is_open, "the connection is open");
        drop(link);
    };
    let (sent, ()) = tokio::join!(sending, closing);
    sent.unwrap_err();
    tokio::time::pause();
    let lost_request = std::future::pending::<()>();
    let error = unless_lost(lost_request, lost(connection, opening)).await;
    let reason = "the connection was closed before the response";
    assert_eq!(error.unwrap_err().to_string(), reason);
}
