//! Response bodies and event streams.

use futures_util::FutureExt;
use plexus_mcp_wire::sse::Event;

use super::peer::Peer;
use super::{client, get, options};
use crate::http::{EventSource, HttpClient, HttpError, HttpResponse};

const JSON: &str = r#"{"text":"gr\u00fcn, grün"}"#;
const EVENTS: &str = "id: 1\ndata:\n\nevent: message\r\ndata: {\"a\":\ndata: \"ü\"}\n\n: still here\n\nid: 2\nretry: 10\n\n";

/// What the client makes of an answer written byte by byte.
async fn response_to(client: &HttpClient, answer: &str) -> HttpResponse {
    let peer = Peer::bind().await;
    let url = peer.url("/");
    let (response, ()) = tokio::join!(client.send(get(&url)), async {
        let mut link = peer.accept().await;
        link.request().await;
        link.write(answer).await;
    });
    response.unwrap()
}

async fn all(mut source: EventSource) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(event) = source.next().await {
        events.push(event.unwrap());
    }
    events
}

#[tokio::test]
async fn a_body_arrives_however_it_is_cut() {
    let client = client();
    let peer = Peer::bind().await;
    let url = peer.url("/");
    let reading = async {
        for _ in 0..=JSON.len() {
            let response = client.send(get(&url)).await.unwrap();
            assert!(response.is_json());
            assert_eq!(response.bytes().await.unwrap(), JSON);
        }
    };
    tokio::join!(reading, async {
        let mut link = peer.accept().await;
        for at in 0..=JSON.len() {
            link.request().await;
            let (left, right) = JSON.as_bytes().split_at(at);
            link.answer("application/json", &[left, right]).await;
        }
    });
}

#[tokio::test]
async fn events_arrive_however_they_are_cut() {
    let client = client();
    let peer = Peer::bind().await;
    let url = peer.url("/");
    let expected = [
        Event {
            id: Some("1".into()),
            ..Event::default()
        },
        Event {
            event: Some("message".into()),
            data: "{\"a\":\n\"ü\"}".into(),
            ..Event::default()
        },
        Event {
            id: Some("2".into()),
            retry: Some(10),
            ..Event::default()
        },
    ];
    let reading = async {
        for _ in 0..=EVENTS.len() {
            let response = client.send(get(&url)).await.unwrap();
            assert!(response.is_event_stream());
            assert_eq!(all(response.events()).await, expected);
        }
    };
    tokio::join!(reading, async {
        let mut link = peer.accept().await;
        for at in 0..=EVENTS.len() {
            link.request().await;
            let (left, right) = EVENTS.as_bytes().split_at(at);
            link.answer("text/event-stream", &[left, right]).await;
        }
    });
}

#[tokio::test]
async fn an_event_is_given_before_the_next_is_written_and_no_call_loses_one() {
    let client = client();
    let peer = Peer::bind().await;
    let url = peer.url("/");
    let (response, mut link) = tokio::join!(client.send(get(&url)), async {
        let mut link = peer.accept().await;
        link.request().await;
        link.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            .await;
        link
    });
    let mut events = response.unwrap().events();
    for number in 0..3 {
        link.chunk(format!("data: {number}\n").as_bytes()).await;
        // Polled with half an event there or not yet there, and dropped.
        assert!(events.next().now_or_never().is_none());
        let (event, ()) = tokio::join!(events.next(), link.chunk(b"\n"));
        assert_eq!(event.unwrap().unwrap().data, number.to_string());
    }
    link.write("0\r\n\r\n").await;
    assert!(events.next().await.is_none());
    assert!(events.next().await.is_none());
}

/// C09
#[tokio::test]
async fn a_body_up_to_the_limit_is_read_and_a_longer_one_refused() {
    let mut options = options();
    options.max_body = 8;
    let client = HttpClient::new(&options).unwrap();

    for fitting in [
        "HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n12345678",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\n1234\r\n4\r\n5678\r\n0\r\n\r\n",
    ] {
        let body = response_to(&client, fitting).await.bytes().await;
        assert_eq!(body.unwrap(), "12345678");
    }
    for longer in [
        // Refused for what it announces.
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\n1234\r\n5\r\n56789\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n123456789",
    ] {
        let error = response_to(&client, longer).await.bytes().await;
        let error = error.unwrap_err();
        assert!(matches!(error, HttpError::TooLarge { limit: 8, .. }));
        assert!(!error.is_connect());
    }
}

/// C09
#[tokio::test]
async fn an_event_over_the_limit_is_told_and_the_next_one_is_intact() {
    let mut options = options();
    options.max_event = 8;
    let client = HttpClient::new(&options).unwrap();
    let answer = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n\
                  data: 12345678\n\ndata: 123456789\n\ndata: 3\n\n";
    let mut events = response_to(&client, answer).await.events();

    assert_eq!(events.next().await.unwrap().unwrap().data, "12345678");
    let error = events.next().await.unwrap().unwrap_err();
    assert!(matches!(error, HttpError::EventTooLong { limit: 8, .. }));
    assert_eq!(events.next().await.unwrap().unwrap().data, "3");
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn a_body_that_breaks_off_is_broken() {
    let client = client();
    for cut in [
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n1234",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\n1234\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nno length",
    ] {
        let error = response_to(&client, cut).await.bytes().await.unwrap_err();
        assert!(matches!(error, HttpError::Broken { .. }), "{error:?}");
        assert!(!error.is_connect(), "the request was sent");
    }
}

#[tokio::test]
async fn a_broken_event_stream_gives_its_events_then_an_error_then_ends() {
    let answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n";
    let mut events = response_to(&client(), answer).await.events();
    assert_eq!(events.next().await.unwrap().unwrap().data, "1");
    let error = events.next().await.unwrap().unwrap_err();
    assert!(matches!(error, HttpError::Broken { .. }));
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn the_type_of_a_body_is_read_without_parameters_and_case() {
    let client = client();
    for (content_type, is_json, is_event_stream) in [
        ("application/json", true, false),
        ("Application/JSON; charset=utf-8", true, false),
        ("text/event-stream;charset=utf-8", false, true),
        ("TEXT/Event-Stream ; x=y", false, true),
        ("application/jsonl", false, false),
        ("application/problem+json", false, false),
        ("text/html, application/json", false, false),
        ("", false, false),
    ] {
        let answer =
            format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: 0\r\n\r\n");
        let response = response_to(&client, &answer).await;
        assert_eq!(response.is_json(), is_json, "{content_type}");
        assert_eq!(
            response.is_event_stream(),
            is_event_stream,
            "{content_type}"
        );
    }
    let untyped = response_to(
        &client,
        "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n",
    )
    .await;
    assert_eq!(untyped.status, 202);
    assert!(!untyped.is_json() && !untyped.is_event_stream());
    assert_eq!(untyped.bytes().await.unwrap(), "");
}
