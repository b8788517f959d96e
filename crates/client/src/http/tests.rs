mod bodies;
mod connections;
mod http2;
mod messages;
mod peer;
mod proxies;
mod security;

use bytes::Bytes;
use http::{Method, Request};

use super::{HttpClient, HttpClientOptions, ProxyRules, TrackedExecutor};

/// Options that do not depend on the environment of the test.
fn options() -> HttpClientOptions {
    HttpClientOptions {
        proxies: ProxyRules::none(),
        ..HttpClientOptions::default()
    }
}

fn client() -> HttpClient {
    HttpClient::new(&options()).unwrap()
}

fn get(url: &str) -> Request<Bytes> {
    Request::get(url).body(Bytes::new()).unwrap()
}

fn post(url: &str, body: &'static str) -> Request<Bytes> {
    Request::builder()
        .method(Method::POST)
        .uri(url)
        .body(Bytes::from_static(body.as_bytes()))
        .unwrap()
}
