//! Lines of a client on standard input: the server edge answers with JSON-RPC messages, one a line, and
//! ends with its input.

#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use plexus_fuzz::edge::{edge, runtime};
use plexus_mcp_server::{Edge, stdio};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

static EDGE: LazyLock<Arc<Edge>> = LazyLock::new(edge);

fuzz_target!(|input: &[u8]| {
    // With the clock stopped, no test waits for a timeout.
    let output = runtime(true).block_on(async {
        let (near, far) = tokio::io::duplex(input.len() + 1);
        let (reader, writer) = tokio::io::split(far);
        let (mut output, mut sink) = tokio::io::split(near);
        let serving = stdio::serve_on(&EDGE, reader, writer);
        let talking = async {
            let _ = sink.write_all(input).await;
            let _ = sink.shutdown().await;
            let mut answers = Vec::new();
            let _ = output.read_to_end(&mut answers).await;
            answers
        };
        tokio::join!(serving, talking).1
    });
    for line in output
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
    {
        let message: Value = serde_json::from_slice(line).unwrap();
        let messages = match message {
            Value::Array(messages) => messages,
            message => vec![message],
        };
        assert!(messages.iter().all(|message| message["jsonrpc"] == "2.0"));
    }
});
