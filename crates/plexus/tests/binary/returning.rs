//! Servers over HTTP that come back while nothing calls them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use plexus_mcp_protocol::{Era, Revision};
use plexus_testkit::server::{HttpServer, Offer, Received, Reply, Stream, tool};
use serde_json::{Value, json};
use tokio::net::TcpSocket;

use crate::gateway::{control, file, until_tools};
use crate::home::Home;
use crate::process::Plexus;
use crate::servers::USER;

const REVISIONS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

/// A port that is not assigned to others while no server listens on it.
pub(crate) fn port() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

fn gateway(address: SocketAddr) -> (Home, Plexus) {
    let server = json!({"type": "http", "url": format!("http://{address}/mcp")});
    let home = Home::with(&[(USER, &file(&[("web", server)]))]);
    let mut plexus = home.start(&["serve", "--stdio"]);
    plexus.initialize("2025-11-25");
    (home, plexus)
}

/// Waits until the server has failed, and returns its entry in the status.
fn until_failed(home: &Home, plexus: &Plexus) -> Value {
    loop {
        let status = control::status(home, plexus);
        let mut servers = status["servers"].as_array().unwrap().iter();
        let web = servers.find(|server| server["name"] == "web").unwrap();
        if web["state"] == "failed" {
            return web.clone();
        }
    }
}

/// A server that is down at the start is connected in the background when it is up, and its
/// tools are announced.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_down_at_the_start_is_announced() {
    for revision in REVISIONS {
        let (_port, address) = port();
        let (home, mut plexus) = gateway(address);
        let failed = until_failed(&home, &plexus);
        assert!(failed["reason"].to_string().contains("refused"), "{failed}");
        until_tools(&mut plexus, "web__", &[]);
        let offer = Offer::tools(revision, [tool("a")]);
        let server = HttpServer::start_at(address, move |request| request.reply_from(&offer)).await;
        while plexus.receive()["method"] != "notifications/tools/list_changed" {}
        until_tools(&mut plexus, "web__", &["web__a"]);
        assert!(!server.methods().contains(&"tools/call".to_owned()));
        assert_eq!(plexus.end().code, Some(0));
    }
}

/// A server that goes down is connected again in the background. Its stream shows that it is
/// down.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_down_for_a_while_is_announced() {
    for revision in REVISIONS {
        let (_port, address) = port();
        let server = streaming(address, revision, "a").await;
        let (home, mut plexus) = gateway(address);
        until_tools(&mut plexus, "web__", &["web__a"]);
        match revision.era() {
            Era::Stateless => server.received("subscriptions/listen").await,
            Era::Handshake => server.requested(http::Method::GET).await,
        };
        drop(server);
        until_failed(&home, &plexus);
        until_tools(&mut plexus, "web__", &["web__a"]);
        let server = streaming(address, revision, "b").await;
        while plexus.receive()["method"] != "notifications/tools/list_changed" {}
        until_tools(&mut plexus, "web__", &["web__b"]);
        assert!(!server.methods().contains(&"tools/call".to_owned()));
        assert_eq!(plexus.end().code, Some(0));
    }
}

/// A server with this tool and a stream for notifications.
async fn streaming(address: SocketAddr, revision: Revision, name: &str) -> HttpServer {
    let offer = Offer::tools(revision, [tool(name)]);
    let streams: Arc<Mutex<Vec<Stream>>> = Arc::default();
    let answer = move |request: &Received| {
        if request.mcp() == "subscriptions/listen" || request.method == http::Method::GET {
            let (reply, stream) = Reply::stream();
            if !request.body["id"].is_null() {
                let id = &request.body["id"];
                let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
                stream.say_now(&json!({
                    "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                    "params": {"_meta": meta, "notifications": {"toolsListChanged": true}},
                }));
            }
            streams.lock().unwrap().push(stream);
            return reply;
        }
        request.reply_from(&offer)
    };
    HttpServer::start_at(address, answer).await
}
