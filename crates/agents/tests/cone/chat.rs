//! Successful chats.

use plexus_mcp_core::Event;
use plexus_testkit::model::{Dialect, ScriptedModel, Turn};
use plexus_testkit::within;
use serde_json::{Value, json};

use crate::support::{Client, KEY, has_news, model_id, models, said, string};

/// S003-22, S003-42, S003-46, C16: chunks are streamed as they arrive, and together they are the
/// one block of the result.
#[tokio::test]
async fn an_answer_is_streamed_as_it_comes() {
    for dialect in Dialect::ALL {
        let (turn, stream) = Turn::held();
        let model = ScriptedModel::start([turn]).await;
        let client = Client::of(&model);
        client.create("helper", model_id(dialect)).await;
        let (mut call, mut events) = client.begin_chat("helper", "Hello?");
        let script = async {
            stream.write(&dialect.opening()).await;
            stream.write(&dialect.piece("Hello, ")).await;
            // It is there before the rest has been written.
            match within("the first piece", events.recv()).await {
                Some(Event::Content(piece)) => assert_eq!(piece, "Hello, "),
                other => panic!("no piece: {other:?}"),
            }
            stream.write(&dialect.piece("Grüße")).await;
            stream.write(&dialect.closing()).await;
            drop(stream);
        };
        let (result, ()) = tokio::join!(&mut call, script);
        let result: Value = result.unwrap().decode().unwrap();
        let content = result["content"].as_array().unwrap();
        assert_eq!(content.len(), 1, "nothing is added: {result}");
        assert_eq!(content[0]["text"], "Hello, Grüße");
        let end = &result["structuredContent"];
        assert_eq!(
            (&end["outcome"], &end["model"]),
            (&json!("head"), &json!("scripted-large"))
        );
        assert_eq!(
            end["usage"],
            json!({ "input_tokens": 7, "output_tokens": 3 })
        );
        let cone = client.cone("helper").await;
        assert_eq!(end["new_head"], cone["head"]);
        assert_eq!(
            client.memory("helper").await,
            said(&[("user", "Hello?"), ("assistant", "Hello, Grüße")])
        );
    }
}

/// The request to the model has the path, the system prompt and the key, and nothing else.
#[tokio::test]
async fn model_requests_contain_the_earlier_conversation() {
    for dialect in Dialect::ALL {
        let turns = [Turn::says(&["One."]), Turn::says(&["Two."])];
        let model = ScriptedModel::start(turns).await;
        let client = Client::of(&model);
        let new = json!({
            "name": "helper",
            "model_id": model_id(dialect),
            "system_prompt": "Be brief.",
            "max_tokens": 99,
        });
        client.done("cone.create", new).await;
        client.chat("helper", "First?").await;
        client.chat("helper", "Second?").await;
        let questions = model.questions();
        let conversation = [
            json!({ "role": "user", "content": "First?" }),
            json!({ "role": "assistant", "content": "One." }),
            json!({ "role": "user", "content": "Second?" }),
        ];
        let body = &questions[1].body;
        assert_eq!(body["model"], "scripted-large");
        assert_eq!(
            (&body["stream"], &body["max_tokens"]),
            (&json!(true), &json!(99))
        );
        match dialect {
            Dialect::Anthropic => {
                assert_eq!(body["system"], "Be brief.");
                assert_eq!(body["messages"], json!(conversation));
                assert_eq!(questions[1].header("x-api-key"), Some(KEY));
                assert!(questions[1].header("anthropic-version").is_some());
                assert_eq!(questions[1].header("authorization"), None);
            }
            Dialect::OpenAi => {
                let system = json!({ "role": "system", "content": "Be brief." });
                let [a, b, c] = conversation;
                assert_eq!(body["messages"], json!([system, a, b, c]));
                let bearer = format!("Bearer {KEY}");
                assert_eq!(questions[1].header("authorization"), Some(bearer.as_str()));
                assert_eq!(questions[1].header("x-api-key"), None);
            }
        }
    }
}

/// An ephemeral chat includes the conversation so far, and stores nothing.
#[tokio::test]
async fn ephemeral_chats_are_forgotten() {
    let turns = [Turn::says(&["One."]), Turn::says(&["Aside."])];
    let model = ScriptedModel::start(turns).await;
    let client = Client::of(&model);
    client.create("helper", "anthropic/x").await;
    client.chat("helper", "First?").await;
    let before = client.tree("helper").await;
    let aside = json!({ "identifier": "helper", "prompt": "Psst?", "ephemeral": true });
    let result = client.call("cone.chat", aside).await;
    assert_eq!(result["content"][0]["text"], "Aside.");
    let end = &result["structuredContent"];
    assert_eq!(end["outcome"], "ephemeral");
    assert_eq!(end["new_head"], before["tree"]["head"]);
    assert_eq!(client.tree("helper").await, before);
    let asked = &model.questions()[1].body["messages"];
    assert_eq!(asked.as_array().unwrap().len(), 3);
}

/// The head can be set to an earlier node: the conversation is rewound, and then branches.
#[tokio::test]
async fn a_conversation_can_be_rewound() {
    let answers = ["One.", "Two.", "Other."];
    let model = ScriptedModel::start(answers.map(|answer| Turn::says(&[answer]))).await;
    let client = Client::of(&model);
    let created = client.create("helper", "openai/x").await;
    client.chat("helper", "First?").await;
    let first = client.cone("helper").await["head"].clone();
    client.chat("helper", "Second?").await;
    let second = client.cone("helper").await["head"].clone();

    let back = json!({ "identifier": "helper", "node_id": first });
    let moved = client.done("cone.set_head", back).await;
    assert_eq!(
        moved,
        json!({ "cone_id": created["cone_id"], "old_head": second, "new_head": first })
    );
    client.chat("helper", "Another?").await;
    let expected = said(&[
        ("user", "First?"),
        ("assistant", "One."),
        ("user", "Another?"),
        ("assistant", "Other."),
    ]);
    assert_eq!(client.memory("helper").await, expected);
    // The earlier conversation is a branch of its own.
    let tree = json!({ "tree_id": created["tree_id"] });
    let leaves = client.done("arbor.context_list_leaves", tree).await;
    assert_eq!(leaves["leaves"].as_array().unwrap().len(), 2);
    assert_eq!(leaves["leaves"][0], second);

    // The root is a fresh start; a node of another tree is none at all.
    let fresh = json!({ "identifier": "helper", "node_id": created["head"] });
    client.done("cone.set_head", fresh).await;
    assert_eq!(client.memory("helper").await, said(&[]));
    let other = client.create("other", "openai/x").await;
    let foreign = json!({ "identifier": "helper", "node_id": other["head"] });
    let text = client.failed("cone.set_head", foreign).await;
    assert!(text.contains("not found in tree"), "{text}");
}

/// Nodes that other callers add to the path are part of the conversation, whatever their role.
#[tokio::test]
async fn nodes_of_others_are_part_of_the_conversation() {
    let model = ScriptedModel::start([Turn::says(&["I see."])]).await;
    let client = Client::of(&model);
    let created = client.create("helper", "anthropic/x").await;
    let tree = created["tree_id"].clone();
    let text = json!({ "tree_id": tree, "content": "A note." });
    let note = client.done("arbor.node_create_text", text).await["node_id"].clone();
    let handle = json!({ "tree_id": tree, "parent": note, "handle": "other@1::thing:7" });
    let external = client.done("arbor.node_create_external", handle).await;
    // Adding to a cone's tree does not move its head.
    assert_eq!(client.cone("helper").await["head"], created["head"]);
    let there = json!({ "identifier": "helper", "node_id": external["node_id"] });
    client.done("cone.set_head", there).await;
    client.chat("helper", "Well?").await;
    let asked = &model.questions()[0].body["messages"];
    let expected = json!([{
        "role": "user",
        "content": "A note.\n\n[other@1::thing:7]\n\nWell?",
    }]);
    assert_eq!(*asked, expected, "two messages of one side are one");
}

/// S003-54: subscribers of the head of a cone's tree are notified when it moves.
#[tokio::test]
async fn subscribers_of_the_head_are_notified_when_it_moves() {
    let turns = [Turn::says(&["One."]), Turn::Refuses(500, "no".to_owned())];
    let model = ScriptedModel::start(turns).await;
    let client = Client::of(&model);
    let created = client.create("helper", "anthropic/x").await;
    let tree = string(&created["tree_id"]);
    let mut head = client.watch(&format!("arbor://tree/{tree}/head")).await;
    client.chat("helper", "First?").await;
    assert!(has_news(&mut head));
    let back = json!({ "identifier": "helper", "node_id": created["head"] });
    client.done("cone.set_head", back).await;
    assert!(has_news(&mut head));
    client.chat_failed("helper", "Second?").await;
    assert!(!has_news(&mut head));
}

/// Concurrent chats with one cone run one after the other, so each includes the previous one.
#[tokio::test]
async fn chats_at_once_take_turns() {
    let turns = [Turn::says(&["One."]), Turn::says(&["Two."])];
    let model = ScriptedModel::start(turns).await;
    let client = Client::of(&model);
    client.create("helper", "anthropic/x").await;
    tokio::join!(client.chat("helper", "a"), client.chat("helper", "b"));
    let memory = client.memory("helper").await;
    assert_eq!(memory.len(), 4);
    let lengths: Vec<_> = model
        .questions()
        .iter()
        .map(|question| question.body["messages"].as_array().unwrap().len())
        .collect();
    assert_eq!(lengths, [1, 3]);
}

/// If another process moves the head meanwhile, the answer is stored as a branch.
#[tokio::test]
async fn a_head_that_was_moved_stays_there() {
    let (turn, stream) = Turn::held();
    let model = ScriptedModel::start([turn, Turn::says(&["Quick."])]).await;
    let client = Client::of(&model);
    let other = client.another(models(&model));
    let created = client.create("helper", "anthropic/x").await;
    let (slow, _events) = client.begin_chat("helper", "Slow?");
    let meanwhile = async {
        model.asked().await;
        other.chat("helper", "Quick?").await;
        let whole = [
            Dialect::Anthropic.opening(),
            Dialect::Anthropic.piece("Slow."),
            Dialect::Anthropic.closing(),
        ];
        stream.write(&whole.concat()).await;
        drop(stream);
    };
    let (result, ()) = tokio::join!(slow, meanwhile);
    let result: Value = result.unwrap().decode().unwrap();
    let end = &result["structuredContent"];
    assert_eq!(end["outcome"], "branch", "{result}");
    assert_eq!(
        client.memory("helper").await,
        said(&[("user", "Quick?"), ("assistant", "Quick.")])
    );
    let branch = json!({ "tree_id": created["tree_id"], "node_id": end["new_head"] });
    let branch = client.done("arbor.context_get_path", branch).await;
    assert_eq!(branch["nodes"][1]["content"], "Slow?");
    assert_eq!(branch["nodes"][2]["content"], "Slow.");
}

/// Variants of OpenAI's stream are accepted: no `[DONE]`, no usage, CRLF, comments.
#[tokio::test]
async fn other_dialects_are_understood() {
    let chunk = r#"{"choices":[{"delta":{"content":"Hi"}}]}"#;
    let end = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
    for body in [
        format!("data: {chunk}\n\ndata: {end}\n\n"),
        format!(": hello\r\n\r\ndata: {chunk}\r\n\r\ndata:{end}\r\n\r\ndata: [DONE]\r\n\r\n"),
        format!("data: {chunk}\n\ndata: [DONE]\n\n"),
    ] {
        let reply = plexus_testkit::server::Reply::status(200);
        let reply = reply.with_body("text/event-stream", &body);
        let model = ScriptedModel::start([Turn::Answers(reply)]).await;
        let client = Client::of(&model);
        client.create("helper", "openai/x").await;
        let result = client.chat("helper", "Hello?").await;
        assert_eq!(result["content"][0]["text"], "Hi", "{body:?}: {result}");
    }
}
