//! Transcripts: conversations go on after a crash, and can be rewound.

use std::sync::Arc;

use plexus_mcp_agents::model::ChatMessage;
use plexus_mcp_host::Tool;
use plexus_mcp_host::agent::Agent;
use plexus_mcp_host::transcript::{MIGRATIONS, TranscriptError, Transcripts};
use plexus_mcp_store::Store;
use plexus_testkit::model::{Dialect, ScriptedModel, Turn};
use serde_json::json;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::support::{TestTool, parts, permissive};

fn store(folder: &TempDir) -> Transcripts {
    let path = folder.path().join("plexus.db");
    Transcripts::new(Store::open(&path, &[MIGRATIONS]).unwrap())
}

fn beginning(id: &str, length: usize) -> &str {
    id.split_at(length).0
}

/// Everything up to the crash is there, and the conversation goes on with it.
#[tokio::test]
async fn a_conversation_goes_on_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let never = CancellationToken::new();
    let registry = permissive();
    registry.register(TestTool::new("look", "a bee") as Arc<dyn Tool>);
    let hang = TestTool::answering("hang", |_| Box::pin(std::future::pending()));
    registry.register(Arc::clone(&hang) as Arc<dyn Tool>);
    let model = ScriptedModel::start([
        Turn::calls(&[("look", json!({})), ("hang", json!({}))]),
        Turn::says(&["It was a bee."]),
    ])
    .await;
    let id = {
        let transcript = store(&folder).begin("/project").await.unwrap();
        let id = transcript.id().to_owned();
        let parts = parts(&model, Dialect::Anthropic, &registry, &Arc::default());
        let mut agent = Agent::new(parts, transcript).await.unwrap();
        let hanging = async {
            while hang.inputs().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        // Dropped in the middle of the second call, as if the program were killed.
        tokio::select! {
            _ = agent.prompt("What is there?", &never) => unreachable!(),
            () = hanging => {}
        }
        id
    };
    let transcripts = store(&folder);
    let listed = transcripts.list(Some("/project")).await.unwrap();
    assert_eq!(
        (listed.len(), listed[0].title.as_str()),
        (1, "What is there?")
    );
    let transcript = transcripts.find(beginning(&id, 30)).await.unwrap();
    let parts = parts(&model, Dialect::Anthropic, &registry, &Arc::default());
    let mut agent = Agent::new(parts, transcript).await.unwrap();
    agent.prompt("Go on", &never).await.unwrap();
    let body = &model.questions()[1].body;
    let last = body["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["content"][0]["content"][0]["text"], "a bee");
    let unknown = last["content"][1]["content"][0]["text"].as_str().unwrap();
    assert!(unknown.contains("may have been carried out"), "{last}");
    assert_eq!(last["content"][2]["text"], "Go on");
}

/// Going back leaves the old branch in the tree, and the conversation goes on before it.
#[tokio::test]
async fn a_conversation_can_be_rewound() {
    let folder = tempfile::tempdir().unwrap();
    let transcripts = store(&folder);
    let never = CancellationToken::new();
    let model =
        ScriptedModel::start(["One.", "Two.", "Three."].map(|text| Turn::says(&[text]))).await;
    let transcript = transcripts.begin("/project").await.unwrap();
    let parts = parts(&model, Dialect::OpenAi, &permissive(), &Arc::default());
    let mut agent = Agent::new(parts.clone(), transcript.clone()).await.unwrap();
    agent.prompt("First", &never).await.unwrap();
    agent.prompt("Second", &never).await.unwrap();
    transcript.rewind(1).await.unwrap();
    let mut agent = Agent::new(parts, transcript.clone()).await.unwrap();
    let texts: Vec<_> = agent
        .messages()
        .iter()
        .map(ChatMessage::joined_text)
        .collect();
    assert_eq!(texts, ["First", "One."]);
    agent.prompt("Other", &never).await.unwrap();
    assert!(!model.questions()[2].text.contains("Second"));
    transcript.rewind(2).await.unwrap();
    assert!(transcript.messages().await.unwrap().is_empty());
}

#[tokio::test]
async fn transcripts_are_found_by_the_beginning_of_their_id() {
    let folder = tempfile::tempdir().unwrap();
    let transcripts = store(&folder);
    let one = transcripts.begin("/a").await.unwrap();
    transcripts.begin("/b").await.unwrap();
    assert_eq!(transcripts.find(one.id()).await.unwrap().id(), one.id());
    // Ids begin with the time.
    let several = transcripts.find(beginning(one.id(), 2)).await.unwrap_err();
    assert!(
        matches!(several, TranscriptError::Ambiguous(_)),
        "{several}"
    );
    let none = transcripts.find("nonesuch").await.unwrap_err();
    assert!(matches!(none, TranscriptError::NotFound(_)), "{none}");
    assert!(
        transcripts.list(None).await.unwrap().is_empty(),
        "nothing was said yet"
    );
}
