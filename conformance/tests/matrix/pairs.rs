//! Every client against every server: one test for each server, one row for each client.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;

use futures_util::FutureExt;
use plexus_mcp_protocol::{Era, Revision};
use plexus_testkit::server::built;
use plexus_testkit::{Client, ListeningServer, StdioClient, Transport};
use serde_json::{Value, json};

use crate::features::{FILLER, check};
use crate::verdict::{Feature, Verdict, verdict};

const SERVER: &str = env!("CARGO_BIN_EXE_conformance-server");
const ANY_PORT: &str = "127.0.0.1:0";

macro_rules! servers {
    ($($name:ident $transport:ident $revision:ident,)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                every_client(Transport::$transport, Revision::$revision).await;
            }
        )*
    };
}

servers! {
    stdio_2024_11_05 Stdio V2024_11_05,
    stdio_2025_03_26 Stdio V2025_03_26,
    stdio_2025_06_18 Stdio V2025_06_18,
    stdio_2025_11_25 Stdio V2025_11_25,
    stdio_2026_07_28 Stdio V2026_07_28,
    http_2024_11_05 Http V2024_11_05,
    http_2025_03_26 Http V2025_03_26,
    http_2025_06_18 Http V2025_06_18,
    http_2025_11_25 Http V2025_11_25,
    http_2026_07_28 Http V2026_07_28,
    sse_2024_11_05 Sse V2024_11_05,
    sse_2025_03_26 Sse V2025_03_26,
    sse_2025_06_18 Sse V2025_06_18,
    sse_2025_11_25 Sse V2025_11_25,
}

/// A server behind a bridge.
struct Bridged {
    /// The arguments of `plexus bridge` after its options.
    target: Vec<String>,
    /// The server process, if the bridge does not start the server itself.
    _server: Option<ListeningServer>,
}

impl Bridged {
    async fn start(transport: Transport, revision: Revision) -> Self {
        let filler = FILLER.to_string();
        let own = ["--revision", revision.as_str(), "--filler", &filler];
        let flag = match transport {
            Transport::Stdio => {
                let words = ["--", SERVER, "--stdio"].into_iter().chain(own);
                return Self {
                    target: words.map(str::to_owned).collect(),
                    _server: None,
                };
            }
            Transport::Http => "--http",
            Transport::Sse => "--sse",
        };
        let arguments = [&[flag, ANY_PORT][..], &own[..]].concat();
        let server = ListeningServer::start(SERVER, &arguments).await;
        Self {
            target: vec![server.url().to_owned()],
            _server: Some(server),
        }
    }

    fn arguments<'a>(&'a self, own: &[&'a str]) -> Vec<&'a str> {
        let target = self.target.iter().map(String::as_str);
        ["bridge"]
            .into_iter()
            .chain(own.iter().copied())
            .chain(target)
            .collect()
    }
}

async fn every_client(transport: Transport, server: Revision) {
    let bridged = Bridged::start(transport, server).await;
    let web =
        ListeningServer::start(plexus(), &bridged.arguments(&["--http", ANY_PORT, "--sse"])).await;
    let mut table = Vec::new();
    let mut failed = Vec::new();
    for (downstream, revision) in clients() {
        let capabilities = capabilities(revision);
        let mut client = match downstream {
            Transport::Stdio => {
                let pipes = StdioClient::spawn(plexus(), &bridged.arguments(&["--stdio"]));
                Client::stdio(pipes, revision, capabilities)
            }
            Transport::Http => Client::http(web.url(), revision, capabilities),
            Transport::Sse => {
                let url = web.url().replace("/mcp", "/sse");
                Client::sse(&url, revision, capabilities).await
            }
        };
        client.open().await;
        let mut row = format!("{downstream:?} {revision}:");
        for feature in Feature::ALL {
            let checking = AssertUnwindSafe(check(feature, &mut client, server)).catch_unwind();
            let held = checking.await.is_ok();
            row.push(' ');
            row.push_str(cell(held, verdict(feature, revision, server)));
            if !held {
                failed.push(format!("{downstream:?} {revision}: {}", feature.name()));
                break;
            }
        }
        client.close().await;
        table.push(row);
    }
    print(transport, server, &table);
    assert!(
        failed.is_empty(),
        "worse than docs/protocol.md says:\n{}",
        failed.join("\n")
    );
}

fn clients() -> impl Iterator<Item = (Transport, Revision)> {
    let transports = [Transport::Stdio, Transport::Http, Transport::Sse];
    let all = transports
        .into_iter()
        .flat_map(|transport| Revision::ALL.map(|revision| (transport, revision)));
    all.filter(|(transport, revision)| {
        *transport != Transport::Sse || revision.era() == Era::Handshake
    })
}

const fn cell(held: bool, verdict: Verdict) -> &'static str {
    match (held, verdict) {
        (false, _) => "FAILED",
        (true, Verdict::Lossless) => "=",
        (true, Verdict::Lossy(_)) => "~",
        (true, Verdict::Impossible(_)) => "x",
    }
}

fn print(transport: Transport, server: Revision, rows: &[String]) {
    let names = Feature::ALL.map(Feature::name).join(", ");
    println!(
        "server {transport:?} {server} ({names})\n{}\n",
        rows.join("\n")
    );
}

fn plexus() -> PathBuf {
    built("plexus")
}

/// All client capabilities of `revision`, and elicitation even for revisions from before it: a
/// server may use what a client declares.
fn capabilities(revision: Revision) -> Value {
    let elicitation = match revision {
        Revision::V2024_11_05 | Revision::V2025_03_26 | Revision::V2025_06_18 => json!({}),
        Revision::V2025_11_25 | Revision::V2026_07_28 => json!({"form": {}, "url": {}}),
    };
    json!({"roots": {}, "sampling": {}, "elicitation": elicitation})
}
