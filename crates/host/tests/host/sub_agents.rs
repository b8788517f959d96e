//! Sub-agents.

use std::sync::Arc;

use plexus_mcp_host::Tool;
use plexus_mcp_host::ToolContext;
use plexus_mcp_host::agent::AgentParts;
use plexus_mcp_host::observer::{AgentId, NoObserver};
use plexus_mcp_host::sub_agent::{AGENT, AgentTool};
use plexus_mcp_wire::Raw;
use plexus_testkit::model::{Dialect, ScriptedModel, Turn};
use plexus_testkit::within;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{Events, TestTool, agent, parts, permissive, results_of, tools_of};

fn with_agents(parts: &AgentParts, max_depth: usize) {
    let choose = Arc::new(|name: &str| Err(format!("there is no model {name:?}")));
    let tool = AgentTool::new(parts, max_depth, choose).unwrap();
    parts.registry.register(Arc::new(tool));
}

/// S001-11: a sub-agent sees the tools of its parent, but not `Agent`, has a conversation of its own,
/// and its answer is the result.
#[tokio::test]
async fn a_sub_agent_uses_the_tools_of_its_parent() {
    for dialect in Dialect::ALL {
        let task = json!({"description": "Count legs", "prompt": "Count the legs of an ant."});
        let model = ScriptedModel::start([
            Turn::calls(&[(AGENT, task)]),
            Turn::calls(&[("ant", json!({}))]),
            Turn::says(&["Six."]),
            Turn::says(&["An ant has six legs."]),
        ])
        .await;
        let registry = permissive();
        registry.register(TestTool::new("ant", "six legs") as Arc<dyn Tool>);
        let events = Arc::new(Events::default());
        let parts = parts(&model, dialect, &registry, &events);
        with_agents(&parts, 1);
        let outcome = agent(parts)
            .await
            .prompt("Legs?", &CancellationToken::new())
            .await;
        assert_eq!(outcome.unwrap().text, "An ant has six legs.");
        let questions = model.questions();
        assert_eq!(tools_of(&questions[0].body), ["ant", AGENT]);
        assert_eq!(tools_of(&questions[1].body), ["ant"]);
        assert!(
            !questions[1].text.contains("Legs?"),
            "{}",
            questions[1].text
        );
        assert!(questions[1].text.contains("Count the legs of an ant."));
        assert_eq!(results_of(&questions[3].body), [("Six.".to_owned(), false)]);
        let events = events.all();
        let of_child = "the sub-agent \"Count legs\": call ant";
        assert!(events.iter().any(|event| event == of_child), "{events:?}");
    }
}

/// Sub-agents of one answer run at the same time, and are all cancelled with their parent.
#[tokio::test]
async fn sub_agents_run_at_the_same_time_and_end_with_their_parent() {
    let tasks: Vec<_> = (0..4)
        .map(|n| {
            (
                AGENT,
                json!({"description": format!("Task {n}"), "prompt": "Wait."}),
            )
        })
        .collect();
    let waits = (0..4).map(|_| Turn::calls(&[("wait", json!({}))]));
    let turns = std::iter::once(Turn::calls(&tasks)).chain(waits);
    let model = ScriptedModel::start(turns).await;
    let registry = permissive();
    let (began, mut count) = tokio::sync::mpsc::channel(8);
    let wait = TestTool::answering("wait", move |_| {
        began.try_send(()).unwrap();
        Box::pin(std::future::pending())
    });
    registry.register(wait as Arc<dyn Tool>);
    let parts = parts(&model, Dialect::OpenAi, &registry, &Arc::default());
    with_agents(&parts, 1);
    let mut agent = agent(parts).await;
    let cancel = CancellationToken::new();
    let prompt = agent.prompt("Go", &cancel);
    let all_began = async {
        for _ in 0..4 {
            count.recv().await.unwrap();
        }
        cancel.cancel();
    };
    let (outcome, ()) = within("four sub-agents", async { tokio::join!(prompt, all_began) }).await;
    assert_eq!(outcome.unwrap().calls, 4);
    // The tool's futures were dropped, and the registry has the last sender.
    drop(agent);
    drop(registry);
    assert!(within("the end of the calls", count.recv()).await.is_none());
}

/// Wrong arguments, models and kinds are error results; the depth and the turns are limited.
#[tokio::test]
async fn wrong_sub_agents_are_refused() {
    let turns = (0..3).map(|_| Turn::calls(&[("again", json!({}))]));
    let model = ScriptedModel::start(turns).await;
    let registry = permissive();
    registry.register(TestTool::new("again", "again") as Arc<dyn Tool>);
    let parts = parts(&model, Dialect::Anthropic, &registry, &Arc::default());
    with_agents(&parts, 1);
    let call = async |agent: AgentId, arguments: serde_json::Value| {
        let context = ToolContext::new(agent, "1", Arc::new(NoObserver), CancellationToken::new());
        let input = Raw::encode(&arguments).unwrap();
        registry.execute(context, AGENT, input).await
    };
    let task = json!({"description": "d", "prompt": "p"});
    for (key, value, reason) in [
        ("model", json!("nonesuch"), "there is no model \"nonesuch\""),
        (
            "subagent_type",
            json!("judge"),
            "there is no subagent_type \"judge\"",
        ),
        ("nonsense", json!(1), "arguments of Agent are wrong"),
    ] {
        let mut arguments = task.clone();
        arguments[key] = value;
        let output = call(AgentId::main(), arguments).await;
        assert!(
            output.is_error && output.text.contains(reason),
            "{output:?}"
        );
    }
    let nested = call(AgentId::main().child("outer"), task.clone()).await;
    assert!(
        nested.is_error && nested.text.contains("nested"),
        "{nested:?}"
    );
    let mut limited = task;
    limited["max_turns"] = json!(2);
    let output = call(AgentId::main(), limited).await;
    assert!(output.text.contains("max_turns"), "{output:?}");
    assert_eq!(model.questions().len(), 2);
    let report: serde_json::Value = output.raw.unwrap().decode().unwrap();
    assert_eq!(
        (&report["status"], &report["tool_calls"]),
        (&json!("max_turns"), &json!(2))
    );
}
