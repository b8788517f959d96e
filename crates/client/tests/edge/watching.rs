//! Resource subscriptions.

use std::sync::{Arc, Mutex};

use plexus_mcp_client::Upstream;
use plexus_mcp_core::{Service, Updates};
use plexus_mcp_protocol::Fault;
use plexus_testkit::server::{HttpServer, Offer, Reply, Script, StdioServer, Step, Stream};
use plexus_testkit::within;
use serde_json::{Value, json};

use crate::support::{Caller, LEGACY, SHORT, STATELESS, connected, http, stdio};

const URI: &str = "file:///watched";

fn offer(revision: plexus_mcp_protocol::Revision) -> Offer {
    Offer::new(revision).declaring("resources", json!({"subscribe": true}))
}

fn legacy() -> Script {
    let done = [Step::Result(json!({}))];
    Script::from(&offer(LEGACY))
        .on("resources/subscribe", done.clone())
        .on("resources/unsubscribe", done)
}

async fn watch(upstream: &Upstream, uri: &str) -> Result<Updates, Fault> {
    let peer = Caller::default().peer();
    within("the subscription", upstream.subscribe(&peer, uri)).await
}

fn updated(uri: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}})
}

async fn hears(updates: &mut Updates) {
    within("an update", updates.next())
        .await
        .expect("an update");
}

/// SUBL-03, S001-D08: all subscribers of a resource share one subscription, which ends with the
/// last subscriber.
#[tokio::test]
async fn watchers_of_one_resource_share_one_subscription() {
    let server = StdioServer::new(legacy()).await;
    let upstream = connected(stdio(&server)).await;
    let process = server.process().await;
    let mut one = watch(&upstream, URI).await.unwrap();
    let mut other = watch(&upstream, URI).await.unwrap();
    let asked = process.received("resources/subscribe").await;
    assert_eq!(asked["params"]["uri"], URI);
    process.say(updated(URI)).await;
    hears(&mut one).await;
    hears(&mut other).await;

    drop(one);
    process.say(updated("file:///elsewhere")).await;
    process.say(updated(URI)).await;
    hears(&mut other).await;
    let methods = process.methods().await;
    assert!(!methods.contains(&"resources/unsubscribe".to_owned()));
    drop(other);
    let asked = process.received("resources/unsubscribe").await;
    assert_eq!(asked["params"]["uri"], URI);
    let methods = process.methods().await;
    let subscribed = methods.iter().filter(|m| *m == "resources/subscribe");
    assert_eq!(subscribed.count(), 1);

    let mut again = watch(&upstream, URI).await.unwrap();
    process.received("resources/subscribe").await;
    process.say(updated(URI)).await;
    hears(&mut again).await;
}

#[tokio::test]
async fn watchers_that_come_at_once_share_one_subscription() {
    let server = StdioServer::new(legacy().ignoring("resources/subscribe")).await;
    let upstream = connected(stdio(&server)).await;
    let process = server.process().await;
    let answering = async {
        let request = process.received("resources/subscribe").await;
        process.reply(&request, json!({})).await;
    };
    let (one, other, ()) = tokio::join!(watch(&upstream, URI), watch(&upstream, URI), answering);
    let (mut one, mut other) = (one.unwrap(), other.unwrap());
    process.say(updated(URI)).await;
    hears(&mut one).await;
    hears(&mut other).await;
    drop((one, other));
    process.received("resources/unsubscribe").await;
    let methods = process.methods().await;
    let count = |wanted| methods.iter().filter(|method| *method == wanted).count();
    assert_eq!(count("resources/subscribe"), 1);
    assert_eq!(count("resources/unsubscribe"), 1);
}

/// An update may name a resource below the one that is subscribed.
#[tokio::test]
async fn an_update_below_a_watched_resource_is_heard() {
    let server = StdioServer::new(legacy()).await;
    let upstream = connected(stdio(&server)).await;
    let mut updates = watch(&upstream, URI).await.unwrap();
    let process = server.process().await;
    process.say(updated(&format!("{URI}/inside"))).await;
    hears(&mut updates).await;
}

#[tokio::test]
async fn a_refused_subscription_says_why() {
    let refusal = Step::Error(json!({"code": -32002, "message": "no such resource"}));
    let server = StdioServer::new(legacy().on("resources/subscribe", [refusal])).await;
    let upstream = connected(stdio(&server)).await;
    let Err(Fault::Upstream(error)) = watch(&upstream, URI).await else {
        panic!("the server refused it");
    };
    assert_eq!(
        (error.code, error.message.as_str()),
        (-32002, "no such resource")
    );
}

/// SUBL-01: a server that does not declare subscriptions gets no subscribe request.
#[tokio::test]
async fn a_server_without_subscriptions_is_not_asked() {
    for revision in [LEGACY, STATELESS] {
        let offer = Offer::new(revision).declaring("resources", json!({}));
        let server = StdioServer::new(&offer).await;
        let upstream = connected(stdio(&server)).await;
        let fault = watch(&upstream, URI).await.unwrap_err();
        assert!(matches!(fault, Fault::MethodNotFound(_)), "{fault}");
        let methods = server.process().await.methods().await;
        assert!(!methods.iter().any(|method| method.contains("subscri")));
    }
}

/// C56: a subscription request times out in both eras.
#[tokio::test]
async fn a_subscription_that_is_not_answered_fails_in_time() {
    for script in [
        legacy().ignoring("resources/subscribe"),
        Script::from(&offer(STATELESS)),
    ] {
        let server = StdioServer::new(script).await;
        let mut definition = stdio(&server);
        definition.timeouts.request = SHORT;
        let upstream = connected(definition).await;
        watch(&upstream, URI).await.unwrap_err();
    }
}

fn acknowledged(id: &Value, uris: &[&str]) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
        "params": {"notifications": {"resourceSubscriptions": uris},
            "_meta": {"io.modelcontextprotocol/subscriptionId": id}}})
}

/// A stateless server that acknowledges the URIs in `honoured`, and its last stream.
async fn stateless(honoured: &'static [&'static str]) -> (HttpServer, Arc<Mutex<Option<Stream>>>) {
    let offer = offer(STATELESS);
    let stream = Arc::new(Mutex::new(None));
    let opened = Arc::clone(&stream);
    let server = HttpServer::start(move |request| match request.mcp() {
        "subscriptions/listen" => {
            let (reply, stream) = Reply::stream();
            stream.say_now(&acknowledged(&request.body["id"], honoured));
            *opened.lock().unwrap() = Some(stream);
            reply
        }
        _ => request.reply_from(&offer),
    })
    .await;
    (server, stream)
}

/// SUB26-04, SUB26-08
#[tokio::test]
async fn the_listen_stream_closes_with_the_last_subscriber() {
    let (server, stream) = stateless(&[URI]).await;
    let upstream = connected(http(&server)).await;
    let mut one = watch(&upstream, URI).await.unwrap();
    let mut other = watch(&upstream, URI).await.unwrap();
    let listen = server.received("subscriptions/listen").await;
    let filter = &listen.body["params"]["notifications"];
    assert_eq!(filter["resourceSubscriptions"], json!([URI]));
    let listening = stream.lock().unwrap().take().unwrap();
    listening.say(&updated(URI)).await;
    hears(&mut one).await;
    hears(&mut other).await;
    drop(one);
    listening.say(&updated(URI)).await;
    hears(&mut other).await;
    drop(other);
    listening.closed().await;
    let methods = server.methods();
    let listens = methods.iter().filter(|m| *m == "subscriptions/listen");
    assert_eq!(listens.count(), 1);
}

#[tokio::test]
async fn a_subscription_that_is_not_honoured_is_refused() {
    let (server, _stream) = stateless(&[]).await;
    let upstream = connected(http(&server)).await;
    watch(&upstream, URI).await.unwrap_err();
    server
        .received("subscriptions/listen")
        .await
        .given_up()
        .await;
}

/// SUB26-10, TRANSLATION §6.6: a lost stream is opened again. Its subscribers are notified, because
/// an update may have been missed.
#[tokio::test]
async fn a_lost_stream_is_taken_up_again() {
    let (server, stream) = stateless(&[URI]).await;
    let upstream = connected(http(&server)).await;
    let mut updates = watch(&upstream, URI).await.unwrap();
    server.received("subscriptions/listen").await;
    let broken = stream.lock().unwrap().take().unwrap();
    broken.break_off().await;
    server.received("subscriptions/listen").await;
    hears(&mut updates).await;
}

/// TRANSLATION §5.9.6: subscriptions are renewed on a new connection. Their subscribers are
/// notified, because an update may have been missed.
#[tokio::test]
async fn subscriptions_survive_their_connection() {
    let server = StdioServer::new(legacy()).await;
    let upstream = connected(stdio(&server)).await;
    let first = server.process().await;
    let mut updates = watch(&upstream, URI).await.unwrap();
    first.received("resources/subscribe").await;
    within("the new connection", upstream.reconnect())
        .await
        .unwrap();
    let second = server.process().await;
    let asked = second.received("resources/subscribe").await;
    assert_eq!(asked["params"]["uri"], URI);
    hears(&mut updates).await;
    second.say(updated(URI)).await;
    hears(&mut updates).await;
    drop(updates);
    second.received("resources/unsubscribe").await;
}

/// TRANSLATION §6.6: one stream carries all subscriptions. A new subscription opens a new stream,
/// and then the old one is closed.
#[tokio::test]
async fn a_stream_is_enlarged_by_another_that_takes_its_place() {
    const OTHER: &str = "file:///other";
    let (server, stream) = stateless(&[URI, OTHER]).await;
    let upstream = connected(http(&server)).await;
    let mut one = watch(&upstream, URI).await.unwrap();
    let small = stream.lock().unwrap().take().unwrap();
    let mut other = watch(&upstream, OTHER).await.unwrap();
    small.closed().await;
    let large = stream.lock().unwrap().take().unwrap();
    large.say(&updated(URI)).await;
    hears(&mut one).await;
    large.say(&updated(OTHER)).await;
    hears(&mut other).await;
    let listens: Vec<_> = server
        .all()
        .into_iter()
        .filter(|request| request.mcp() == "subscriptions/listen")
        .map(|request| request.body["params"]["notifications"]["resourceSubscriptions"].clone())
        .collect();
    assert_eq!(listens, [json!([URI]), json!([OTHER, URI])]);
}

/// SUB26-06, SUB26-08: over stdio a subscription is cancelled by message.
#[tokio::test]
async fn over_stdio_the_last_subscriber_cancels_the_subscription() {
    let server = StdioServer::new(&offer(STATELESS)).await;
    let upstream = connected(stdio(&server)).await;
    let process = server.process().await;
    let answering = async {
        let listen = process.received("subscriptions/listen").await;
        process.say(acknowledged(&listen["id"], &[URI])).await;
        listen
    };
    let (updates, listen) = tokio::join!(watch(&upstream, URI), answering);
    let mut updates = updates.unwrap();
    let mut update = updated(URI);
    update["params"]["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": listen["id"]});
    process.say(update).await;
    hears(&mut updates).await;
    drop(updates);
    let cancelled = process.received("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], listen["id"]);
}
