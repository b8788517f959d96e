//! Our own fixture server, at each revision over each transport.
//!
//! Plexus always asks for the newest revision. For older revisions, a proxy replaces the version in
//! the handshake, so that the server speaks the older revision.

use std::net::SocketAddr;

use plexus_mcp_client::{ClientCapabilities, Definition, Era, Program, Target, Upstream};
use plexus_mcp_core::{Event, Section, Service};
use plexus_mcp_protocol::Revision;
use plexus_testkit::server::built;
use plexus_testkit::{ListeningServer, within};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::support::{
    Caller, LEGACY, STATELESS, asked, call_tool, catalogue, connected, minimal, names, raw,
    revision, target, value,
};

const WATCHED: &str = "test://watched-resource";

fn legacy() -> impl Iterator<Item = Revision> {
    let revisions = Revision::ALL.into_iter();
    revisions.filter(|revision| revision.era() == Era::Handshake)
}

fn able() -> Value {
    json!({"elicitation": {}, "sampling": {}, "roots": {}})
}

fn definition(target: Target, era: Era) -> Definition {
    let mut definition = minimal(target);
    definition.era = Some(era);
    definition.capabilities = ClientCapabilities::from_raw(&raw(&able())).unwrap();
    definition
}

/// S001-01, S001-30, S001-47, S004-01, S004-02.
#[tokio::test]
async fn every_old_revision_over_stdio() {
    for older in legacy() {
        let server = built("conformance-server").display().to_string();
        let asking = format!(
            r#"sed -u 's/"protocolVersion":"{LEGACY}"/"protocolVersion":"{older}"/' | "$0" --stdio"#
        );
        let program = Program::new("sh").arg("-c").arg(asking).arg(server);
        converse(definition(Target::Stdio(program), Era::Handshake), older).await;
    }
}

#[tokio::test]
async fn the_stateless_revision_over_stdio() {
    let server = built("conformance-server").display().to_string();
    let program = Program::new(server).arg("--stdio");
    converse(
        definition(Target::Stdio(program), Era::Stateless),
        STATELESS,
    )
    .await;
}

/// S004-01, S004-02.
#[tokio::test]
async fn every_old_revision_over_http() {
    let server =
        ListeningServer::start(built("conformance-server"), &["--http", "127.0.0.1:0"]).await;
    for older in legacy() {
        let proxy = Proxy::to(server.url(), older).await;
        let target = Target::Http(target(&proxy.url));
        converse(definition(target, Era::Handshake), older).await;
    }
}

#[tokio::test]
async fn the_stateless_revision_over_http() {
    let server =
        ListeningServer::start(built("conformance-server"), &["--http", "127.0.0.1:0"]).await;
    let target = Target::Http(target(server.url()));
    converse(definition(target, Era::Stateless), STATELESS).await;
}

/// S001-01.
#[tokio::test]
async fn every_old_revision_over_sse() {
    let server =
        ListeningServer::start(built("conformance-server"), &["--sse", "127.0.0.1:0"]).await;
    let stream = server.url().replace("/mcp", "/sse");
    for older in legacy() {
        let proxy = Proxy::to(&stream, older).await;
        let target = Target::Sse(target(&proxy.url));
        converse(definition(target, Era::Handshake), older).await;
    }
}

/// The era is not configured: the probe detects it.
#[tokio::test]
async fn the_era_is_found_out() {
    for (era, spoken) in [
        ("legacy", LEGACY),
        ("modern", STATELESS),
        ("both", STATELESS),
    ] {
        let path = built("conformance-server");
        let program = Program::new(path.display().to_string()).args(["--stdio", "--era", era]);
        let upstream = connected(minimal(Target::Stdio(program))).await;
        assert_eq!(revision(&upstream), spoken, "{era}");
        let server = ListeningServer::start(path, &["--http", "127.0.0.1:0", "--era", era]).await;
        let upstream = connected(minimal(Target::Http(target(server.url())))).await;
        assert_eq!(revision(&upstream), spoken, "{era}");
    }
}

/// All requests and notifications that a server and its caller can exchange.
async fn converse(definition: Definition, spoken: Revision) {
    let upstream = connected(definition).await;
    assert_eq!(revision(&upstream), spoken);
    let report = upstream.report().unwrap();
    assert!(
        report.quarantined.is_empty(),
        "{spoken}: {:?}",
        report.quarantined
    );
    assert!(
        report.list_problems.is_empty(),
        "{spoken}: {:?}",
        report.list_problems
    );
    let offered = catalogue(&upstream);
    for (section, name) in [
        (Section::Tools, "test_simple_text"),
        (Section::Resources, WATCHED),
        (Section::Prompts, "test_simple_prompt"),
    ] {
        assert!(
            names(&offered, section).contains(&name.to_owned()),
            "{name}"
        );
    }

    let result = call_tool(&upstream, "test_simple_text").await;
    assert_eq!(result["content"][0]["type"], "text", "{result}");
    progress(&upstream).await;

    if spoken >= Revision::V2025_06_18 {
        let answer =
            json!({"action": "accept", "content": {"username": "kim", "email": "kim@example.com"}});
        let text = ask(
            &upstream,
            "test_elicitation",
            json!({"message": "Who?"}),
            answer,
        )
        .await;
        assert!(text.contains("kim@example.com"), "{text}");
    }
    let answer =
        json!({"role": "assistant", "content": {"type": "text", "text": "Bonjour"}, "model": "m"});
    let text = ask(
        &upstream,
        "test_sampling",
        json!({"prompt": "Hello"}),
        answer,
    )
    .await;
    assert!(text.contains("Bonjour"), "{text}");
    let answer = json!({"roots": [{"uri": "file:///home/kim"}]});
    let text = ask(&upstream, "test_roots", json!({}), answer).await;
    assert!(text.contains("file:///home/kim"), "{text}");

    let peer = Caller::able(able()).peer();
    let watching = within("the subscription", upstream.subscribe(&peer, WATCHED));
    let mut updates = watching.await.unwrap();
    call_tool(&upstream, "test_touch_watched_resource").await;
    within("the update", updates.next())
        .await
        .expect("an update");
    drop(updates);

    changes(&upstream).await;
    let violations = upstream.report().unwrap().violations;
    assert_eq!(
        violations,
        plexus_mcp_client::ProtocolViolations::default(),
        "{spoken}"
    );
    within("the end", upstream.disconnect()).await;
}

async fn progress(upstream: &Upstream) {
    let caller = Caller {
        progress: true,
        ..Caller::default()
    };
    let params = json!({"name": "test_tool_with_progress", "arguments": {}});
    let (calling, mut events) = caller.call(upstream, "tools/call", &params);
    within("the result", calling).await.unwrap();
    let mut seen = Vec::new();
    while let Some(Event::Progress(progress)) = events.try_recv() {
        seen.push(progress.progress);
    }
    assert_eq!(seen.len(), 3, "{seen:?}");
    assert!(seen.is_sorted());
}

async fn ask(upstream: &Upstream, tool: &str, arguments: Value, answer: Value) -> String {
    let caller = Caller::able(able());
    let params = json!({"name": tool, "arguments": arguments});
    let (mut calling, mut events) = caller.call(upstream, "tools/call", &params);
    let question = asked(&mut calling, &mut events).await;
    question.answer(Ok(raw(&answer)));
    let result = value(&within(tool, calling).await.unwrap());
    let text = result["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{tool}: {result}"))
        .to_owned()
}

async fn changes(upstream: &Upstream) {
    let described = |offered: &plexus_mcp_core::Catalogue| {
        let tool = offered.list(Section::Tools).get("test_dynamic_tool");
        tool.unwrap().definition.as_str().to_owned()
    };
    let before = described(&catalogue(upstream));
    let mut catalogues = upstream.catalogue();
    call_tool(upstream, "test_trigger_tool_change").await;
    let changed = catalogues.wait_for(|offered| described(offered) != before);
    drop(within("the change", changed).await.unwrap());
}

/// A proxy that asks for an older revision.
struct Proxy {
    url: String,
    _connections: JoinSet<()>,
}

impl Proxy {
    async fn to(url: &str, older: Revision) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let here = listener.local_addr().unwrap();
        let there = url.trim_start_matches("http://");
        let (there, path) = there.split_once('/').unwrap();
        let there: SocketAddr = there.parse().unwrap();
        let mut connections = JoinSet::new();
        connections.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                open.spawn(pass_on(client, there, older));
            }
        });
        Self {
            url: format!("http://{here}/{path}"),
            _connections: connections,
        }
    }
}

/// Forwards all bytes, with another version in the handshake. All versions have the same length.
async fn pass_on(client: TcpStream, there: SocketAddr, older: Revision) {
    let server = TcpStream::connect(there).await.unwrap();
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let wanted = format!(r#""protocolVersion":"{LEGACY}""#);
    let instead = format!(r#""protocolVersion":"{older}""#);
    let out = async {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from_client.read(&mut buffer).await {
            let text = String::from_utf8_lossy(&buffer[..length]);
            let text = text.replace(&wanted, &instead);
            if to_server.write_all(text.as_bytes()).await.is_err() {
                break;
            }
        }
    };
    let back = tokio::io::copy(&mut from_server, &mut to_client);
    // The connection ends when either side closes it.
    tokio::select! {
        () = out => {}
        _ = back => {}
    }
}
