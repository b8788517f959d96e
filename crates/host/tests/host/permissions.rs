//! Permissions: rules, modes, answers and refusals.

use std::sync::Arc;

use plexus_mcp_config::{self as config, Action, Rule};
use plexus_mcp_host::observer::{AgentId, NoObserver};
use plexus_mcp_host::permission::{Mode, PermissionAnswer, Prompter};
use plexus_mcp_host::{Registry, Tool, ToolContext, ToolOutput};
use plexus_mcp_wire::Raw;
use tokio_util::sync::CancellationToken;

use crate::support::{Answers, TestTool, registry};

/// A policy with these rules.
fn rules(rules: &[(&str, Action)]) -> config::Policy {
    let mut policy = config::Policy::default();
    let rules = rules.iter();
    policy.rules = rules
        .map(|(tool, action)| Rule::new(*tool, *action, "settings.json"))
        .collect();
    policy
}

async fn call(registry: &Registry, tool: &str) -> ToolOutput {
    let observer = Arc::new(NoObserver);
    let context = ToolContext::new(AgentId::main(), "1", observer, CancellationToken::new());
    registry.execute(context, tool, Raw::empty_object()).await
}

fn with_tool(registry: &Registry, name: &str) -> Arc<TestTool> {
    let tool = TestTool::new(name, "done");
    registry.register(Arc::clone(&tool) as Arc<dyn Tool>);
    tool
}

/// A rule for `mcp__*` matches no tool of the host.
#[tokio::test]
async fn rules_for_servers_do_not_match_host_tools() {
    let rules = rules(&[("mcp__*", Action::Allow)]);
    let user = Answers::always(Some(PermissionAnswer::Once));
    let registry = registry(
        &rules,
        Mode::Default,
        Some(Arc::clone(&user) as Arc<dyn Prompter>),
    );
    let bash = with_tool(&registry, "Bash");
    assert_eq!(call(&registry, "Bash").await.text, "done");
    assert_eq!(user.questions().len(), 1, "the user is asked");
    assert_eq!(user.questions()[0].subject.tool, "Bash");
    assert_eq!(bash.inputs().len(), 1);
}

/// C26, S001-08, S001-09, S001-35: a tool is not called without the user's consent, and the model reads why.
#[tokio::test]
async fn the_user_may_decline() {
    let answer = PermissionAnswer::No(Some("use git instead".to_owned()));
    let user: Arc<dyn Prompter> = Answers::always(Some(answer));
    let registry = registry(&config::Policy::default(), Mode::Default, Some(user));
    let bash = with_tool(&registry, "Bash");
    let output = call(&registry, "Bash").await;
    assert!(
        output.is_error && output.text.contains("use git instead"),
        "{output:?}"
    );
    assert!(bash.inputs().is_empty());
}

/// C26: without a prompter, what would be asked is refused, and the text names the flag and the rule.
#[tokio::test]
async fn without_a_prompter_calls_are_refused() {
    let registry = registry(&config::Policy::default(), Mode::Default, None);
    let bash = with_tool(&registry, "Bash");
    let output = call(&registry, "Bash").await;
    assert!(output.is_error, "{output:?}");
    for advice in [
        "--allowed-tools Bash",
        "\"tool\": \"Bash\"",
        "settings.json",
    ] {
        assert!(output.text.contains(advice), "{output:?}");
    }
    assert!(bash.inputs().is_empty());
}

/// S001-79: bypassPermissions allows all but what a rule denies.
#[tokio::test]
async fn a_rule_that_denies_holds_in_every_mode() {
    let rules = rules(&[("Bash", Action::Deny), ("Edit", Action::Ask)]);
    for mode in Mode::names() {
        let registry = registry(&rules, mode.parse().unwrap(), None);
        let bash = with_tool(&registry, "Bash");
        let output = call(&registry, "Bash").await;
        assert!(
            output.is_error && output.text.contains("denied by"),
            "{mode}: {output:?}"
        );
        assert!(bash.inputs().is_empty());
        with_tool(&registry, "Edit");
        let is_allowed = !call(&registry, "Edit").await.is_error;
        assert_eq!(is_allowed, mode == "bypassPermissions", "{mode}");
    }
}

/// "Always" holds for the tool while its definition stays the same.
#[tokio::test]
async fn always_ends_with_the_definition() {
    let user = Answers::always(Some(PermissionAnswer::AlwaysTool));
    let prompter = Arc::clone(&user) as Arc<dyn Prompter>;
    let registry = registry(&config::Policy::default(), Mode::Default, Some(prompter));
    with_tool(&registry, "Bash");
    for _ in 0..3 {
        assert!(!call(&registry, "Bash").await.is_error);
    }
    assert_eq!(user.questions().len(), 1);
    with_tool(&registry, "Other");
    assert!(!call(&registry, "Other").await.is_error);
    assert_eq!(user.questions().len(), 2, "another tool is asked about");
}
