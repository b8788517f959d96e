//! Failing models: the error is clear, and the conversation is unchanged.

use std::time::Duration;

use plexus_mcp_agents::model::Models;
use plexus_mcp_store::StoreError;
use plexus_testkit::model::{Dialect, ScriptedModel, Turn};
use plexus_testkit::server::Reply;
use plexus_testkit::within;
use serde_json::{Value, json};

use crate::support::{Client, KEY, model_id, models, said};

/// Each of these turns fails with a text that has these parts, and changes nothing (C17).
async fn assert_fails(turn: impl Fn(Dialect) -> Turn, expected: &[&str]) {
    for dialect in Dialect::ALL {
        let turns = [Turn::says(&["One."]), turn(dialect), Turn::says(&["Two."])];
        let model = ScriptedModel::start(turns).await;
        let client = Client::of(&model);
        client.create("helper", model_id(dialect)).await;
        client.chat("helper", "First?").await;
        let before = client.tree("helper").await;
        let text = client.chat_failed("helper", "Second?").await;
        for part in expected {
            assert!(text.contains(part), "{dialect:?}: {text}");
        }
        assert_eq!(client.tree("helper").await, before);
        // The question was asked once, and the conversation can go on.
        assert_eq!(model.questions().len(), 2);
        client.chat("helper", "Second?").await;
        assert_eq!(client.memory("helper").await.len(), 4);
    }
}

#[tokio::test]
async fn refusals_are_errors() {
    let repeats_key = format!("invalid x-api-key {KEY}");
    assert_fails(
        |_| Turn::Refuses(401, repeats_key.clone()),
        &[
            "refused the key in",
            "_API_KEY (401): invalid x-api-key [key]",
        ],
    )
    .await;
    assert_fails(
        |dialect| {
            let refusal = dialect.refusal(429, "slow down");
            Turn::Answers(refusal.with_header("retry-after", "30"))
        },
        &["refused (429); try again after 30 seconds: slow down"],
    )
    .await;
    let answers = |status| move |_| Turn::Answers(Reply::status(status));
    assert_fails(answers(529), &["refused (529)"]).await;
    assert_fails(answers(307), &["refused (307): Temporary Redirect"]).await;
    assert_fails(
        |_| Turn::Answers(Reply::status(502).with_body("text/html", "<html>Bad\nGateway</html>")),
        &["refused (502): <html>Bad Gateway</html>"],
    )
    .await;
    assert_fails(
        |_| Turn::Refuses(400, "ä".repeat(100_000)),
        &["refused (400): äää", "ä..."],
    )
    .await;
}

/// A stream that ends early is an error. The result still contains the received part.
#[tokio::test]
async fn an_incomplete_answer_is_an_error() {
    assert_fails(
        |_| Turn::stops_after(&["Half"]),
        &["broke off before its end"],
    )
    .await;
    assert_fails(|_| Turn::stops_after(&[]), &["broke off before its end"]).await;
    assert_fails(
        |_| Turn::FailsAfter(vec!["Half".to_owned()], format!("overloaded {KEY}")),
        &["failed: overloaded [key]"],
    )
    .await;

    let (turn, stream) = Turn::held();
    let model = ScriptedModel::start([turn]).await;
    let client = Client::of(&model);
    client.create("helper", "anthropic/x").await;
    let (call, mut events) = client.begin_chat("helper", "Hello?");
    let break_off = async {
        stream.write(&Dialect::Anthropic.opening()).await;
        stream.write(&Dialect::Anthropic.piece("Half of")).await;
        within("the first piece", events.recv()).await.unwrap();
        stream.break_off().await;
    };
    let (result, ()) = tokio::join!(call, break_off);
    let result: Value = result.unwrap().decode().unwrap();
    assert_eq!(result["isError"], true);
    assert_eq!(result["content"][0]["text"], "Half of");
    let text = result["content"][1]["text"].as_str().unwrap();
    assert!(text.contains("broke off"), "{text}");
    assert!(client.memory("helper").await.is_empty());
}

#[tokio::test]
async fn an_invalid_answer_is_an_error() {
    let streams = |body: &'static str| {
        move |_| Turn::Answers(Reply::status(200).with_body("text/event-stream", body))
    };
    assert_fails(streams("data: nonsense\n\n"), &["cannot decode the answer"]).await;
    assert_fails(streams("data: [1,2]\n\n"), &["cannot decode the answer"]).await;
    assert_fails(streams("nonsense"), &["broke off"]).await;
    assert_fails(streams(""), &["broke off"]).await;
    assert_fails(
        |_| Turn::Answers(Reply::json(&json!({ "content": "not streamed" }))),
        &["answered with application/json", "is its base url right?"],
    )
    .await;
    assert_fails(|_| Turn::Answers(Reply::hang_up()), &["did not answer"]).await;
    assert_fails(|_| Turn::says(&[" ", "\n"]), &["empty answer"]).await;
}

/// Events and answers that exceed their size limits are errors.
#[tokio::test]
async fn endless_answers_end() {
    let megabytes = "x".repeat(2 * 1024 * 1024);
    assert_fails(
        |_| Turn::says(&[megabytes.as_str()]),
        &["longer than the 1048576 bytes"],
    )
    .await;

    let model = ScriptedModel::start([Turn::says(&["x".repeat(900_000).as_str(); 13])]).await;
    let client = Client::of(&model);
    client.create("helper", "anthropic/x").await;
    let text = client.chat_failed("helper", "Hello?").await;
    assert!(text.contains("longer than the 10485760 bytes"), "{text}");
    assert!(client.memory("helper").await.is_empty());
}

/// A model that sends nothing for too long, at first or later, is an error, and its connection is
/// closed.
#[tokio::test]
async fn a_silent_model_is_an_error() {
    let (held, stream) = Turn::held();
    stream.write(&Dialect::Anthropic.opening()).await;
    for turn in [Turn::Answers(Reply::never()), held] {
        let model = ScriptedModel::start([turn]).await;
        let impatient = models(&model).with_response_timeout(Duration::from_secs(1));
        let client = Client::with(impatient, &json!({}));
        client.create("helper", "anthropic/x").await;
        let text = client.chat_failed("helper", "Hello?").await;
        assert_eq!(text, "anthropic sent no data for 1s");
        assert!(client.memory("helper").await.is_empty());
        model.asked().await;
    }
    stream.closed().await;
}

#[tokio::test]
async fn an_unreachable_server_is_an_error() {
    // A port that was free a moment ago.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let models = Models::from_environment(|name| match name {
        "OPENAI_BASE_URL" => Some(format!("http://{address}/v1").into()),
        "ANTHROPIC_BASE_URL" => Some("nonsense".into()),
        _ => None,
    });
    let client = Client::with(models, &json!({}));
    client.create("local", "openai/x").await;
    let text = client.chat_failed("local", "Hello?").await;
    assert!(
        text.contains("openai did not answer: cannot connect to"),
        "{text}"
    );
    client.create("wrong", "anthropic/x").await;
    let text = client.chat_failed("wrong", "Hello?").await;
    assert!(
        text.starts_with("ANTHROPIC_BASE_URL is not a valid base url"),
        "{text}"
    );
}

/// Cancelling a chat closes the connection to the model, and stores nothing.
#[tokio::test]
async fn a_chat_can_be_cancelled() {
    let (turn, stream) = Turn::held();
    let model = ScriptedModel::start([turn, Turn::says(&["Two."])]).await;
    let client = Client::of(&model);
    client.create("helper", "anthropic/x").await;
    let before = client.tree("helper").await;
    let (call, mut events) = client.begin_chat("helper", "Hello?");
    let first_piece = async {
        stream.write(&Dialect::Anthropic.opening()).await;
        stream.write(&Dialect::Anthropic.piece("Half")).await;
        within("the first piece", events.recv()).await.unwrap();
    };
    tokio::select! {
        _ended = call => panic!("the answer has no end"),
        () = first_piece => {}
    }
    stream.closed().await;
    assert_eq!(client.tree("helper").await, before);
    // Its turn is over, too.
    client.chat("helper", "Hello?").await;
    assert_eq!(client.memory("helper").await.len(), 2);
}

/// If the answer cannot be stored, the error result still contains it.
#[tokio::test]
async fn an_answer_that_cannot_be_stored_is_returned() {
    let large = "x".repeat(900_000);
    let model = ScriptedModel::start([Turn::says(&[large.as_str()])]).await;
    let client = Client::of(&model);
    client.create("helper", "anthropic/x").await;
    let before = client.tree("helper").await;
    client
        .store
        .write(|db| {
            db.pragma_update(None, "max_page_count", 1)?;
            Ok::<_, StoreError>(())
        })
        .await
        .unwrap();
    let result = client.chat("helper", "Hello?").await;
    assert_eq!(result["isError"], true);
    assert!(result["content"][0]["text"] == large);
    let text = result["content"][1]["text"].as_str().unwrap();
    assert!(
        text.contains("could not be stored") && text.contains("the disk is full"),
        "{text}"
    );
    assert_eq!(client.tree("helper").await, before);
}

/// If a cone is deleted while its model answers, nothing is stored; the caller gets the answer.
#[tokio::test]
async fn a_cone_may_be_deleted_while_it_answers() {
    let (turn, stream) = Turn::held();
    let model = ScriptedModel::start([turn]).await;
    let client = Client::of(&model);
    client.create("helper", "openai/x").await;
    let meanwhile = async {
        model.asked().await;
        client
            .done("cone.delete", json!({ "identifier": "helper" }))
            .await;
        let dialect = Dialect::OpenAi;
        let whole = [dialect.opening(), dialect.piece("Late."), dialect.closing()];
        stream.write(&whole.concat()).await;
        drop(stream);
    };
    let (result, ()) = tokio::join!(client.chat("helper", "Hello?"), meanwhile);
    assert_eq!(result["isError"], true);
    assert_eq!(result["content"][0]["text"], "Late.");
    assert!(result.to_string().contains("cone not found"), "{result}");
}

/// Invalid prompts are refused before the model is asked.
#[tokio::test]
async fn bad_questions_are_not_asked() {
    let model = ScriptedModel::start([Turn::says(&["Aside."])]).await;
    let client = Client::of(&model);
    let created = client.create("helper", "anthropic/x").await;
    assert_eq!(
        client.chat_failed("helper", " \n").await,
        "the prompt is empty"
    );
    assert_eq!(
        client.chat_failed("none", "Hello?").await,
        "cone not found: none"
    );
    let tree = created["tree_id"].clone();
    let release = json!({ "tree_id": tree, "owner_id": created["cone_id"] });
    client.done("arbor.tree_release", release).await;
    let text = client.chat_failed("helper", "Hello?").await;
    assert!(text.contains("claim it first"), "{text}");
    assert!(model.questions().is_empty());
    // An ephemeral chat stores nothing, so it needs no writable tree.
    let aside = json!({ "identifier": "helper", "prompt": "Psst?", "ephemeral": true });
    let result: Value = client.call("cone.chat", aside).await;
    assert_eq!(result["content"][0]["text"], "Aside.");
    assert_eq!(client.memory("helper").await, said(&[]));
}
