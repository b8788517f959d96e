//! Responses of a server over HTTP: a call ends, with a result or an error, whatever the server sends.
//!
//! The first byte of the input selects what surrounds the rest: nothing, or the head of a JSON document
//! or of an event stream.

#![no_main]

use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use plexus_fuzz::edge::runtime;
use plexus_mcp_client::{Definition, HttpTarget, connect};
use plexus_mcp_core::Client;
use plexus_mcp_protocol::Era;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

/// How long a call may take after the server has closed the connection.
const CALL_TIME: Duration = Duration::from_secs(5);

/// What the server sends in response to a call.
type Response = Arc<Mutex<Vec<u8>>>;

struct Connected {
    runtime: Runtime,
    client: Client,
    response: Response,
}

static CONNECTED: LazyLock<Connected> = LazyLock::new(|| {
    let runtime = runtime(false);
    let response = Response::default();
    let client = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        tokio::spawn(serve(listener, Arc::clone(&response)));
        let mut definition = Definition::from(HttpTarget::new(url.parse().unwrap()));
        definition.era = Some(Era::Stateless);
        connect(definition).await.unwrap()
    });
    Connected {
        runtime,
        client,
        response,
    }
});

fuzz_target!(|input: &[u8]| {
    let Some((kind, rest)) = input.split_first() else {
        return;
    };
    let connected = &*CONNECTED;
    let head = match kind % 3 {
        0 => "",
        1 => "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n",
        _ => "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n",
    };
    *connected.response.lock().unwrap() = [head.as_bytes(), rest].concat();
    connected.runtime.block_on(async {
        let call = connected.client.call_tool("work", json!({}));
        let ended = tokio::time::timeout(CALL_TIME, call).await;
        assert!(ended.is_ok(), "the call did not end");
    });
});

async fn serve(listener: TcpListener, response: Response) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::spawn(answer(stream, Arc::clone(&response)));
    }
}

/// Answers the requests of a connection, until it is a call.
async fn answer(mut stream: TcpStream, response: Response) {
    while let Some(request) = receive(&mut stream).await {
        let result = match request["method"].as_str() {
            Some("server/discover") => json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private",
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "fuzz", "version": "1"}},
            }),
            Some("tools/list") => json!({
                "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
                "tools": [{"name": "work", "inputSchema": {"type": "object"}}],
            }),
            _ => {
                let bytes = response.lock().unwrap().clone();
                let _ = stream.write_all(&bytes).await;
                let _ = stream.shutdown().await;
                return;
            }
        };
        let body = json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        if stream.write_all((head + &body).as_bytes()).await.is_err() {
            return;
        }
    }
}

/// The message of the next request of a connection.
async fn receive(stream: &mut TcpStream) -> Option<Value> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length")
                    .then(|| value.trim().parse::<usize>().ok())?
            });
            if body.len() >= length.unwrap_or(0) {
                return Some(serde_json::from_str(body).unwrap_or(Value::Null));
            }
        }
        let mut piece = [0; 4096];
        let read = stream
            .read(&mut piece)
            .await
            .ok()
            .filter(|read| *read > 0)?;
        bytes.extend_from_slice(&piece[..read]);
    }
}
