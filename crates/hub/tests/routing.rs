//! Routing of calls, and of everything that belongs to them, between clients and servers.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test panics"
)]

use std::sync::Arc;
use std::time::Duration;

use plexus_mcp_client::{Definition, Program, Target};
use plexus_mcp_core::{
    Boxed, Call, Context, Event, EventReceiver, EventSender, Fault, Implementation, LocalService,
    NoArguments, Object, Outcome, Peer, Principal, Raw, Section, Service, Tool, Updates,
};
use plexus_mcp_hub::names::MAX_NAME_CHARS;
use plexus_mcp_hub::{Hub, MemberKind, MemberSpec, manage};
use plexus_mcp_protocol::Revision;
use plexus_mcp_protocol::messages::{ClientCapabilities, LogLevel};
use plexus_testkit::server::{Offer, Process, Script, StdioServer, Step, tool};
use plexus_testkit::within;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const LEGACY: Revision = Revision::V2025_11_25;
const STATELESS: Revision = Revision::V2026_07_28;

/// A scripted server with every capability; the test answers its calls.
fn offer(revision: Revision) -> Offer {
    let mut offer = Offer::tools(revision, [tool("work"), tool("rest")])
        .declaring("logging", json!({}))
        .declaring("completions", json!({}))
        .declaring("prompts", json!({}))
        .declaring("resources", json!({"subscribe": true}));
    offer.prompts.push(json!({"name": "greet"}));
    let resource = json!({"uri": "file:///readme", "name": "readme"});
    offer.resources.push(resource);
    let template = json!({"uriTemplate": "file:///{name}", "name": "files"});
    offer.templates.push(template);
    offer
}

/// A hub with the servers `one` and `two`.
struct Pair {
    hub: Hub,
    one: Process,
    two: Process,
    _servers: [StdioServer; 2],
}

fn upstream(name: &str, server: &StdioServer) -> MemberSpec {
    let program = Program::new(StdioServer::command()).args(server.arguments().iter().cloned());
    let mut definition = Definition::new(Target::Stdio(program));
    definition.timeouts.probe = Duration::from_secs(10);
    MemberSpec::new(name, MemberKind::Upstream(Box::new(definition)), [1; 32])
}

fn empty_hub() -> Hub {
    Hub::new(Implementation::new("hub", "1.0.0"))
}

impl Pair {
    async fn of(one: impl Into<Script>, two: impl Into<Script>) -> Self {
        let servers = [StdioServer::new(one).await, StdioServer::new(two).await];
        let hub = empty_hub();
        let members = vec![upstream("one", &servers[0]), upstream("two", &servers[1])];
        hub.set_members(members).await;
        within("the servers", hub.connect_all()).await;
        Self {
            hub,
            one: servers[0].process().await,
            two: servers[1].process().await,
            _servers: servers,
        }
    }

    /// Two servers with the same names for everything.
    async fn alike(revision: Revision) -> Self {
        let script = || {
            let set = [Step::Result(json!({}))];
            Script::from(&offer(revision)).on("logging/setLevel", set)
        };
        Self::of(script(), script()).await
    }

    /// The methods of the requests that the first server got after it was connected.
    async fn one_got(&self) -> Vec<String> {
        let greetings = [
            "initialize",
            "server/discover",
            "notifications/initialized",
            "logging/setLevel",
        ];
        let mut methods = self.one.methods().await;
        methods.retain(|method| {
            !greetings.contains(&method.as_str())
                && !method.ends_with("/list")
                && !method.starts_with("subscriptions/")
        });
        methods
    }
}

fn peer() -> Arc<Peer> {
    let none = ClientCapabilities::none();
    let peer = Peer::new(STATELESS, none, None, Principal::anonymous());
    Arc::new(peer)
}

fn call(hub: &Hub, method: &str, params: &Value) -> (Boxed<Outcome>, EventReceiver) {
    let (events, queue) = EventSender::channel(peer(), true, Some(LogLevel::Debug));
    let params = Raw::encode(params).unwrap();
    let call = Call::new(
        method,
        Object::parse(&params).unwrap(),
        events,
        CancellationToken::new(),
    );
    (hub.call(call), queue)
}

async fn outcome(hub: &Hub, method: &str, params: &Value) -> Result<Value, Fault> {
    let (calling, _events) = call(hub, method, params);
    let outcome = within(method, calling).await;
    outcome.map(|result| result.decode().unwrap())
}

/// The outcome of a call whose server gives this result.
async fn answered(
    (mut calling, _events): (Boxed<Outcome>, EventReceiver),
    process: &Process,
    method: &str,
    result: Value,
) -> (Value, Value) {
    let request = during(&mut calling, process.received(method)).await;
    process.reply(&request, result).await;
    let outcome = within("the result", calling).await.unwrap();
    (request["params"].clone(), outcome.decode().unwrap())
}

async fn during<T>(calling: &mut Boxed<Outcome>, work: impl Future<Output = T>) -> T {
    tokio::select! {
        biased;
        done = work => done,
        outcome = calling => panic!("the call ended too early: {outcome:?}"),
    }
}

async fn watch(hub: &Hub, uri: &str) -> Result<Updates, Fault> {
    within("the subscription", hub.subscribe(&peer(), uri)).await
}

fn keys(hub: &Hub, section: Section) -> Vec<String> {
    let catalogue = hub.catalogue().borrow().clone();
    let entries = catalogue.list(section).entries().iter();
    entries.map(|entry| entry.key.to_string()).collect()
}

fn complete(revision: Revision, mut result: Value) -> Value {
    if revision == STATELESS {
        result["resultType"] = json!("complete");
    }
    result
}

/// S001-34, S004-58: a call goes to the owner of the tool only, by the owner's name for it.
#[tokio::test]
async fn a_call_is_routed_only_to_the_owner_of_the_tool() {
    for revision in [LEGACY, STATELESS] {
        let two = Pair::alike(revision).await;
        for name in ["two__work", "two.work", "mcp__two__work"] {
            let arguments = json!({"name": name, "arguments": {"deep": [1, {"a": null}]}});
            let result = complete(revision, json!({"content": [], "extra": 1}));
            let calling = call(&two.hub, "tools/call", &arguments);
            let (params, result) = answered(calling, &two.two, "tools/call", result).await;
            assert_eq!(params["name"], "work");
            assert_eq!(params["arguments"], arguments["arguments"]);
            assert_eq!(result["extra"], 1, "what we do not know survives");
        }
        assert_eq!(two.one_got().await, [""; 0]);
    }
}

/// Progress of a server reaches the caller of the call that it is about.
#[tokio::test]
async fn progress_reaches_the_caller() {
    let two = Pair::alike(LEGACY).await;
    let (mut first, mut first_events) = call(&two.hub, "tools/call", &json!({"name": "one__work"}));
    let request = during(&mut first, two.one.received("tools/call")).await;
    let (mut second, mut second_events) =
        call(&two.hub, "tools/call", &json!({"name": "two__work"}));
    during(&mut second, two.two.received("tools/call")).await;

    let token = &request["params"]["_meta"]["progressToken"];
    let params = json!({"progressToken": token, "progress": 0.5, "message": "half"});
    let notification =
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
    two.one.say(notification).await;
    let event = during(&mut first, first_events.recv()).await;
    let Some(Event::Progress(progress)) = event else {
        panic!("{event:?}");
    };
    assert_eq!(progress.message.as_deref(), Some("half"));
    assert!(
        second_events.try_recv().is_none(),
        "it is not about that one"
    );
}

/// Cancellation goes only to the owner.
#[tokio::test]
async fn a_cancellation_reaches_only_the_owner() {
    let two = Pair::alike(LEGACY).await;
    let (mut dropped, _events) = call(&two.hub, "tools/call", &json!({"name": "two__work"}));
    let (mut kept, _kept_events) = call(&two.hub, "tools/call", &json!({"name": "one__work"}));
    let request = during(&mut dropped, two.two.received("tools/call")).await;
    during(&mut kept, two.one.received("tools/call")).await;
    drop(dropped);
    let cancelled = two.two.received("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
    assert_eq!(two.one_got().await, ["tools/call"]);
}

/// Log messages of a server during a call reach the caller, with the server's name.
#[tokio::test]
async fn log_messages_name_their_server() {
    let two = Pair::alike(LEGACY).await;
    let (mut calling, mut events) = call(&two.hub, "tools/call", &json!({"name": "two__work"}));
    during(&mut calling, two.two.received("tools/call")).await;
    for (logger, expected) in [(json!("db"), "two/db"), (json!(null), "two")] {
        let mut params = json!({"level": "warning", "data": {"text": "slow"}});
        if !logger.is_null() {
            params["logger"] = logger;
        }
        let notification =
            json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params});
        two.two.say(notification).await;
        let event = during(&mut calling, events.recv()).await;
        let Some(Event::Log(log)) = event else {
            panic!("{event:?}");
        };
        assert_eq!(log.logger.as_deref(), Some(expected));
        assert_eq!(log.data.as_str(), r#"{"text":"slow"}"#);
    }
}

/// Two subscribers of one resource share one subscription at its server, which ends with the last
/// of them; the other server is not involved.
#[tokio::test]
async fn subscriptions_are_counted_for_each_server() {
    let done = [Step::Result(json!({}))];
    let script = || {
        Script::from(&offer(LEGACY))
            .on("resources/subscribe", done.clone())
            .on("resources/unsubscribe", done.clone())
    };
    let two = Pair::of(script(), script()).await;
    let uri = "plexus://two/file:///readme";
    let mut first = watch(&two.hub, uri).await.unwrap();
    let mut second = watch(&two.hub, uri).await.unwrap();
    let asked = two.two.received("resources/subscribe").await;
    assert_eq!(asked["params"]["uri"], "file:///readme");
    let update = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated",
        "params": {"uri": "file:///readme"}});
    two.two.say(update.clone()).await;
    within("an update", first.next()).await.unwrap();
    within("an update", second.next()).await.unwrap();

    drop(first);
    two.two.say(update).await;
    within("an update", second.next()).await.unwrap();
    let unsubscribed = "resources/unsubscribe".to_owned();
    assert!(!two.two.methods().await.contains(&unsubscribed));
    drop(second);
    two.two.received(&unsubscribed).await;
    let methods = two.two.methods().await;
    let subscribed = methods.iter().filter(|m| *m == "resources/subscribe");
    assert_eq!(subscribed.count(), 1);
    assert_eq!(two.one_got().await, [""; 0]);
}

/// Completions go to the owner of the prompt or template.
#[tokio::test]
async fn completions_reach_the_owner_of_what_they_refer_to() {
    let two = Pair::alike(LEGACY).await;
    for (reference, own) in [
        (
            json!({"type": "ref/prompt", "name": "two__greet"}),
            json!({"type": "ref/prompt", "name": "greet"}),
        ),
        (
            json!({"type": "ref/resource", "uri": "plexus://two/file:///{name}"}),
            json!({"type": "ref/resource", "uri": "file:///{name}"}),
        ),
    ] {
        let params = json!({"ref": reference, "argument": {"name": "name", "value": "a"}});
        let values = json!({"completion": {"values": ["ada"]}});
        let calling = call(&two.hub, "completion/complete", &params);
        let (sent, result) = answered(calling, &two.two, "completion/complete", values).await;
        assert_eq!(sent["ref"], own);
        assert_eq!(result["completion"]["values"], json!(["ada"]));
    }
    let unknown = json!({"ref": {"type": "ref/prompt", "name": "greeting"}, "argument": {}});
    let refused = outcome(&two.hub, "completion/complete", &unknown).await;
    assert_eq!(refused, Err(Fault::UnknownPrompt("greeting".to_owned())));
    assert_eq!(two.one_got().await, [""; 0]);
}

/// An unknown method goes to the only server, whatever services in this process there are; with
/// several servers it is an error.
#[tokio::test]
async fn unknown_methods_are_for_the_only_server() {
    let server = StdioServer::new(&offer(LEGACY)).await;
    let hub = empty_hub();
    let local = LocalService::builder("local", "1.0.0")
        .tool(Tool::new("sit"), async |_: NoArguments, _: Context| "done")
        .build()
        .unwrap();
    let local = || MemberKind::Local(Arc::new(local.clone()));
    let members = vec![
        MemberSpec::new("local", local(), [1; 32]),
        manage::member(&hub).unwrap(),
        upstream("one", &server),
    ];
    hub.set_members(members).await;
    within("the server", hub.connect_all()).await;
    let process = server.process().await;
    let calling = call(&hub, "vendor/thing", &json!({"a": 1}));
    let (params, result) = answered(calling, &process, "vendor/thing", json!({"b": 2})).await;
    assert_eq!((&params["a"], &result["b"]), (&json!(1), &json!(2)));

    hub.toggle("one", false).unwrap();
    let refused = outcome(&hub, "vendor/thing", &json!({})).await;
    assert_eq!(
        refused,
        Err(Fault::MethodNotFound("vendor/thing".to_owned()))
    );
    let two = Pair::alike(LEGACY).await;
    let refused = outcome(&two.hub, "vendor/thing", &json!({})).await;
    assert_eq!(
        refused,
        Err(Fault::MethodNotFound("vendor/thing".to_owned()))
    );
}

/// Resources and templates that two servers have are both shown and can be read, also by a URI that
/// is not listed; the result has the URI of the request.
#[tokio::test]
async fn colliding_resources_and_templates_are_both_reached() {
    let two = Pair::alike(LEGACY).await;
    assert_eq!(
        keys(&two.hub, Section::Resources),
        ["file:///readme", "plexus://two/file:///readme"]
    );
    assert_eq!(
        keys(&two.hub, Section::Templates),
        ["file:///{name}", "plexus://two/file:///{name}"]
    );
    for (uri, own, owner) in [
        ("file:///readme", "file:///readme", &two.one),
        ("file:///other", "file:///other", &two.one),
        ("plexus://two/file:///readme", "file:///readme", &two.two),
        ("plexus://two/file:///other", "file:///other", &two.two),
        ("plexus://one/file:///other", "file:///other", &two.one),
        ("plexus://two/git://log", "git://log", &two.two),
    ] {
        let contents = json!({"contents": [{"uri": own, "text": "x"}], "extra": 1});
        let calling = call(&two.hub, "resources/read", &json!({"uri": uri}));
        let (sent, read) = answered(calling, owner, "resources/read", contents).await;
        assert_eq!(sent["uri"], own, "{uri}");
        assert_eq!(read["contents"][0]["uri"], uri);
        assert_eq!(
            (&read["contents"][0]["text"], &read["extra"]),
            (&json!("x"), &json!(1))
        );
    }
    for uri in ["plexus://three/file:///readme", "plexus://two", "git://log"] {
        let missing = outcome(&two.hub, "resources/read", &json!({"uri": uri})).await;
        assert_eq!(missing, Err(Fault::ResourceNotFound(uri.to_owned())));
    }
}

/// A server cannot list a URI that names another server as its owner.
#[tokio::test]
async fn a_server_takes_no_uri_of_another() {
    let mut thief = offer(LEGACY);
    thief.resources = vec![json!({"uri": "plexus://two/file:///readme", "name": "mine"})];
    thief.templates = vec![json!({"uriTemplate": "plexus://two/{+all}", "name": "all"})];
    let two = Pair::of(&thief, &offer(LEGACY)).await;
    assert_eq!(
        keys(&two.hub, Section::Resources),
        ["plexus://one/plexus://two/file:///readme", "file:///readme"]
    );
    let params = json!({"uri": "plexus://two/file:///readme"});
    let calling = call(&two.hub, "resources/read", &params);
    let contents = json!({"contents": [{"uri": "file:///readme", "text": "x"}]});
    answered(calling, &two.two, "resources/read", contents).await;
    assert_eq!(two.one_got().await, [""; 0]);
}

/// Instructions are joined under their servers' names; servers without instructions are left out.
#[tokio::test]
async fn instructions_are_joined() {
    let mut instructed = offer(STATELESS);
    instructed.instructions = Some("Work first.".to_owned());
    let two = Pair::of(&instructed, &offer(LEGACY)).await;
    let instructions = two.hub.catalogue().borrow().instructions.clone();
    assert_eq!(instructions.as_deref(), Some("# one\n\nWork first."));
}

/// C11: every name is valid and at most 64 characters long, and leads
/// back to its tool, whatever the server calls it.
#[tokio::test]
async fn names_are_legal_and_lead_back() {
    let long = "l".repeat(100);
    let names = ["a.b/c", "a b c", "a_b_c", "日本", &long, "mcp__two__work"];
    let first = Offer::tools(LEGACY, names.map(tool));
    let two = Pair::of(&first, &offer(LEGACY)).await;
    let shown = keys(&two.hub, Section::Tools);
    assert_eq!(shown.len(), names.len() + 2);
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    for name in &shown {
        assert!(
            name.len() <= MAX_NAME_CHARS && name.chars().all(is_legal),
            "{name}"
        );
    }
    for (shown, own) in shown.iter().zip(names) {
        let calling = call(&two.hub, "tools/call", &json!({"name": shown}));
        let (params, _) = answered(calling, &two.one, "tools/call", json!({"content": []})).await;
        assert_eq!(params["name"], own, "{shown}");
    }
    let calling = call(&two.hub, "tools/call", &json!({"name": "mcp__two__work"}));
    answered(calling, &two.two, "tools/call", json!({"content": []})).await;
}

/// A tool that guesses another's name affects neither that tool nor the rest.
#[tokio::test]
async fn a_tool_that_guesses_a_shown_name_does_not_affect_routing() {
    let long = "l".repeat(100);
    let honest = StdioServer::new(&Offer::tools(LEGACY, [tool(&long)])).await;
    let hub = empty_hub();
    hub.set_members(vec![upstream("one", &honest)]).await;
    within("the server", hub.connect_all()).await;
    let shown = keys(&hub, Section::Tools).remove(0);
    let guessed = shown.strip_prefix("one__").unwrap();

    let guessing = Offer::tools(LEGACY, [tool(guessed), tool(&long)]);
    let two = Pair::of(&guessing, &offer(LEGACY)).await;
    let tools = keys(&two.hub, Section::Tools);
    assert_eq!(tools.len(), 4, "{tools:?}");
    assert_eq!(tools[0], shown);
    for (name, own) in [(&tools[0], guessed), (&tools[1], long.as_str())] {
        let calling = call(&two.hub, "tools/call", &json!({"name": name}));
        let (params, _) = answered(calling, &two.one, "tools/call", json!({"content": []})).await;
        assert_eq!(params["name"], own);
    }
}

/// An invalid tool is quarantined with the reason; its server and all others go on.
#[tokio::test]
async fn a_quarantined_tool_does_not_affect_other_tools() {
    let bad = json!({"name": "bad", "inputSchema": {"type": "nonsense"}});
    let offering = Offer::tools(LEGACY, [tool("good"), bad]);
    let two = Pair::of(&offering, &offer(LEGACY)).await;
    assert_eq!(
        keys(&two.hub, Section::Tools),
        ["one__good", "two__work", "two__rest"]
    );
    let status = two.hub.status();
    let quarantined = &status[0].report.as_ref().unwrap().quarantined;
    assert_eq!(quarantined[0].name, "bad");
    assert!(!quarantined[0].reason.is_empty());
    let refused = outcome(&two.hub, "tools/call", &json!({"name": "one__bad"})).await;
    assert_eq!(refused, Err(Fault::UnknownTool("one__bad".to_owned())));
    assert_eq!(two.one_got().await, [""; 0]);
}

/// S001-64, C31: the result or error of a server reaches the caller unchanged.
#[tokio::test]
async fn errors_reach_the_caller_as_they_are() {
    let two = Pair::alike(LEGACY).await;
    let (mut calling, _events) = call(&two.hub, "tools/call", &json!({"name": "two__work"}));
    let request = during(&mut calling, two.two.received("tools/call")).await;
    let error = json!({"code": -32050, "message": "no paper", "data": {"tray": 2}});
    two.two.refuse(&request, error).await;
    let refused = within("the refusal", calling).await;
    let Err(Fault::Upstream(error)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!((error.code, error.message.as_str()), (-32050, "no paper"));
    assert_eq!(error.data.expect("its data").as_str(), r#"{"tray":2}"#);

    let failed = json!({"content": [{"type": "text", "text": "no ink"}], "isError": true});
    let calling = call(&two.hub, "tools/call", &json!({"name": "two__work"}));
    let (_, result) = answered(calling, &two.two, "tools/call", failed.clone()).await;
    assert_eq!(result, failed);
}
