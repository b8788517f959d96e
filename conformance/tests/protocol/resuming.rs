//! Resumption of event streams by legacy clients (`Last-Event-ID`).

use plexus_mcp_protocol::Revision;
use plexus_testkit::{HttpClient, HttpResponse, StreamEvent};
use serde_json::json;

use crate::support::{LEGACY, call, listening, request, session, text};

/// Makes a call whose response is a stream of three progress notifications and the result.
async fn streaming(client: &HttpClient, id: i64) -> HttpResponse {
    let mut params = call("test_tool_with_progress", json!({}));
    params["_meta"] = json!({"progressToken": id});
    let answer = client.post(&request(id, "tools/call", params)).send().await;
    assert!(answer.is_stream());
    answer
}

async fn resume(client: &HttpClient, last_event: &str) -> HttpResponse {
    let answer = client
        .get()
        .header("last-event-id", last_event)
        .send()
        .await;
    assert_eq!(answer.status(), 200);
    answer
}

async fn rest(mut answer: HttpResponse) -> Vec<StreamEvent> {
    let mut events = Vec::new();
    while let Some(event) = answer.event().await {
        events.push(event);
    }
    events
}

/// HTTPL-09, HTTPL-10, HTTPL-16: a stream begins with a priming event, which has `retry`, in
/// 2025-11-25 only.
#[tokio::test]
async fn streams_are_primed_where_the_revision_polls() {
    let server = listening(&[]).await;
    for revision in LEGACY {
        let client = session(server.url(), revision).await;
        let mut events = rest(streaming(&client, 1).await).await;
        if revision == Revision::V2025_11_25 {
            let priming = events.remove(0);
            assert_eq!((priming.data.as_str(), priming.message), ("", None));
            assert!(priming.id.is_some() && priming.retry.is_some());
        }
        assert_eq!(events.len(), 4, "{revision}");
        let mut ids: Vec<_> = events
            .iter()
            .map(|event| event.id.clone().unwrap())
            .collect();
        assert!(events.iter().all(|event| event.retry.is_none()));
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 4, "{revision}");
    }
}

/// S003-47, HTTPL-16: no two events of a session have the same id, whatever their stream.
#[tokio::test]
async fn event_ids_are_unique_in_a_session() {
    let server = listening(&[]).await;
    let client = session(server.url(), Revision::V2025_11_25).await;
    let mut ids = Vec::new();
    for id in 0..5 {
        let events = rest(streaming(&client, id).await).await;
        ids.extend(events.into_iter().filter_map(|event| event.id));
    }
    let all = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!((ids.len(), all), (25, 25));
}

/// S003-36, HTTPL-17, C20: a resumed stream has only messages of the lost stream that are newer
/// than the event id.
#[tokio::test]
async fn a_lost_stream_is_resumed_where_it_was() {
    let server = listening(&[]).await;
    for revision in LEGACY {
        let client = session(server.url(), revision).await;
        let mut lost = streaming(&client, 1).await;
        let mut other = streaming(&client, 2).await;
        let mut first = lost.event().await.unwrap();
        if first.message.is_none() {
            first = lost.event().await.unwrap();
        }
        other.event().await.unwrap();
        drop((lost, other));

        let events = rest(resume(&client, first.id.as_deref().unwrap()).await).await;
        let messages: Vec<_> = events
            .iter()
            .filter_map(|event| event.message.clone())
            .collect();
        assert_eq!(messages.len(), 3, "{revision}: {messages:?}");
        for report in &messages[..2] {
            assert_eq!(report["params"]["progressToken"], 1);
        }
        assert_eq!(messages[0]["params"]["progress"].as_f64(), Some(50.0));
        assert_eq!(messages[2]["id"], 1);
    }
}

/// A stream can be resumed after its end: its last events are kept for some time.
#[tokio::test]
async fn a_stream_can_be_resumed_after_its_end() {
    let server = listening(&[]).await;
    let client = session(server.url(), Revision::V2025_06_18).await;
    let mut lost = streaming(&client, 1).await;
    let first = lost.event().await.unwrap().id.unwrap();
    let last = rest(lost).await.pop().unwrap();
    assert_eq!(last.message.as_ref().unwrap()["id"], 1);
    let again = HttpClient::clone(&client);
    let events = raw_events(resume(&again, &first).await).await;
    assert_eq!(events, 3);
    let events = raw_events(resume(&again, &last.id.unwrap()).await).await;
    assert_eq!(events, 0);
}

/// Counts events without decoding them, because the testkit rejects a second response to a request.
async fn raw_events(answer: HttpResponse) -> usize {
    let body = answer.text().await;
    body.lines()
        .filter(|line| line.starts_with("data:"))
        .count()
}

/// A client that resumes with an unknown event id gets an error.
#[tokio::test]
async fn an_unknown_event_id_is_refused() {
    let server = listening(&[]).await;
    let client = session(server.url(), Revision::V2025_11_25).await;
    let stranger = session(server.url(), Revision::V2025_11_25).await;
    let mut stream = streaming(&stranger, 1).await;
    let foreign = stream.event().await.unwrap().id.unwrap();
    for id in [
        "",
        "x",
        "99-1",
        "-",
        "1-x",
        "18446744073709551616-1",
        &foreign,
    ] {
        let get = client.get().header("last-event-id", id);
        assert_eq!(get.send().await.status(), 400, "{id}");
    }
}

/// HTTPL-10, HTTPLC-07: the silent stream of a client that can poll is closed, and the client gets
/// the result when it resumes.
#[tokio::test]
async fn a_silent_call_lets_go_of_a_client_that_polls() {
    let server = listening(&[]).await;
    let client = session(server.url(), Revision::V2025_11_25).await;
    let silent = request(1, "tools/call", call("test_reconnection", json!({})));
    let events = rest(client.post(&silent).send().await).await;
    let [priming] = &events[..] else {
        panic!("only a priming event was expected: {events:?}")
    };
    assert!(priming.message.is_none() && priming.retry.is_some());
    let events = rest(resume(&client, priming.id.as_deref().unwrap()).await).await;
    let [answer] = &events[..] else {
        panic!("only the answer was expected: {events:?}")
    };
    let answer = answer.message.as_ref().unwrap();
    assert_eq!(answer["id"], 1);
    assert_eq!(text(&answer["result"]), "Reconnection test completed");
}

/// HTTPL-08: the stream of a client that cannot poll stays open.
#[tokio::test]
async fn a_silent_call_keeps_a_client_that_does_not_poll() {
    let server = listening(&[]).await;
    for revision in [Revision::V2025_03_26, Revision::V2025_06_18] {
        let client = session(server.url(), revision).await;
        let silent = request(1, "tools/call", call("test_reconnection", json!({})));
        let messages = client.post(&silent).send().await.messages().await;
        assert_eq!(messages.len(), 1, "{revision}");
        assert_eq!(text(&messages[0]["result"]), "Reconnection test completed");
    }
}

/// Notifications that are sent while no GET stream is open are delivered on the next one.
#[tokio::test]
async fn the_get_stream_is_resumed_as_well() {
    let server = listening(&[]).await;
    let client = session(server.url(), Revision::V2025_06_18).await;
    let post = |id: i64, tool: &str| client.post(&request(id, "tools/call", call(tool, json!({}))));
    let mut stream = client.get().send().await;
    post(1, "test_trigger_tool_change")
        .send()
        .await
        .message()
        .await;
    let change = stream.event().await.unwrap();
    drop(stream);

    post(2, "test_trigger_prompt_change")
        .send()
        .await
        .message()
        .await;
    let mut stream = resume(&client, change.id.as_deref().unwrap()).await;
    let missed = stream.next_message().await.unwrap();
    assert_eq!(missed["method"], "notifications/prompts/list_changed");
    drop(stream);

    post(3, "test_trigger_tool_change")
        .send()
        .await
        .message()
        .await;
    let mut stream = client.get().send().await;
    let missed = stream.next_message().await.unwrap();
    assert_eq!(missed["method"], "notifications/tools/list_changed");
}
