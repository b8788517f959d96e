//! Resource subscriptions that a server refuses to renew, or refuses for another resource.

use std::sync::atomic::{AtomicUsize, Ordering};

use plexus_mcp_client::Upstream;
use plexus_mcp_core::{Service, Updates};
use plexus_mcp_protocol::Fault;
use plexus_testkit::server::{HttpServer, Offer, Received, Reply, Script, StdioServer, Stream};
use plexus_testkit::within;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::support::{Caller, LEGACY, STATELESS, connected, http, stdio};

const URI: &str = "file:///watched";
const OTHER: &str = "file:///other";
const BAD: &str = "file:///bad";

async fn watch(upstream: &Upstream, uri: &str) -> Result<Updates, Fault> {
    let peer = Caller::default().peer();
    within("the subscription", upstream.subscribe(&peer, uri)).await
}

async fn hears(updates: &mut Updates) {
    within("an update", updates.next())
        .await
        .expect("an update");
}

fn updated(uri: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}})
}

fn uris(listen: &Received) -> &Value {
    &listen.body["params"]["notifications"]["resourceSubscriptions"]
}

/// A stateless server that answers `subscriptions/listen` with an error if `is_refused` says so, and
/// otherwise acknowledges everything. Its streams.
async fn listening(
    is_refused: impl Fn(&Received) -> bool + Send + Sync + 'static,
) -> (HttpServer, mpsc::Receiver<Stream>) {
    let offer = Offer::new(STATELESS).declaring("resources", json!({"subscribe": true}));
    let (streams, opened) = mpsc::channel(8);
    let server = HttpServer::start(move |request| match request.mcp() {
        "subscriptions/listen" if is_refused(request) => {
            Reply::json(&request.error(-32603, "busy"))
        }
        "subscriptions/listen" => {
            let (reply, stream) = Reply::stream();
            let id = &request.body["id"];
            stream.say_now(&json!({"jsonrpc": "2.0",
                "method": "notifications/subscriptions/acknowledged",
                "params": {"notifications": request.body["params"]["notifications"],
                    "_meta": {"io.modelcontextprotocol/subscriptionId": id}}}));
            streams.try_send(stream).unwrap();
            reply
        }
        _ => request.reply_from(&offer),
    })
    .await;
    (server, opened)
}

/// The server ends the stream, and fails to open the next one. The subscription is kept, and its
/// subscribers are notified when it is renewed, because an update may have been missed.
#[tokio::test]
async fn a_stream_that_cannot_be_opened_again_at_first_keeps_its_subscriptions() {
    let listens = AtomicUsize::new(0);
    let is_refused = move |_: &Received| listens.fetch_add(1, Ordering::SeqCst) == 1;
    let (server, mut streams) = listening(is_refused).await;
    let upstream = connected(http(&server)).await;
    let mut updates = watch(&upstream, URI).await.unwrap();
    streams.recv().await.unwrap().break_off().await;
    let stream = within("the new stream", streams.recv()).await.unwrap();
    hears(&mut updates).await;
    stream.say(&updated(URI)).await;
    hears(&mut updates).await;
    for _ in 0..3 {
        let listen = server.received("subscriptions/listen").await;
        assert_eq!(*uris(&listen), json!([URI]));
    }
}

/// A resource that the server refuses ends no other subscription, and does not interrupt or delay it:
/// its stream stays open, and further subscriptions are made at once.
#[tokio::test]
async fn a_refused_resource_does_not_affect_other_subscriptions() {
    let is_refused = |listen: &Received| {
        let uris = uris(listen).as_array().unwrap();
        uris.iter().any(|uri| *uri == BAD)
    };
    let (server, mut streams) = listening(is_refused).await;
    let upstream = connected(http(&server)).await;
    let mut updates = watch(&upstream, URI).await.unwrap();
    let stream = streams.recv().await.unwrap();
    for _ in 0..5 {
        let Err(Fault::Upstream(error)) = watch(&upstream, BAD).await else {
            panic!("the server refused it");
        };
        assert_eq!(error.message, "busy");
        stream.say(&updated(URI)).await;
        hears(&mut updates).await;
    }
    assert!(streams.try_recv().is_err(), "the first stream stayed open");
    let mut other = watch(&upstream, OTHER).await.unwrap();
    stream.closed().await;
    let stream = streams.recv().await.unwrap();
    for (uri, updates) in [(URI, &mut updates), (OTHER, &mut other)] {
        stream.say(&updated(uri)).await;
        hears(updates).await;
    }
    let listens = server.methods();
    let listens = listens
        .iter()
        .filter(|method| *method == "subscriptions/listen");
    assert_eq!(listens.count(), 7, "each change was one request");
}

/// A server of the handshake era fails to renew a subscription on a new connection. It is asked again.
#[tokio::test]
async fn a_subscription_that_is_not_renewed_at_first_is_kept() {
    let offer = Offer::new(LEGACY).declaring("resources", json!({"subscribe": true}));
    let server = StdioServer::new(Script::from(&offer).ignoring("resources/subscribe")).await;
    let upstream = connected(stdio(&server)).await;
    let first = server.process().await;
    let answering = async {
        let request = first.received("resources/subscribe").await;
        first.reply(&request, json!({})).await;
    };
    let (updates, ()) = tokio::join!(watch(&upstream, URI), answering);
    let mut updates = updates.unwrap();
    within("the new connection", upstream.reconnect())
        .await
        .unwrap();
    let second = server.process().await;
    let request = second.received("resources/subscribe").await;
    let busy = json!({"code": -32603, "message": "busy"});
    second.refuse(&request, busy).await;
    let request = second.received("resources/subscribe").await;
    assert_eq!(request["params"]["uri"], URI);
    second.reply(&request, json!({})).await;
    hears(&mut updates).await;
    second.say(updated(URI)).await;
    hears(&mut updates).await;
}
