//! Requests of a client over HTTP: the server edge answers with responses, or closes the connection.
//!
//! The input is the lines of the head, a NUL, and the body; or, after `R`, raw bytes.

#![no_main]

use std::sync::LazyLock;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use plexus_fuzz::edge::{edge, runtime};
use plexus_mcp_server::http::{HttpOptions, HttpServer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

/// How long the server may take: a stream of events stays open, and is left.
const RESPONSE_TIME: Duration = Duration::from_millis(20);

/// A runtime with a server, and its address.
static SERVER: LazyLock<(Runtime, std::net::SocketAddr)> = LazyLock::new(|| {
    let runtime = runtime(false);
    let local = "127.0.0.1:0".parse().unwrap();
    let bound = runtime.block_on(HttpServer::bind(edge(), &[local], HttpOptions::default()));
    let server = bound.unwrap();
    let address = server.addresses()[0];
    runtime.spawn(server.run());
    (runtime, address)
});

fuzz_target!(|input: &[u8]| {
    let (runtime, address) = &*SERVER;
    let request = request(input, address.port());
    let response = runtime.block_on(async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let _ = stream.write_all(&request).await;
        let mut response = Vec::new();
        let _ = tokio::time::timeout(RESPONSE_TIME, stream.read_to_end(&mut response)).await;
        response
    });
    let start = response.get(..9).unwrap_or(&response);
    assert!(b"HTTP/1.1 ".starts_with(start) || b"HTTP/1.0 ".starts_with(start));
});

/// The request of an input. Its host is right, and its length.
fn request(input: &[u8], port: u16) -> Vec<u8> {
    if let Some((b'R', raw)) = input.split_first() {
        return raw.to_vec();
    }
    let cut = input
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(input.len());
    let (head, body) = input.split_at(cut);
    let body = body.get(1..).unwrap_or_default();
    let method = if body.is_empty() { "GET" } else { "POST" };
    let length = body.len();
    let mut request = format!(
        "{method} /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Content-Length: {length}\r\n"
    )
    .into_bytes();
    for line in head
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
    {
        request.extend_from_slice(line);
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    request.extend_from_slice(body);
    request
}
