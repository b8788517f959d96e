//! The life of a state: used once, put back after a malformed answer, and expired.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::*;

const ANSWER_TIME: Duration = Duration::from_mins(5);
const ALMOST_ANSWER_TIME: Duration = Duration::from_secs(290);

/// Counts the calls that have ended, in whatever way.
struct Ended(Arc<AtomicUsize>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// An edge whose tool `greet` asks two questions, and the number of its calls that have ended.
fn asking_twice() -> (Arc<Edge>, Arc<AtomicUsize>) {
    let ended = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&ended);
    let service = LocalService::builder("greeter", "1.0.0").tool(
        Tool::new("greet"),
        move |_: NoArguments, ctx: Context| {
            let guard = Ended(Arc::clone(&counter));
            async move {
                let _guard = guard;
                for key in ["first", "second"] {
                    let schema = raw(r#"{"type":"object","properties":{}}"#);
                    let form = ElicitParams::form("Your name?", schema);
                    ctx.elicit_as(Some(key), form).await?;
                }
                Ok::<_, ToolError>("done".to_owned())
            }
        },
    );
    let options = Options {
        answer_time: ANSWER_TIME,
        ..Options::default()
    };
    let edge = Edge::new(Arc::new(service.build().unwrap()), options).unwrap();
    (edge, ended)
}

/// The retry of a call whose state is in `asked`, with an answer to `key`.
fn retry(asked: &Value, key: &str) -> Value {
    let state = &asked["result"]["requestState"];
    assert!(state.is_string(), "{asked}");
    json!({"requestState": state, "inputResponses": {key: {"action": "decline"}}})
}

fn is_refused(answer: &Value) -> bool {
    answer["error"]["message"] == "requestState is invalid or expired"
}

/// MRTR26-08: a call that asks again has a new state, and its old one is worth nothing.
#[tokio::test]
async fn the_state_before_the_last_one_is_refused() {
    let (edge, _) = asking_twice();
    let first = retry(&call(&edge, "kim", &json!({})).await, "first");
    let second = retry(&call(&edge, "kim", &first).await, "second");
    assert_ne!(first["requestState"], second["requestState"]);
    assert!(is_refused(&call(&edge, "kim", &first).await));
    let done = call(&edge, "kim", &second).await;
    assert_eq!(done["result"]["content"][0]["text"], "done", "{done}");
    assert!(is_refused(&call(&edge, "kim", &second).await));
}

/// MRTR26-10: a malformed answer changes nothing, so the same state is still good.
#[tokio::test]
async fn a_malformed_answer_leaves_the_call_parked() {
    let (edge, ended) = asking_twice();
    let asked = call(&edge, "kim", &json!({})).await;
    let mut malformed = retry(&asked, "first");
    malformed["inputResponses"]["first"] = json!({"action": 7});
    let refused = call(&edge, "kim", &malformed).await;
    let text = refused["error"]["message"].as_str().unwrap();
    assert!(text.starts_with("inputResponses.first"), "{refused}");
    assert_eq!(ended.load(Ordering::SeqCst), 0, "the call waits");
    let second = call(&edge, "kim", &retry(&asked, "first")).await;
    let done = call(&edge, "kim", &retry(&second, "second")).await;
    assert_eq!(done["result"]["content"][0]["text"], "done", "{done}");
}

/// TRANSLATION §5.4.14: a call whose client never comes back is cancelled, and its state refused.
#[tokio::test(start_paused = true)]
async fn a_parked_call_expires() {
    let (edge, ended) = asking_twice();
    let asked = call(&edge, "kim", &json!({})).await;
    tokio::time::sleep(ALMOST_ANSWER_TIME).await;
    assert_eq!(ended.load(Ordering::SeqCst), 0, "it is not over yet");
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(ended.load(Ordering::SeqCst), 1, "it is cancelled");
    assert!(is_refused(
        &call(&edge, "kim", &retry(&asked, "first")).await
    ));
}

/// Each question has the whole time of its own.
#[tokio::test(start_paused = true)]
async fn the_time_begins_again_with_each_question() {
    let (edge, ended) = asking_twice();
    let asked = call(&edge, "kim", &json!({})).await;
    tokio::time::sleep(ALMOST_ANSWER_TIME).await;
    let second = call(&edge, "kim", &retry(&asked, "first")).await;
    tokio::time::sleep(ALMOST_ANSWER_TIME).await;
    assert_eq!(ended.load(Ordering::SeqCst), 0, "it is not over yet");
    let done = call(&edge, "kim", &retry(&second, "second")).await;
    assert_eq!(done["result"]["content"][0]["text"], "done", "{done}");
}
