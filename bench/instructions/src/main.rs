//! Runs one hot function so many times, for `bench/counts` to count its instructions.
//!
//! `plexus-counts` lists the functions; `plexus-counts NAME TIMES` runs one.

use std::collections::HashMap;
use std::hint::black_box;

use anyhow::{Context as _, bail};
use bytes::{Bytes, BytesMut};
use plexus_mcp::RequestMeta;
use plexus_wire::{
    Id, Incoming, Limits, Line, LineDecoder, Message, Object, Params, Raw, decode, encode, sse,
};

const CALL: &str = r#"{"jsonrpc":"2.0","id":100000001,"method":"tools/call","params":{"name":"up__echo","arguments":{"message":"The quick brown fox jumps over the lazy dog, again and again. The quick brown fox jumps over the la"}}}"#;
const STATELESS_CALL: &str = r#"{"jsonrpc":"2.0","id":100000001,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"plexus-bench","version":"0.1.0"},"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"arguments":{"message":"The quick brown fox jumps over the lazy dog, again and again. The quick brown fox jumps over the la"},"name":"up__echo"}}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":100000001,"result":{"content":[{"type":"text","text":"The quick brown fox jumps over the lazy dog, again and again. The quick brown fox jumps over the la"}],"isError":false}}"#;

type Run = fn(usize) -> anyhow::Result<()>;

const FUNCTIONS: [(&str, Run); 8] = [
    ("decode-call", |times| decode_often(CALL, times)),
    ("decode-stateless-call", |times| {
        decode_often(STATELESS_CALL, times)
    }),
    ("decode-answer", |times| decode_often(ANSWER, times)),
    ("frame-line", frame_lines),
    ("read-meta", read_meta),
    ("rewrite-name", rewrite_names),
    ("encode-answer", encode_answers),
    ("encode-event", |times| {
        encode_events(times);
        Ok(())
    }),
];

#[expect(clippy::print_stdout, reason = "the names are the output")]
fn main() -> anyhow::Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [name, times] = arguments.as_slice() else {
        for (name, _) in FUNCTIONS {
            println!("{name}");
        }
        return Ok(());
    };
    let run = FUNCTIONS.iter().find(|(known, _)| known == name);
    let Some((_, run)) = run else {
        bail!("there is no function '{name}'");
    };
    run(times.parse().context("not a number")?)
}

fn decode_often(message: &'static str, times: usize) -> anyhow::Result<()> {
    let limits = Limits::default();
    for _ in 0..times {
        let bytes = Bytes::from_static(message.as_bytes());
        black_box(decode(black_box(bytes), &limits)?);
    }
    Ok(())
}

fn frame_lines(times: usize) -> anyhow::Result<()> {
    let mut lines = LineDecoder::new(Limits::default().max_bytes);
    let mut buffer = BytesMut::new();
    for _ in 0..times {
        buffer.extend_from_slice(CALL.as_bytes());
        buffer.extend_from_slice(b"\n");
        let Some(Line::Complete(line)) = lines.next(black_box(&mut buffer)) else {
            bail!("no line");
        };
        black_box(line);
    }
    Ok(())
}

fn read_meta(times: usize) -> anyhow::Result<()> {
    let params = params(STATELESS_CALL)?;
    for _ in 0..times {
        let mut params = Object::parse(black_box(&params))?;
        black_box(RequestMeta::read(&mut params)?);
    }
    Ok(())
}

/// As the hub does it: the name that is shown is looked up, and the member's takes its place.
fn rewrite_names(times: usize) -> anyhow::Result<()> {
    let shown = |number| (format!("other__tool_{number}"), "other");
    let mut names: HashMap<_, _> = (0..1000).map(shown).collect();
    names.insert("up__echo".to_owned(), "echo");
    let params = params(CALL)?;
    for _ in 0..times {
        let mut object = Object::parse(black_box(&params))?;
        let shown = object.text("name").context("no name")?;
        let own = names.get(&*shown).context("an unknown name")?;
        object.set("name", Raw::string(own));
        black_box(object.to_raw());
    }
    Ok(())
}

fn encode_answers(times: usize) -> anyhow::Result<()> {
    let Incoming::Single(Ok(Message::Response(answer))) =
        decode(Bytes::from_static(ANSWER.as_bytes()), &Limits::default())?
    else {
        bail!("no answer");
    };
    let result = answer.outcome.ok().context("no result")?;
    let id = Id::from(100_000_001_i64);
    for _ in 0..times {
        let mut out = BytesMut::new();
        encode::response(&mut out, black_box(&id), black_box(&result));
        black_box(out);
    }
    Ok(())
}

fn encode_events(times: usize) {
    for _ in 0..times {
        let mut out = BytesMut::new();
        let frame = sse::Frame {
            id: Some("1-1"),
            data: Some(ANSWER.as_bytes()),
            ..sse::Frame::default()
        };
        sse::encode(&mut out, black_box(&frame));
        black_box(out);
    }
}

fn params(message: &'static str) -> anyhow::Result<Raw> {
    let message = decode(Bytes::from_static(message.as_bytes()), &Limits::default())?;
    let Incoming::Single(Ok(Message::Request(request))) = message else {
        bail!("no request");
    };
    request.params.context("no params").map(Params::into_raw)
}
