//! Framing of requests and responses.

use bytes::Bytes;
use http::{Request, StatusCode};

use super::peer::{EMPTY, Peer};
use super::{client, get, post};
use crate::http::HttpError;

/// What becomes of an answer, and whether its connection was used for the next request.
async fn outcome(answer: &str) -> (Result<(StatusCode, Bytes), HttpError>, bool) {
    let client = client();
    let peer = Peer::bind().await;
    let url = peer.url("/");
    let asking = async {
        let first = match client.send(post(&url, "1")).await {
            Ok(response) => {
                let status = response.status;
                response.bytes().await.map(|body| (status, body))
            }
            Err(error) => Err(error),
        };
        client.send(post(&url, "2")).await.unwrap();
        first
    };
    let answering = async {
        let mut link = peer.accept().await;
        link.request().await;
        link.write(answer).await;
        tokio::select! {
            _ = link.request_or_end() => {
                link.write(EMPTY).await;
                true
            }
            mut other = peer.accept() => {
                other.request().await;
                other.write(EMPTY).await;
                false
            }
        }
    };
    tokio::join!(asking, answering)
}

#[tokio::test]
async fn answers_end_where_they_say_and_their_connection_is_used_again() {
    for (answer, body) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", "ok"),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nContent-Length: 2\r\n\r\nok",
            "ok",
        ),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2, 2\r\n\r\nok", "ok"),
        ("HTTP/1.1 204 No Content\r\n\r\n", ""),
        ("HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\n\r\n", ""),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
            "ok",
        ),
        (
            "HTTP/1.0 200 OK\r\nconnection: Keep-Alive\r\ncontent-length: 2\r\n\r\nok",
            "ok",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n1;x=\"y\"\r\no\r\n01 \r\nk\r\n0\r\nx-trailer: 1\r\n\r\n",
            "ok",
        ),
        // Transfer-Encoding goes before Content-Length (RFC 9112, section 6.3).
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 99\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            "ok",
        ),
    ] {
        let (outcome, is_reused) = outcome(answer).await;
        assert_eq!(outcome.unwrap().1, body, "{answer}");
        assert!(is_reused, "{answer}");
    }
}

#[tokio::test]
async fn a_connection_that_may_be_out_of_step_is_not_used_again() {
    for (answer, body) in [
        (
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
            "ok",
        ),
        (
            "HTTP/1.1 200 OK\r\nconnection: x, Close\r\ncontent-length: 2\r\n\r\nok",
            "ok",
        ),
        ("HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok", "ok"),
        // More than was announced.
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil",
            "ok",
        ),
        ("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n", ""),
    ] {
        let (outcome, is_reused) = outcome(answer).await;
        assert_eq!(outcome.unwrap().1, body, "{answer}");
        assert!(!is_reused, "{answer}");
    }
}

#[tokio::test]
async fn an_answer_of_unclear_length_is_broken() {
    let long_line = format!(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;{}",
        "x".repeat(20_000)
    );
    let long_end = format!(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n{}",
        "x: y\r\n".repeat(8000)
    );
    let long_head = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(40_000));
    let many_fields = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(101));
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ncontent-length: +2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ncontent-length: 2,\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551616\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n+2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\nok\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nok\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n10000000000000000\r\nok",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\r\nok",
        &long_line,
        &long_end,
        &long_head,
        &many_fields,
    ] {
        let (outcome, is_reused) = outcome(answer).await;
        let shown = answer.get(..80).unwrap_or(answer);
        let error = outcome.expect_err(shown);
        assert!(
            matches!(error, HttpError::Broken { .. }),
            "{error:?}: {shown}"
        );
        assert!(!is_reused, "{shown}");
    }
}

/// An unsolicited response must not be taken for the response to the next request.
#[tokio::test]
async fn an_unsolicited_response_is_not_used_for_the_next_request() {
    let client = client();
    let peer = Peer::bind().await;
    let url = peer.url("/");
    let mut link = peer.used_by(&client).await;
    link.write("HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n")
        .await;
    link.closed().await;
    let (response, ()) = tokio::join!(client.send(post(&url, "2")), async {
        let mut link = peer.accept().await;
        assert!(link.request().await.ends_with("\r\n\r\n2"));
        link.write(EMPTY).await;
    });
    assert_eq!(response.unwrap().status, 200);
}

#[tokio::test]
async fn a_long_request_arrives_whole() {
    let body = "0123456789".repeat(200_000);
    let client = client();
    let peer = Peer::bind().await;
    let request = Request::post(peer.url("/")).body(Bytes::from(body.clone()));
    let (response, request) = tokio::join!(client.send(request.unwrap()), async {
        let mut link = peer.accept().await;
        let request = link.request().await;
        link.write(EMPTY).await;
        request
    });
    assert_eq!(response.unwrap().status, 200);
    assert!(request.ends_with(&body));
}

#[tokio::test]
async fn an_answer_that_comes_before_the_request_was_sent_is_an_answer() {
    let body = "0123456789".repeat(2_000_000);
    let client = client();
    let peer = Peer::bind().await;
    let request = Request::post(peer.url("/")).body(Bytes::from(body));
    let (response, _link) = tokio::join!(client.send(request.unwrap()), async {
        let mut link = peer.accept().await;
        link.request_head().await;
        link.write("HTTP/1.1 413 Content Too Large\r\ncontent-length: 2\r\n\r\nno")
            .await;
        link
    });
    let response = response.unwrap();
    assert_eq!(response.status, 413);
    assert_eq!(response.bytes().await.unwrap(), "no");
}

#[tokio::test]
async fn a_length_is_said_where_a_body_is_expected() {
    let client = client();
    let peer = Peer::bind().await;
    let url = peer.url("/");
    for (request, has_length) in [(get(&url), false), (post(&url, ""), true)] {
        let (response, request) = tokio::join!(client.send(request), async {
            let mut link = peer.accept().await;
            let request = link.request().await;
            link.write("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
                .await;
            request
        });
        response.unwrap().bytes().await.unwrap();
        assert_eq!(request.contains("content-length: 0\r\n"), has_length);
    }
}
