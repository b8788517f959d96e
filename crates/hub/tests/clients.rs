//! Clients with different views of the catalogue.

#![expect(clippy::unwrap_used, reason = "a failing test panics")]

use std::collections::BTreeMap;
use std::sync::Arc;

use plexus_mcp_config::{Action, ClientSettings, Rule, ToolFilter};
use plexus_mcp_core::{
    Call, Catalogue, Context, EventSender, Fault, Implementation, LocalService, NoArguments,
    Object, Peer, Principal, Raw, Section, Service, Tool,
};
use plexus_mcp_hub::policy::Policy;
use plexus_mcp_hub::{Hub, MemberKind, MemberSpec};
use plexus_mcp_protocol::Revision;
use plexus_mcp_protocol::messages::ClientCapabilities;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

fn service(tools: &[&str]) -> LocalService {
    let mut builder = LocalService::builder("test", "1.0.0");
    for tool in tools {
        let tool = Tool::new(*tool);
        builder = builder.tool(tool, async |_: NoArguments, _: Context| "done");
    }
    builder.build().unwrap()
}

async fn hub() -> (Hub, LocalService) {
    let hub = Hub::new(Implementation::new("hub", "1.0.0"));
    let git = service(&["status", "push", "delete.branch"]);
    let local = |name: &str, service: LocalService| {
        MemberSpec::new(name, MemberKind::Local(Arc::new(service)), [1; 32])
    };
    let members = vec![local("git", git.clone()), local("mail", service(&["send"]))];
    hub.set_members(members).await;
    (hub, git)
}

fn filters<'a>(
    filters: impl IntoIterator<Item = (&'a str, &'a [&'a str], &'a [&'a str])>,
) -> BTreeMap<String, ClientSettings> {
    let owned = |globs: &[&str]| globs.iter().map(|glob| (*glob).to_owned()).collect();
    let filters = filters.into_iter().map(|(name, allow, deny)| {
        let filter = ToolFilter::new(owned(allow), owned(deny)).unwrap();
        (name.to_owned(), ClientSettings::filtered(filter))
    });
    filters.collect()
}

fn client(name: &str) -> Arc<Peer> {
    let info = Raw::encode(&json!({"name": name, "version": "1.0.0"})).unwrap();
    let (revision, none) = (Revision::NEWEST_STATELESS, ClientCapabilities::none());
    Arc::new(Peer::new(
        revision,
        none,
        Some(info),
        Principal::anonymous(),
    ))
}

fn anonymous() -> Arc<Peer> {
    let (revision, none) = (Revision::NEWEST_STATELESS, ClientCapabilities::none());
    Arc::new(Peer::new(revision, none, None, Principal::anonymous()))
}

fn names(catalogue: &Catalogue) -> Vec<String> {
    let entries = catalogue.list(Section::Tools).entries().iter();
    entries.map(|entry| entry.key.to_string()).collect()
}

fn shown(hub: &Hub, peer: &Peer) -> Vec<String> {
    let catalogue = hub.catalogue_for(peer).unwrap_or_else(|| hub.catalogue());
    names(&catalogue.borrow())
}

async fn call(hub: &Hub, peer: &Arc<Peer>, tool: &str) -> Result<(), Fault> {
    let params = Raw::encode(&json!({"name": tool, "arguments": {}})).unwrap();
    let (events, _queue) = EventSender::channel(Arc::clone(peer), false, None);
    let call = Call::new(
        "tools/call",
        Object::parse(&params).unwrap(),
        events,
        CancellationToken::new(),
    );
    hub.call(call).await.map(|_result| ())
}

const ALL: [&str; 4] = [
    "git__status",
    "git__push",
    "git__delete_branch",
    "mail__send",
];

/// A client sees the tools that its filter admits, in the same order, and can call no others by any
/// name. Filters may use any of a tool's names.
#[tokio::test]
async fn a_client_sees_and_calls_what_its_filter_lets_through() {
    let (hub, _git) = hub().await;
    hub.set_clients(filters([
        (
            "reader",
            &["git__*"][..],
            &["mcp__git__push", "git.delete.*"][..],
        ),
        ("writer", &[], &["mail__*"]),
    ]));
    let (reader, writer, other) = (client("reader"), client("writer"), client("other"));
    assert_eq!(shown(&hub, &reader), ["git__status"]);
    assert_eq!(shown(&hub, &writer), ALL[..3]);
    assert_eq!(shown(&hub, &other), ALL);
    assert_eq!(shown(&hub, &anonymous()), ALL);

    call(&hub, &reader, "git__status").await.unwrap();
    call(&hub, &writer, "git__push").await.unwrap();
    for hidden in [
        "git__push",
        "git.push",
        "mcp__git__push",
        "push",
        "mail__send",
        "send",
    ] {
        let refused = call(&hub, &reader, hidden).await;
        assert_eq!(refused, Err(Fault::UnknownTool(hidden.to_owned())));
        call(&hub, &other, hidden).await.unwrap();
    }
}

/// A client without a filter of its own has the filter of `*`, if there is one.
#[tokio::test]
async fn others_have_a_filter_of_their_own() {
    let (hub, _git) = hub().await;
    hub.set_clients(filters([
        ("*", &["git__status"][..], &[][..]),
        ("trusted", &[], &[]),
    ]));
    assert_eq!(shown(&hub, &client("stranger")), ["git__status"]);
    assert_eq!(shown(&hub, &anonymous()), ["git__status"]);
    assert_eq!(shown(&hub, &client("trusted")), ALL);
}

/// A change of a server or of the filters is announced to the clients whose lists it changes.
#[tokio::test]
async fn filtered_lists_change_with_servers_and_filters() {
    let (hub, git) = hub().await;
    hub.set_clients(filters([("reader", &["git__*"][..], &["git__push"][..])]));
    let reader = client("reader");
    let mut list = hub.catalogue_for(&reader).unwrap();
    let mut whole = hub.catalogue();
    list.mark_unchanged();
    whole.mark_unchanged();
    git.edit(|builder| builder.remove_tool("push")).unwrap();
    whole.changed().await.unwrap();
    assert!(!list.has_changed().unwrap(), "it was not shown anyway");

    git.edit(|builder| builder.remove_tool("status")).unwrap();
    whole.changed().await.unwrap();
    list.changed().await.unwrap();
    assert_eq!(names(&list.borrow()), ["git__delete_branch"]);

    hub.set_clients(filters([("reader", &["mail__*"][..], &[][..])]));
    list.changed().await.unwrap();
    assert_eq!(names(&list.borrow()), ["mail__send"]);
    assert!(whole.has_changed().unwrap(), "sessions are made to compare");
    hub.set_clients(BTreeMap::new());
    assert!(list.changed().await.is_err(), "it is filtered no longer");
    assert_eq!(shown(&hub, &reader), ["git__delete_branch", "mail__send"]);
}

/// The result of a tool call of a client.
async fn said(hub: &Hub, peer: &Arc<Peer>, tool: &str, arguments: Value) -> Result<String, Fault> {
    let params = Raw::encode(&json!({"name": tool, "arguments": arguments})).unwrap();
    let (events, _queue) = EventSender::channel(Arc::clone(peer), false, None);
    let call = Call::new(
        "tools/call",
        Object::parse(&params).unwrap(),
        events,
        CancellationToken::new(),
    );
    let result: Value = hub.call(call).await?.decode().unwrap();
    let text = result.pointer("/content/0/text").unwrap();
    Ok(text.as_str().unwrap().to_owned())
}

/// A client that searches sees three tools, which find, describe and call the others. The same
/// rules hold, and hidden tools are never found.
#[tokio::test]
async fn a_client_can_search_instead_of_being_shown_a_list() {
    let (hub, git) = hub().await;
    let hidden = ToolFilter::new(Vec::new(), vec!["git__push".to_owned()]).unwrap();
    let searching = ClientSettings::filtered(hidden).searching();
    hub.set_clients(BTreeMap::from([("small".to_owned(), searching)]));
    let small = client("small");
    assert_eq!(shown(&hub, &client("other")), ALL);
    assert_eq!(
        shown(&hub, &small),
        ["SearchTools", "DescribeTool", "CallTool"]
    );
    let catalogue = hub.catalogue_for(&small).unwrap();
    let instructions = catalogue.borrow().instructions.clone().unwrap();
    assert!(
        instructions.contains("not listed: git, mail."),
        "{instructions}"
    );

    let search = async |arguments| said(&hub, &small, "SearchTools", arguments).await;
    let found = search(json!({"query": "send mails"})).await.unwrap();
    assert_eq!(found.lines().next(), Some("mail__send: "), "{found}");
    let found = search(json!({"query": "", "server": "git", "limit": 1}))
        .await
        .unwrap();
    assert_eq!(found, "git__status: \n… and more, which fit less");
    assert_eq!(
        search(json!({"query": "push"})).await.unwrap(),
        "No tool fits; try other words."
    );
    let error = search(json!({"query": "x", "server": "none"}))
        .await
        .unwrap();
    assert!(error.contains("there is no server \"none\""), "{error}");
    let wrong = search(json!({"quest": "x"})).await;
    assert!(
        matches!(wrong, Err(Fault::InvalidArguments(_))),
        "{wrong:?}"
    );

    let describe = async |name| said(&hub, &small, "DescribeTool", json!({"name": name})).await;
    let described = describe("git.status").await.unwrap();
    assert!(
        described.starts_with("{\"name\":\"git__status\""),
        "{described}"
    );
    for unknown in ["git__push", "nothing"] {
        let told = describe(unknown).await.unwrap();
        assert!(told.contains("find tools with SearchTools"), "{told}");
    }

    let through = async |name| {
        let arguments = json!({"name": name, "arguments": {}});
        said(&hub, &small, "CallTool", arguments).await
    };
    assert_eq!(through("git__status").await.unwrap(), "done");
    assert_eq!(through("mcp__mail__send").await.unwrap(), "done");
    let refused = Fault::UnknownTool("git__push".to_owned());
    assert_eq!(through("git__push").await, Err(refused));
    // For other clients, these tools do not exist.
    let other = said(
        &hub,
        &client("other"),
        "CallTool",
        json!({"name": "git__status"}),
    )
    .await;
    assert_eq!(other, Err(Fault::UnknownTool("CallTool".to_owned())));

    // A tool that is added later is found, and the list stays the same.
    let mut list = hub.catalogue_for(&small).unwrap();
    list.mark_unchanged();
    let mut whole = hub.catalogue();
    whole.mark_unchanged();
    git.edit(|builder| {
        let tool = Tool::new("bisect").description("Finds the commit that broke it");
        builder.tool(tool, async |_: NoArguments, _: Context| "done")
    })
    .unwrap();
    whole.changed().await.unwrap();
    assert!(!list.has_changed().unwrap());
    let found = search(json!({"query": "broken commits"})).await.unwrap();
    assert_eq!(found, "git__bisect: Finds the commit that broke it");
}

/// Policy rules apply to the tool that `CallTool` calls.
#[tokio::test]
async fn policy_sees_through_the_search() {
    let (hub, _git) = hub().await;
    let all = ClientSettings::default().searching();
    hub.set_clients(BTreeMap::from([("*".to_owned(), all)]));
    let mut policy = plexus_mcp_config::Policy::default();
    policy.rules = vec![Rule::new("git__push", Action::Deny, "plexus.toml")];
    hub.set_policy(Policy::behind_client(&policy));
    let denied = said(&hub, &anonymous(), "CallTool", json!({"name": "git__push"})).await;
    assert!(denied.unwrap().contains("denied by"));
    let allowed = said(
        &hub,
        &anonymous(),
        "CallTool",
        json!({"name": "git__status"}),
    )
    .await;
    assert_eq!(allowed.unwrap(), "done");
}
