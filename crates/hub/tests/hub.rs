//! The hub with members in this process.

#![expect(clippy::unwrap_used, reason = "a failing test panics")]

use std::sync::Arc;

use plexus_mcp_client::{Definition, Program, ServerState, Target};
use plexus_mcp_core::{
    Call, Context, EventSender, Fault, Implementation, LocalService, NoArguments, Peer, Principal,
    Prompt, PromptMessage, Raw, Resource, ResourceContents, ResourceTemplate, Section, Service,
    Tool, Variables,
};
use plexus_mcp_hub::{Hub, MemberKind, MemberSpec};
use plexus_mcp_protocol::Revision;
use plexus_mcp_protocol::messages::ClientCapabilities;
use plexus_mcp_wire::{Limits, Object};
use tokio_util::sync::CancellationToken;

fn raw(text: impl Into<String>) -> Raw {
    Raw::parse(text.into().into(), &Limits::default()).unwrap()
}

/// A service that returns its own name for every request.
fn speaker(name: &'static str) -> LocalService {
    LocalService::builder(name, "1.0.0")
        .instructions(format!("Ask {name}."))
        .tool(
            Tool::new("who"),
            move |_: NoArguments, _: Context| async move { name },
        )
        .tool(
            Tool::new("extra.tool"),
            move |_: NoArguments, _: Context| async move { name },
        )
        .prompt(
            Prompt::new("greet"),
            move |_: Variables, _: Context| async move { PromptMessage::user(name) },
        )
        .complete_prompt("greet", "who", move |_: String, _| async move { [name] })
        .resource(
            Resource::new("shared://thing", "thing"),
            move |uri: String, _: Context| async move { ResourceContents::text(uri, name) },
        )
        .template(
            ResourceTemplate::new(format!("{name}://{{id}}"), "things"),
            move |uri: String, _: Variables, _: Context| async move {
                ResourceContents::text(uri, name)
            },
        )
        .build()
        .unwrap()
}

fn local(name: &'static str, fingerprint: u8) -> MemberSpec {
    MemberSpec::new(
        name,
        MemberKind::Local(Arc::new(speaker(name))),
        [fingerprint; 32],
    )
}

fn failing(name: &str) -> MemberSpec {
    let program = Program::new("sh").args(["-c", "echo 'cannot start today' >&2; exit 3"]);
    let definition = Box::new(Definition::new(Target::Stdio(program)));
    MemberSpec::new(name, MemberKind::Upstream(definition), [9; 32])
}

fn hub() -> Hub {
    Hub::new(Implementation::new("hub", "1.0.0"))
}

async fn call(hub: &Hub, method: &str, params: &str) -> Result<String, Fault> {
    let peer = Peer::new(
        Revision::NEWEST_STATELESS,
        ClientCapabilities::none(),
        None,
        Principal::anonymous(),
    );
    let (events, _queue) = EventSender::channel(Arc::new(peer), false, None);
    let call = Call::new(
        method,
        Object::parse(&raw(params)).unwrap(),
        events,
        CancellationToken::new(),
    );
    hub.call(call)
        .await
        .map(|result| result.as_str().to_owned())
}

fn keys(hub: &Hub, section: Section) -> Vec<String> {
    let catalogue = hub.catalogue().borrow().clone();
    let entries = catalogue.list(section).entries().iter();
    entries.map(|entry| entry.key.to_string()).collect()
}

/// S001-34, S004-55, S004-58, S001-15, C11, C50, S004-K066: names are distinguished by their
/// servers, and found under all their aliases.
#[tokio::test]
async fn tools_of_all_members_are_offered_and_reached() {
    let hub = hub();
    hub.set_members(vec![local("a", 1), local("b", 1)]).await;
    assert_eq!(
        keys(&hub, Section::Tools),
        ["a__who", "a__extra_tool", "b__who", "b__extra_tool"]
    );
    for (name, owner) in [
        ("a__who", "a"),
        ("b__who", "b"),
        ("b.who", "b"),
        ("mcp__b__who", "b"),
        ("a__extra_tool", "a"),
        ("a.extra.tool", "a"),
    ] {
        let said = call(&hub, "tools/call", &format!(r#"{{"name":"{name}"}}"#))
            .await
            .unwrap();
        assert!(
            said.contains(&format!(r#""text":"{owner}""#)),
            "{name}: {said}"
        );
    }
    let unknown = call(&hub, "tools/call", r#"{"name":"whom"}"#).await;
    assert_eq!(unknown, Err(Fault::UnknownTool("whom".to_owned())));
}

/// C11, C12: a tool that only one server has is also found by that server's own name for it; an
/// ambiguous name is an error.
#[tokio::test]
async fn a_name_without_its_server_is_taken_if_only_one_can_be_meant() {
    let hub = hub();
    let other = LocalService::builder("c", "1.0.0")
        .tool(
            Tool::new("alone"),
            |_: NoArguments, _: Context| async move { "c" },
        )
        .prompt(Prompt::new("ask"), |_: Variables, _: Context| async move {
            PromptMessage::user("c")
        })
        .complete_prompt("ask", "who", |_: String, _| async move { ["c"] })
        .build()
        .unwrap();
    let other = MemberSpec::new("c", MemberKind::Local(Arc::new(other)), [3; 32]);
    hub.set_members(vec![local("a", 1), local("b", 1), other])
        .await;
    let completion =
        r#"{"ref":{"type":"ref/prompt","name":"ask"},"argument":{"name":"who","value":""}}"#;
    for (method, params) in [
        ("tools/call", r#"{"name":"alone"}"#),
        ("prompts/get", r#"{"name":"ask"}"#),
        ("completion/complete", completion),
    ] {
        let said = call(&hub, method, params).await.unwrap();
        assert!(said.contains(r#""c""#), "{method}: {said}");
    }
    for (method, params, names) in [
        ("tools/call", r#"{"name":"who"}"#, "a__who, b__who"),
        ("prompts/get", r#"{"name":"greet"}"#, "a__greet, b__greet"),
    ] {
        let Err(Fault::InvalidParams(why)) = call(&hub, method, params).await else {
            panic!("{method} {params} was guessed at");
        };
        assert!(why.ends_with(names), "{why}");
    }
    assert!(!keys(&hub, Section::Tools).contains(&"alone".to_owned()));
}

/// S004-55, S004-71.
#[tokio::test]
async fn prompts_resources_templates_and_completions_find_their_owner() {
    let hub = hub();
    hub.set_members(vec![local("a", 1), local("b", 1)]).await;
    let said = call(&hub, "prompts/get", r#"{"name":"b__greet"}"#)
        .await
        .unwrap();
    assert!(said.contains(r#""text":"b""#), "{said}");
    let said = call(&hub, "resources/read", r#"{"uri":"b://7"}"#)
        .await
        .unwrap();
    assert!(said.contains(r#""text":"b""#), "{said}");
    let completion =
        r#"{"ref":{"type":"ref/prompt","name":"b__greet"},"argument":{"name":"who","value":""}}"#;
    let said = call(&hub, "completion/complete", completion).await.unwrap();
    assert!(said.contains(r#"["b"]"#), "{said}");
    let missing = call(&hub, "resources/read", r#"{"uri":"c://7"}"#).await;
    assert_eq!(missing, Err(Fault::ResourceNotFound("c://7".to_owned())));
}

/// Two resources with the same URI are both listed, and each can be read.
#[tokio::test]
async fn resources_with_the_same_uri_get_distinct_uris() {
    let hub = hub();
    hub.set_members(vec![local("a", 1), local("b", 1)]).await;
    let uris = keys(&hub, Section::Resources);
    assert_eq!(uris, ["shared://thing", "plexus://b/shared://thing"]);
    for (uri, owner) in uris.iter().zip(["a", "b"]) {
        let said = call(&hub, "resources/read", &format!(r#"{{"uri":"{uri}"}}"#))
            .await
            .unwrap();
        assert!(
            said.contains(&format!(r#""text":"{owner}""#)),
            "{uri}: {said}"
        );
    }
}

/// S001-36, S004-14, S004-13, S004-53, S004-57, C38: unchanged members are not touched.
#[tokio::test]
async fn members_come_go_and_change() {
    let hub = hub();
    let first = hub.set_members(vec![local("a", 1), local("b", 1)]).await;
    assert_eq!(first.added, ["a", "b"]);
    hub.toggle("b", false).unwrap();
    let second = hub.set_members(vec![local("c", 1), local("b", 2)]).await;
    assert_eq!(
        (second.added, second.removed, second.updated),
        (
            vec!["c".to_owned()],
            vec!["a".to_owned()],
            vec!["b".to_owned()]
        )
    );
    assert_eq!(
        keys(&hub, Section::Tools),
        ["c__who", "c__extra_tool"],
        "b stays disabled"
    );
}

/// S004-52, C39.
#[tokio::test]
async fn tools_of_a_disabled_server_are_neither_listed_nor_called() {
    let hub = hub();
    hub.set_members(vec![local("a", 1), local("b", 1)]).await;
    let mut catalogue = hub.catalogue();
    catalogue.mark_unchanged();
    hub.toggle("a", false).unwrap();
    assert!(catalogue.has_changed().unwrap(), "clients are told");
    assert_eq!(keys(&hub, Section::Tools), ["b__who", "b__extra_tool"]);
    assert!(
        call(&hub, "tools/call", r#"{"name":"a__who"}"#)
            .await
            .is_err()
    );
    hub.toggle("a", true).unwrap();
    assert!(
        call(&hub, "tools/call", r#"{"name":"a__who"}"#)
            .await
            .is_ok()
    );
    assert!(hub.toggle("missing", true).is_err());
}

/// S001-41, S004-54, S001-61, S001-75, S004-20: a failing server affects only itself, and its
/// status says why.
#[tokio::test]
async fn one_bad_member_stays_one_bad_member() {
    let hub = hub();
    hub.set_members(vec![failing("bad"), local("good", 1)])
        .await;
    hub.connect_all().await;
    let said = call(&hub, "tools/call", r#"{"name":"good__who"}"#)
        .await
        .unwrap();
    assert!(said.contains("good"), "{said}");
    let status = hub.status();
    let bad = status.iter().find(|member| &*member.name == "bad").unwrap();
    let connection = bad.status.as_ref().unwrap();
    assert_eq!(connection.state, ServerState::Failed);
    let reason = connection.reason.as_deref().unwrap();
    assert!(
        reason.contains("code 3") && reason.contains("cannot start today"),
        "{reason}"
    );
}

/// An unknown method goes to the only server, or is an error if there are several.
#[tokio::test]
async fn unknown_methods_go_to_the_only_member() {
    let hub = hub();
    hub.set_members(vec![local("a", 1), local("b", 1)]).await;
    let refused = call(&hub, "vendor/thing", "{}").await;
    assert_eq!(
        refused,
        Err(Fault::MethodNotFound("vendor/thing".to_owned()))
    );
}

/// Instructions are joined under their servers' names.
#[tokio::test]
async fn instructions_are_joined() {
    let hub = hub();
    hub.set_members(vec![local("a", 1), local("b", 1)]).await;
    let instructions = hub.catalogue().borrow().instructions.clone();
    assert_eq!(
        instructions.as_deref(),
        Some("# a\n\nAsk a.\n\n# b\n\nAsk b.")
    );
}

/// A member's own change reaches the hub's clients.
#[tokio::test]
async fn changes_of_members_are_passed_on() {
    let service = speaker("a");
    let hub = hub();
    let spec = MemberSpec::new("a", MemberKind::Local(Arc::new(service.clone())), [1; 32]);
    hub.set_members(vec![spec]).await;
    let mut catalogue = hub.catalogue();
    catalogue.mark_unchanged();
    service.edit(|builder| builder.remove_tool("who")).unwrap();
    catalogue.changed().await.unwrap();
    assert_eq!(keys(&hub, Section::Tools), ["a__extra_tool"]);
}

/// Filters hide tools, and hidden tools cannot be called.
#[tokio::test]
async fn hidden_tools_cannot_be_called() {
    let hub = hub();
    let mut spec = local("a", 1);
    spec.shows_tool = Arc::new(|tool| tool != "who");
    hub.set_members(vec![spec]).await;
    assert_eq!(keys(&hub, Section::Tools), ["a__extra_tool"]);
    let hidden = call(&hub, "tools/call", r#"{"name":"a__who"}"#).await;
    assert_eq!(hidden, Err(Fault::UnknownTool("a__who".to_owned())));
}

/// The owner of an entry is found by any of its names, also for hidden entries.
#[tokio::test]
async fn everything_has_an_origin() {
    let hub = hub();
    let mut spec = local("a", 1);
    spec.shows_tool = Arc::new(|tool| tool != "who");
    hub.set_members(vec![spec]).await;
    let origin = |section, name: &str| {
        let origin = hub.origin(section, name)?;
        Some(format!("{} {}", origin.member, origin.name))
    };
    for name in ["a__extra_tool", "a.extra.tool", "mcp__a__extra.tool"] {
        let found = origin(Section::Tools, name);
        assert_eq!(found.as_deref(), Some("a extra.tool"), "{name}");
    }
    assert_eq!(origin(Section::Tools, "a__who"), None);
    let resource = origin(Section::Resources, "a://7");
    assert_eq!(resource.as_deref(), Some("a a://7"));
    assert_eq!(
        origin(Section::Prompts, "a__greet").as_deref(),
        Some("a greet")
    );
    let offer = hub.offer_of("a").unwrap();
    assert!(offer.list(Section::Tools).get("who").is_some());
    assert!(hub.offer_of("b").is_none());
}
