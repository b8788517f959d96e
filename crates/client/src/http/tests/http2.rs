//! HTTP/2, which a TLS server may choose (ALPN).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use http::{Request, Response, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::TrackedExecutor;
use super::peer::Peer;
use super::post;
use super::security::{THIS_HOST, TestAuthority, accept_tls_with_alpn, trusting};
use crate::http::{HttpClient, HttpError};

/// A client, and a server that speaks HTTP/2 on its only connection with `respond`.
async fn with_server<F, R, T>(respond: F, requests: impl AsyncFnOnce(HttpClient, String) -> T) -> T
where
    F: Fn(Request<Incoming>) -> R,
    R: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let authority = TestAuthority::new();
    let client = HttpClient::new(&trusting(authority.pem())).unwrap();
    let peer = Peer::bind().await;
    let url = format!("https://{}/mcp?x=y", peer.address);
    let serving = async {
        let stream = peer.accept().await.into_inner();
        let certificate = authority.issue(THIS_HOST);
        let protocols = ["h2", "http/1.1"];
        let stream = accept_tls_with_alpn(stream, certificate, &protocols).await;
        let service = service_fn(|request| {
            let responding = respond(request);
            async move { Ok::<_, Infallible>(responding.await) }
        });
        let builder = http2::Builder::new(TrackedExecutor::default());
        let io = TokioIo::new(stream.unwrap());
        drop(builder.serve_connection(io, service).await);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        done = requests(client, url) => done,
        () = serving => unreachable!("it waits"),
    }
}

#[tokio::test]
async fn concurrent_requests_share_one_http2_connection() {
    const REQUESTS: usize = 8;
    // No request is answered before all have arrived.
    let arrived = Arc::new(Semaphore::new(0));
    let respond = move |request: Request<Incoming>| {
        let arrived = Arc::clone(&arrived);
        async move {
            assert_eq!(request.version(), Version::HTTP_2);
            assert_eq!(request.uri().path_and_query().unwrap(), "/mcp?x=y");
            let body = request.into_body().collect().await.unwrap().to_bytes();
            arrived.add_permits(1);
            let all = arrived.acquire_many(u32::try_from(REQUESTS).unwrap()).await;
            drop(all.unwrap());
            Response::new(Full::new(body))
        }
    };
    with_server(respond, async |client, url| {
        // The first request opens the connection, and is answered with the others.
        let sending = (0..REQUESTS).map(|_| async {
            let response = client.send(post(&url, "{}")).await.unwrap();
            assert_eq!(response.bytes().await.unwrap(), "{}");
        });
        join_all(sending).await;
    })
    .await;
}

#[tokio::test]
async fn dropping_a_request_resets_its_http2_stream_and_not_the_connection() {
    let cancelled = CancellationToken::new();
    let was_cancelled = cancelled.clone();
    let respond = move |request: Request<Incoming>| {
        let cancelled = cancelled.clone();
        async move {
            let body = request.into_body().collect().await.unwrap().to_bytes();
            if body == "hang" {
                // Dropped with this future, when the stream is reset.
                let _cancelled = cancelled.drop_guard();
                std::future::pending::<()>().await;
            }
            Response::new(Full::new(body))
        }
    };
    with_server(respond, async |client, url| {
        let first = client.send(post(&url, "1")).await.unwrap();
        assert_eq!(first.bytes().await.unwrap(), "1");
        let hanging = client.send(post(&url, "hang"));
        let waited = tokio::time::timeout(Duration::from_millis(50), hanging).await;
        assert!(waited.is_err());
        was_cancelled.cancelled().await;
        let next = client.send(post(&url, "2")).await.unwrap();
        assert_eq!(next.bytes().await.unwrap(), "2");
    })
    .await;
}

#[tokio::test]
async fn an_http2_response_head_over_the_limit_is_an_error() {
    let respond = |_request: Request<Incoming>| async {
        let mut response = Response::new(Full::new(Bytes::new()));
        let value = "y".repeat(40_000).parse().unwrap();
        response.headers_mut().insert("x", value);
        response
    };
    with_server(respond, async |client, url| {
        let error = client.send(post(&url, "{}")).await.unwrap_err();
        assert!(matches!(error, HttpError::Broken { .. }), "{error:?}");
        assert!(!error.is_connect());
    })
    .await;
}
