//! The loop: requests, calls, results, limits, interruptions and failing models.

use std::fs;
use std::sync::Arc;

use plexus_mcp_core::Boxed;
use plexus_mcp_host::agent::End;
use plexus_mcp_host::{Registry, Tool, ToolOutput};
use plexus_testkit::model::{Dialect, ScriptedCall, ScriptedModel, Turn};
use plexus_testkit::within;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{Events, TestTool, agent, parts, permissive, results_of, tools_of};

fn never() -> CancellationToken {
    CancellationToken::new()
}

fn register(registry: &Arc<Registry>, tools: &[&Arc<TestTool>]) {
    for tool in tools {
        registry.register(Arc::clone(tool) as Arc<dyn Tool>);
    }
}

/// S001-03: the loop and the registry know no servers. They do not import the hub or the client edge.
#[test]
fn the_loop_knows_no_servers() {
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    for file in [
        "agent.rs",
        "agent/calls.rs",
        "agent/compaction.rs",
        "registry.rs",
        "tool.rs",
    ] {
        let text = fs::read_to_string(format!("{sources}/{file}")).unwrap();
        for word in ["plexus_mcp_hub", "plexus_mcp_client", "crate::servers"] {
            assert!(!text.contains(word), "{file} uses {word}");
        }
    }
}

/// S001-04, S001-05, S001-07, S001-10: every request carries all tools, in registration order; their calls are
/// carried out, and the model gets the results.
#[tokio::test]
async fn calls_are_carried_out_and_answered() {
    for dialect in Dialect::ALL {
        let model = ScriptedModel::start([
            Turn::calls(&[("zebra", json!({"a": 1})), ("ant", json!({}))]),
            Turn::says(&["All ", "done."]),
        ])
        .await;
        let registry = permissive();
        let (zebra, ant) = (
            TestTool::new("zebra", "stripes"),
            TestTool::new("ant", "six legs"),
        );
        register(&registry, &[&zebra, &ant]);
        let events = Arc::new(Events::default());
        let mut agent = agent(parts(&model, dialect, &registry, &events)).await;
        let outcome = agent.prompt("Look at both", &never()).await.unwrap();
        assert_eq!(
            (outcome.end, outcome.text.as_str()),
            (End::Answered, "All done.")
        );
        assert_eq!((outcome.turns, outcome.calls), (2, 2));
        assert_eq!(outcome.usage.input_tokens, Some(14));
        assert_eq!(zebra.inputs(), [json!({"a": 1})]);
        let questions = model.questions();
        for question in &questions {
            assert_eq!(tools_of(&question.body), ["zebra", "ant"]);
        }
        let results = [
            ("stripes".to_owned(), false),
            ("six legs".to_owned(), false),
        ];
        assert_eq!(results_of(&questions[1].body), results);
        let expected = [
            "call zebra",
            "result stripes",
            "call ant",
            "result six legs",
            "text All ",
            "text done.",
        ];
        assert_eq!(events.all(), expected);
    }
}

/// A call of an unknown tool, and one whose arguments are no JSON, is an error result; the model goes
/// on (C31, S001-64).
#[tokio::test]
async fn wrong_calls_are_error_results() {
    for dialect in Dialect::ALL {
        let broken = |name: &str, input: &str| ScriptedCall {
            id: format!("of-{name}"),
            name: name.to_owned(),
            input: input.to_owned(),
        };
        let calls = vec![
            broken("gone", "{}"),
            broken("here", "{\"a\":"),
            broken("fails", "{}"),
        ];
        let turns = [
            Turn::Calls("Well.".to_owned(), calls),
            Turn::says(&["Sorry."]),
        ];
        let model = ScriptedModel::start(turns).await;
        let registry = permissive();
        let here = TestTool::new("here", "never");
        let fails = TestTool::answering("fails", |_| {
            Box::pin(std::future::ready(ToolOutput::error("No such branch: x")))
        });
        register(&registry, &[&here, &fails]);
        let mut agent = agent(parts(&model, dialect, &registry, &Arc::default())).await;
        agent.prompt("Go", &never()).await.unwrap();
        let results = results_of(&model.questions()[1].body);
        assert!(results.iter().all(|(_, is_error)| *is_error), "{results:?}");
        assert!(
            results[0].0.contains("there is no tool \"gone\""),
            "{results:?}"
        );
        assert!(results[1].0.contains("not JSON"), "{results:?}");
        assert_eq!(results[2].0, "No such branch: x");
        assert!(here.inputs().is_empty());
    }
}

/// A tool that is removed between two requests is not in the second.
#[tokio::test]
async fn tools_come_and_go_between_requests() {
    let model = ScriptedModel::start([
        Turn::calls(&[("first", json!({}))]),
        Turn::calls(&[("first", json!({}))]),
        Turn::says(&["Done."]),
    ])
    .await;
    let registry = permissive();
    let changed = Arc::clone(&registry);
    let first = TestTool::answering("first", move |_| {
        changed.unregister("first");
        changed.register(TestTool::new("second", "2") as Arc<dyn Tool>);
        Box::pin(std::future::ready(ToolOutput::text("once")))
    });
    register(&registry, &[&first]);
    let mut agent = agent(parts(
        &model,
        Dialect::Anthropic,
        &registry,
        &Arc::default(),
    ))
    .await;
    agent.prompt("Go", &never()).await.unwrap();
    let questions = model.questions();
    assert_eq!(tools_of(&questions[0].body), ["first"]);
    assert_eq!(tools_of(&questions[1].body), ["second"]);
    let (text, is_error) = &results_of(&questions[2].body)[0];
    assert!(*is_error && text.contains("no longer"), "{text}");
}

#[tokio::test]
async fn turns_are_limited() {
    let turns = (0..5).map(|_| Turn::calls(&[("again", json!({}))]));
    let model = ScriptedModel::start(turns).await;
    let registry = permissive();
    register(&registry, &[&TestTool::new("again", "and again")]);
    let mut parts = parts(&model, Dialect::OpenAi, &registry, &Arc::default());
    parts.max_turns = Some(2);
    let outcome = agent(parts).await.prompt("Go", &never()).await.unwrap();
    assert_eq!((outcome.end, outcome.turns), (End::MaxTurns, 2));
    assert_eq!(model.questions().len(), 2);
}

/// An interruption drops the running call, and answers it and those that were not begun, so that the
/// conversation can go on.
#[tokio::test]
async fn an_interruption_ends_running_calls() {
    let model = ScriptedModel::start([
        Turn::calls(&[("slow", json!({})), ("never", json!({}))]),
        Turn::says(&["On we go."]),
    ])
    .await;
    let registry = permissive();
    let cancel = CancellationToken::new();
    let running = cancel.clone();
    let slow = TestTool::answering("slow", move |_| -> Boxed<ToolOutput> {
        running.cancel();
        Box::pin(std::future::pending())
    });
    let never_called = TestTool::new("never", "");
    register(&registry, &[&slow, &never_called]);
    let mut agent = agent(parts(
        &model,
        Dialect::Anthropic,
        &registry,
        &Arc::default(),
    ))
    .await;
    let outcome = within("the interruption", agent.prompt("Go", &cancel))
        .await
        .unwrap();
    assert_eq!(outcome.end, End::Interrupted);
    assert!(never_called.inputs().is_empty());
    agent.prompt("Go on", &never()).await.unwrap();
    let last = &model.questions()[1].body;
    let results = results_of(last);
    assert_eq!(results[0], ("interrupted by the user".to_owned(), true));
    assert!(results[1].0.starts_with("not called"), "{results:?}");
    // The results and the new prompt are one message.
    let content = last["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    assert_eq!(content[2]["text"], "Go on");
}

/// A model that is busy is asked again; a request that is wrong is not.
#[tokio::test(start_paused = true)]
async fn a_busy_model_is_asked_again() {
    for dialect in Dialect::ALL {
        let model = ScriptedModel::start([
            Turn::Refuses(529, "overloaded".to_owned()),
            Turn::StopsAfter(vec!["Half an".to_owned()]),
            Turn::says(&["Here I am."]),
        ])
        .await;
        let events = Arc::new(Events::default());
        let mut agent = agent(parts(&model, dialect, &permissive(), &events)).await;
        let outcome = agent.prompt("Hello?", &never()).await.unwrap();
        assert_eq!(outcome.text, "Here I am.");
        let retries = events.all();
        let retries = retries.iter().filter(|event| event.starts_with("retrying"));
        assert_eq!(retries.count(), 2);
    }
    let model = ScriptedModel::start([Turn::Refuses(404, "no such model".to_owned())]).await;
    let events = Arc::new(Events::default());
    let mut agent = agent(parts(&model, Dialect::Anthropic, &permissive(), &events)).await;
    let error = agent
        .prompt("Hello?", &never())
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("no such model"), "{error}");
    assert_eq!(model.questions().len(), 1);
}

/// A conversation that the model refuses as too long, or that fills most of its window, is replaced by
/// a summary; the user's last message is kept.
#[tokio::test]
async fn a_long_conversation_is_summarised() {
    let too_long = Turn::Refuses(400, "prompt is too long: 210000 tokens".to_owned());
    let model = ScriptedModel::start([
        Turn::says(&["First answer."]),
        too_long,
        Turn::says(&["They talked about bees."]),
        Turn::says(&["Second answer."]),
        Turn::says(&["Third answer."]),
        Turn::says(&["Still about bees."]),
        Turn::says(&["Fourth answer."]),
    ])
    .await;
    let events = Arc::new(Events::default());
    let parts = parts(&model, Dialect::Anthropic, &permissive(), &events);
    let mut agent = agent(parts).await;
    agent.prompt("Tell me about bees", &never()).await.unwrap();
    let outcome = agent.prompt("And wasps?", &never()).await.unwrap();
    assert_eq!(outcome.text, "Second answer.");
    let questions = model.questions();
    let summarised = questions[2].text.clone();
    assert!(summarised.contains("Tell me about bees"), "{summarised}");
    let messages = questions[3].body["messages"].as_array().unwrap().clone();
    assert_eq!(messages.len(), 1, "{messages:?}");
    let text = messages[0]["content"].as_str().unwrap();
    assert!(text.contains("They talked about bees."), "{text}");
    assert!(text.contains("And wasps?"), "{text}");

    // The scripted model reports ten tokens for each answer.
    let mut small = agent.model().clone();
    small.context_window_tokens = 12;
    agent.set_model(small);
    agent.prompt("And hornets?", &never()).await.unwrap();
    assert_eq!(
        events
            .all()
            .iter()
            .filter(|event| *event == "compacted")
            .count(),
        2
    );
}

/// Notices are put before the next request.
#[tokio::test]
async fn notices_are_told_before_the_next_request() {
    let model = ScriptedModel::start([Turn::says(&["Noted."])]).await;
    let mut parts = parts(&model, Dialect::OpenAi, &permissive(), &Arc::default());
    parts.notices = Arc::new(|| vec!["file:///a changed".to_owned()]);
    agent(parts).await.prompt("Hello", &never()).await.unwrap();
    let messages = model.questions()[0].body["messages"].clone();
    assert_eq!(messages[1]["content"], "Hello\nfile:///a changed");
}
