//! HTTP+SSE of 2024-11-05: one endpoint for the event stream, another for the client's messages.

use plexus_mcp_protocol::Revision;
use plexus_testkit::{HttpClient, HttpResponse, ListeningServer};
use serde_json::json;

use crate::support::{ANY_PORT, SERVER, code, initialize, mirrored, request, stateless};

async fn serve() -> (ListeningServer, HttpClient) {
    let server = ListeningServer::start(SERVER, &["--sse", ANY_PORT]).await;
    let client = HttpClient::new(server.url(), Revision::V2024_11_05);
    (server, client)
}

/// Opens an event stream; returns it, and a client of the message endpoint that it names.
async fn open(client: &HttpClient) -> (HttpResponse, HttpClient) {
    let mut stream = client.get().send().await;
    assert_eq!(stream.status(), 200);
    let endpoint = stream.event().await.unwrap();
    assert_eq!(endpoint.event.as_deref(), Some("endpoint"));
    (stream, client.clone().at(&endpoint.data))
}

/// S000-08, SSE24-01, SSE24-02, SSE24-04: the stream has the endpoint first, then all responses. An
/// accepted POST gets an empty body.
#[tokio::test]
async fn answers_come_on_the_stream() {
    let (_server, client) = serve().await;
    let (mut stream, messages) = open(&client).await;
    let answer = messages.post(&initialize(1, "2024-11-05")).send().await;
    assert_eq!((answer.status(), answer.text().await.as_str()), (202, ""));
    let event = stream.event().await.unwrap();
    assert_eq!(event.event.as_deref(), Some("message"));
    let greeting = event.message.unwrap();
    assert_eq!(greeting["result"]["protocolVersion"], "2024-11-05");

    assert_eq!(
        messages
            .post(&json!({"jsonrpc": "2.0", "id": 2}))
            .send()
            .await
            .status(),
        202
    );
    let refused = stream.next_message().await.unwrap();
    assert_eq!((code(&refused), &refused["id"]), (-32600, &json!(2)));
    assert_eq!(messages.post_bytes("{").send().await.status(), 400);
    let text = messages
        .post_bytes("{}")
        .header("content-type", "text/plain");
    assert_eq!(text.send().await.status(), 415);
}

/// A session ends with its event stream. A POST without a valid session gets 404.
#[tokio::test]
async fn a_session_lives_as_long_as_its_stream() {
    let (_server, client) = serve().await;
    let (mut first, of_first) = open(&client).await;
    let (second, of_second) = open(&client).await;
    let ping = request(1, "ping", json!({}));
    assert_eq!(of_first.post(&ping).send().await.status(), 202);
    assert_eq!(first.next_message().await.unwrap()["id"], 1);
    drop(second);
    plexus_testkit::within("the session to end", async {
        while of_second.post(&ping).send().await.status() != 404 {}
    })
    .await;
    let ping = request(2, "ping", json!({}));
    assert_eq!(of_first.post(&ping).send().await.status(), 202);
    assert_eq!(first.next_message().await.unwrap()["id"], 2);
    for path in [
        "/messages",
        "/messages?session=",
        "/messages?session=x",
        "/messages?x",
    ] {
        let stranger = client.clone().at(path);
        assert_eq!(stranger.post(&ping).send().await.status(), 404, "{path}");
    }
}

/// SSE24-05, SSE24-07: each endpoint has one method, both check the origin, and Streamable HTTP is
/// served at the same address.
#[tokio::test]
async fn the_endpoints_are_guarded_and_the_new_one_is_beside_them() {
    let (_server, client) = serve().await;
    let (_stream, messages) = open(&client).await;
    let ping = request(1, "ping", json!({}));
    assert_eq!(client.post(&ping).send().await.status(), 405);
    assert_eq!(messages.get().send().await.status(), 405);
    let foreign = client.get().header("origin", "https://evil.example");
    assert_eq!(foreign.send().await.status(), 403);
    let foreign = messages
        .post(&ping)
        .header("origin", "https://evil.example");
    assert_eq!(foreign.send().await.status(), 403);
    let url = format!("http://{}/mcp", client.address());
    let modern = HttpClient::new(&url, Revision::V2026_07_28);
    let list = stateless(1, "tools/list", json!({}));
    assert_eq!(mirrored(&modern, &list).send().await.status(), 200);
}
