//! The verification steps V1 to V10 of document S001 and its table of bad input, from configuration
//! files to a hub that clients use.

#![expect(clippy::unwrap_used, reason = "a failing test panics")]

use std::collections::HashSet;
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use plexus_mcp_client::{Affinity, ServerState};
use plexus_mcp_config::{self as config, Action, ConfigProblem, FetchedSecrets, Locations, Rule};
use plexus_mcp_core::{
    Call, Context, Event, EventSender, Fault, Implementation, LocalService, NoArguments, Object,
    Peer, Principal, Raw, Section, Service, Tool,
};
use plexus_mcp_hub::policy::Policy;
use plexus_mcp_hub::{Hub, MemberKind, MemberSpec, MemberStatus, manage};
use plexus_mcp_protocol::Revision;
use plexus_mcp_protocol::messages::ClientCapabilities;
use plexus_testkit::server::{HttpServer, Offer, Reply, Script, StdioServer, Step, Stream, tool};
use plexus_testkit::within;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// A hub with a built-in tool, the tools that manage servers, and the servers of a project's file.
struct Project {
    hub: Hub,
    problems: Vec<ConfigProblem>,
}

impl Project {
    /// A project with these servers in its `.mcp.json`.
    async fn with(servers: Value) -> Self {
        let text = json!({"mcpServers": servers}).to_string();
        Self::of(Some(&text)).await
    }

    /// A project with this file, or with none.
    async fn of(file: Option<&str>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        if let Some(text) = file {
            fs::write(directory.path().join(".mcp.json"), text).unwrap();
        }
        let locations = Locations {
            project_dir: directory.path().to_owned(),
            ..Locations::default()
        };
        let loaded = config::load(&locations, &|_| None);
        let hub = Hub::new(Implementation::new("hub", "1.0.0"));
        let builtin = LocalService::builder("builtin", "1.0.0")
            .tool(Tool::new("sit"), async |_: NoArguments, _: Context| "done")
            .build()
            .unwrap();
        let mut builtin = MemberSpec::new("builtin", MemberKind::Local(Arc::new(builtin)), [1; 32]);
        builtin.plain_names = true;
        let mut members = vec![builtin, manage::member(&hub).unwrap()];
        for entry in loaded.servers {
            let mut definition = entry
                .definition(&FetchedSecrets::new(), &config::Limits::default())
                .unwrap();
            definition.timeouts.probe = Duration::from_secs(10);
            // The scripted server over HTTP+SSE keeps the stream of one session.
            definition.affinity = Affinity::Shared;
            let kind = MemberKind::Upstream(Box::new(definition));
            let mut member = MemberSpec::new(entry.name.clone(), kind, entry.fingerprint());
            member.auto_restart = entry.auto_restart;
            members.push(member);
        }
        hub.set_members(members).await;
        within("the servers", hub.connect_all()).await;
        Self {
            hub,
            problems: loaded.problems,
        }
    }

    fn tools(&self) -> Vec<String> {
        let catalogue = self.hub.catalogue().borrow().clone();
        let entries = catalogue.list(Section::Tools).entries().iter();
        let names = entries.map(|entry| entry.key.to_string());
        names
            .filter(|name| !MANAGING.contains(&name.as_str()))
            .collect()
    }

    fn status(&self, name: &str) -> MemberStatus {
        let mut members = self.hub.status().into_iter();
        members.find(|member| &*member.name == name).unwrap()
    }

    /// Calls a tool as a client that answers questions like this, if it can be asked; returns how
    /// often it was asked.
    async fn call_as(
        &self,
        tool: &str,
        arguments: Value,
        answer: Option<&str>,
    ) -> (Result<Value, Fault>, usize) {
        let capabilities = match answer {
            Some(_) => json!({"elicitation": {"form": {}}}),
            None => json!({}),
        };
        let capabilities = ClientCapabilities::from_raw(&Raw::encode(&capabilities).unwrap());
        let revision = Revision::NEWEST_STATELESS;
        let peer = Peer::new(
            revision,
            capabilities.unwrap(),
            None,
            Principal::anonymous(),
        );
        let (events, mut queue) = EventSender::channel(Arc::new(peer), false, None);
        let params = json!({"name": tool, "arguments": arguments});
        let params = Object::parse(&Raw::encode(&params).unwrap()).unwrap();
        let call = Call::new("tools/call", params, events, CancellationToken::new());
        let mut asked = 0;
        let answering = async {
            while let Some(event) = queue.recv().await {
                if let Event::Ask(ask) = event {
                    asked += 1;
                    let content = json!({"action": "accept", "content": {"answer": answer}});
                    ask.answer(Ok(Raw::encode(&content).unwrap()));
                }
            }
        };
        let calling = async { tokio::join!(self.hub.call(call), answering).0 };
        let outcome = within(tool, calling).await;
        (outcome.map(|result| result.decode().unwrap()), asked)
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<Value, Fault> {
        self.call_as(tool, arguments, None).await.0
    }
}

const MANAGING: [&str; 6] = [
    "ListMcpResources",
    "ReadMcpResource",
    "SubscribeMcpResource",
    "UnsubscribeMcpResource",
    "SubscribePolling",
    "UnsubscribePolling",
];

fn done() -> Value {
    json!({"content": [{"type": "text", "text": "done"}]})
}

/// A server with one tool, which answers.
fn worker() -> Script {
    let offer = Offer::tools(Revision::V2024_11_05, [tool("work")]);
    Script::from(&offer).on("tools/call", [Step::Result(done())])
}

/// How a server is written in a file.
fn entry(server: &StdioServer) -> Value {
    json!({"command": StdioServer::command(), "args": server.arguments()})
}

/// V1 (S001-69): a server that a file names is started, its tools are found and can be called.
#[tokio::test]
async fn v1_tools_of_a_program_are_found_and_called() {
    let server = StdioServer::new(worker()).await;
    let project = Project::with(json!({"files": entry(&server)})).await;
    assert!(project.problems.is_empty(), "{:?}", project.problems);
    assert_eq!(project.tools(), ["files__work", "sit"]);
    let result = project.call("files__work", json!({"path": "a"})).await;
    assert_eq!(result.unwrap(), done());
    let process = server.process().await;
    let call = process.received("tools/call").await;
    assert_eq!(call["params"]["name"], "work");
    assert_eq!(call["params"]["arguments"], json!({"path": "a"}));
}

/// V2 (S001-70): the same over HTTP+SSE.
#[tokio::test]
async fn v2_tools_over_http_and_sse_are_found_and_called() {
    let offer = Offer::tools(Revision::V2024_11_05, [tool("work")]);
    let stream = Mutex::new(None::<Stream>);
    let server = HttpServer::start(move |request| {
        let mut stream = stream.lock().unwrap();
        if request.method == Method::GET {
            let (reply, writer) = Reply::stream();
            writer.write_now("event: endpoint\ndata: /messages\n\n");
            *stream = Some(writer);
            return reply;
        }
        let result = match request.mcp() {
            "tools/call" => Some(done()),
            method => offer.answer(method).ok(),
        };
        if let (Some(result), Some(stream)) = (result, stream.as_ref()) {
            stream.say_now(&request.result(&result));
        }
        Reply::status(202)
    })
    .await;
    let servers = json!({"remote": {"type": "sse", "url": server.url()}});
    let project = Project::with(servers).await;
    assert_eq!(project.tools(), ["remote__work", "sit"]);
    let result = project.call("mcp__remote__work", json!({})).await;
    assert_eq!(result.unwrap(), done());
}

/// V3 (S001-71): tools of servers are listed beside the built-in ones, with their servers'
/// descriptions.
#[tokio::test]
async fn v3_tools_of_servers_stand_beside_built_in_ones() {
    let schema = json!({"type": "object", "properties": {"title": {"type": "string"}}});
    let issue = json!({"name": "create_issue", "description": "Creates an issue",
        "inputSchema": schema, "vendor": 1});
    let server = StdioServer::new(&Offer::tools(Revision::V2024_11_05, [issue])).await;
    let project = Project::with(json!({"github": entry(&server)})).await;
    assert_eq!(project.tools(), ["github__create_issue", "sit"]);
    let catalogue = project.hub.catalogue().borrow().clone();
    let shown = catalogue.list(Section::Tools).get("github__create_issue");
    let shown: Value = shown.unwrap().definition.decode().unwrap();
    assert_eq!(shown["description"], "Creates an issue");
    assert_eq!(shown["inputSchema"], schema);
    assert_eq!(shown["vendor"], 1);
}

/// V4 (S001-72): several clients of the hub, such as sub-agents, see the same tools and use them
/// concurrently.
#[tokio::test]
async fn v4_several_use_the_same_tools_at_once() {
    let script = Script::from(&Offer::tools(Revision::V2024_11_05, [tool("work")]));
    let server = StdioServer::new(script).await;
    let project = Project::with(json!({"files": entry(&server)})).await;
    let process = server.process().await;
    let answering = async {
        let first = process.received("tools/call").await;
        let second = process.received("tools/call").await;
        process
            .reply(
                &second,
                json!({"content": [], "to": second["params"]["arguments"]}),
            )
            .await;
        process
            .reply(
                &first,
                json!({"content": [], "to": first["params"]["arguments"]}),
            )
            .await;
    };
    let (agent, sub_agent, ()) = tokio::join!(
        project.call("files__work", json!({"who": "agent"})),
        project.call("files__work", json!({"who": "sub-agent"})),
        answering
    );
    assert_eq!(agent.unwrap()["to"]["who"], "agent");
    assert_eq!(sub_agent.unwrap()["to"]["who"], "sub-agent");
}

/// V5 (S001-73): without a client that asks, the user is asked before a tool of a server is called.
#[tokio::test]
async fn v5_calls_ask_for_permission() {
    let server = StdioServer::new(worker()).await;
    let project = Project::with(json!({"files": entry(&server)})).await;
    project
        .hub
        .set_policy(Policy::new(&config::Policy::default()));
    let (made, asked) = project
        .call_as("files__work", json!({}), Some("once"))
        .await;
    assert_eq!((made.unwrap(), asked), (done(), 1));
    let (refused, asked) = project.call_as("files__work", json!({}), Some("no")).await;
    assert_eq!(
        (refused.unwrap()["isError"].clone(), asked),
        (json!(true), 1)
    );
    let (unasked, asked) = project.call_as("files__work", json!({}), None).await;
    assert_eq!(
        (unasked.unwrap()["isError"].clone(), asked),
        (json!(true), 0)
    );
}

/// V6 (S001-74): a rule with a glob allows calls without asking.
#[tokio::test]
async fn v6_a_rule_with_a_glob_allows_calls() {
    let server = StdioServer::new(worker()).await;
    let project = Project::with(json!({"files": entry(&server)})).await;
    let mut settings = config::Policy::default();
    settings
        .rules
        .push(Rule::new("mcp__*", Action::Allow, "plexus.toml"));
    project.hub.set_policy(Policy::new(&settings));
    let (made, asked) = project.call_as("files__work", json!({}), Some("no")).await;
    assert_eq!((made.unwrap(), asked), (done(), 0));
}

/// V7 (S001-75): a misconfigured server is a warning, and does not affect the others.
#[tokio::test]
async fn v7_a_misconfigured_server_costs_only_itself() {
    let server = StdioServer::new(worker()).await;
    let project = Project::with(json!({
        "wrong": {"command": 7},
        "absent": {"command": "/no/such/program"},
        "files": entry(&server),
    }))
    .await;
    assert_eq!(project.problems.len(), 1);
    let problem = project.problems[0].to_string();
    assert!(
        problem.contains("wrong") && problem.contains("command"),
        "{problem}"
    );
    let status = project.status("absent").status.unwrap();
    assert_eq!(status.state, ServerState::Failed);
    assert!(status.reason.unwrap().contains("/no/such/program"));
    assert_eq!(
        project.call("files__work", json!({})).await.unwrap(),
        done()
    );
}

/// V8 (S001-76), S001-66: no program outlives the hub, be it closed or dropped.
#[tokio::test]
async fn v8_programs_end_with_the_hub() {
    for closes in [true, false] {
        let servers = [
            StdioServer::new(worker()).await,
            StdioServer::new(worker()).await,
        ];
        let entries = json!({"one": entry(&servers[0]), "two": entry(&servers[1])});
        let project = Project::with(entries).await;
        let processes = [servers[0].process().await, servers[1].process().await];
        if closes {
            within("the end", project.hub.close()).await;
        } else {
            drop(project);
        }
        for process in processes {
            process.ended().await;
        }
    }
}

/// V9 (S001-77), S001-49: resources of a server are listed and read by tools.
#[tokio::test]
async fn v9_resources_of_a_server_are_listed_and_read() {
    let mut offer =
        Offer::new(Revision::V2024_11_05).declaring("resources", json!({"listChanged": true}));
    offer
        .resources
        .push(json!({"uri": "file:///a", "name": "a", "size": 3}));
    let contents = json!({"contents": [{"uri": "file:///a", "text": "abc"}]});
    let script = Script::from(&offer).on("resources/read", [Step::Result(contents.clone())]);
    let server = StdioServer::new(script).await;
    let project = Project::with(json!({"files": entry(&server)})).await;
    let listed = project.call("ListMcpResources", json!({})).await.unwrap();
    let listed: Value =
        serde_json::from_str(listed["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(
        listed,
        json!([{"uri": "file:///a", "name": "a", "server": "files"}])
    );
    let read = json!({"server": "files", "uri": "file:///a"});
    let read = project.call("ReadMcpResource", read).await.unwrap();
    assert_eq!(read["structuredContent"], contents);
}

/// V10 (S001-78): the status has the connected servers, and the number of tools of each.
#[tokio::test]
async fn v10_the_status_counts_tools() {
    let one = StdioServer::new(worker()).await;
    let offer = Offer::tools(Revision::V2024_11_05, [tool("a"), tool("b"), tool("c")]);
    let three = StdioServer::new(&offer).await;
    let project = Project::with(json!({"one": entry(&one), "three": entry(&three)})).await;
    for (name, tools) in [("one", 1), ("three", 3)] {
        let status = project.status(name);
        assert_eq!(status.tools.entries().len(), tools);
        assert_eq!(status.status.unwrap().state, ServerState::Connected);
        assert!(status.enabled);
    }
}

/// S001-59: without a file there are no servers and no problems.
#[tokio::test]
async fn a_missing_file_is_no_fault() {
    let project = Project::of(None).await;
    assert!(project.problems.is_empty());
    assert_eq!(project.tools(), ["sit"]);
}

/// S001-60: a file that is not JSON is one warning with the position, and the rest works.
#[tokio::test]
async fn a_broken_file_is_one_warning() {
    for text in [
        "{",
        "",
        "[]",
        "{\"mcpServers\": 1}",
        "\u{feff}{\"mcpServers\": }",
    ] {
        let project = Project::of(Some(text)).await;
        assert_eq!(
            project.problems.len(),
            1,
            "{text:?}: {:?}",
            project.problems
        );
        let problem = project.problems[0].to_string();
        assert!(problem.contains(".mcp.json"), "{problem}");
        assert_eq!(problem.lines().count(), 1, "{problem}");
        assert_eq!(project.tools(), ["sit"]);
    }
}

/// S001-61, S001-62: a program that does not start, one that exits at once and one that refuses the
/// handshake affect only themselves, and their status says why.
#[tokio::test]
async fn servers_that_fail_at_the_start_cost_only_themselves() {
    let refusing = [Step::Error(json!({"code": -32000, "message": "not today"}))];
    let refusing = Script::silent()
        .on("initialize", refusing.clone())
        .on("server/discover", refusing);
    let refusing = StdioServer::new(refusing).await;
    let good = StdioServer::new(worker()).await;
    let project = Project::with(json!({
        "absent": {"command": "/no/such/program"},
        "brief": {"command": "sh", "args": ["-c", "echo 'no license' >&2; exit 3"]},
        "refusing": entry(&refusing),
        "good": entry(&good),
    }))
    .await;
    for (name, says) in [
        ("absent", "/no/such/program"),
        ("brief", "no license"),
        ("refusing", "not today"),
    ] {
        let status = project.status(name).status.unwrap();
        assert_eq!(status.state, ServerState::Failed, "{name}");
        let reason = status.reason.unwrap();
        assert!(reason.contains(says), "{name}: {reason}");
    }
    assert_eq!(project.tools(), ["good__work", "sit"]);
    assert_eq!(project.call("good__work", json!({})).await.unwrap(), done());
}

/// S001-63, C37: a server whose list fails stays, without tools, and says why.
#[tokio::test]
async fn a_failed_list_leaves_the_server_without_tools() {
    let failing = [Step::Error(json!({"code": -32603, "message": "no index"}))];
    let server = StdioServer::new(worker().on("tools/list", failing)).await;
    let project = Project::with(json!({"files": entry(&server)})).await;
    let status = project.status("files");
    assert!(status.tools.entries().is_empty());
    let connection = status.status.unwrap();
    assert_eq!(connection.state, ServerState::Connected);
    assert!(connection.reason.unwrap().contains("no index"));
    assert_eq!(project.tools(), ["sit"]);
}

/// S001-64: an error of a call is returned to its caller.
#[tokio::test]
async fn a_failed_call_is_told_to_its_caller() {
    let error = Step::Error(json!({"code": -32001, "message": "disk full"}));
    let server = StdioServer::new(worker().on("tools/call", [error])).await;
    let project = Project::with(json!({"files": entry(&server)})).await;
    let Err(Fault::Upstream(error)) = project.call("files__work", json!({})).await else {
        panic!("the call must fail");
    };
    assert_eq!(error.message, "disk full");
}

/// S001-65, C35: with `auto_restart: false`, a crash fails the call in flight, is shown in the
/// status, and restarts nothing.
#[tokio::test]
async fn a_crash_fails_the_call_and_restarts_nothing() {
    let crash = [Step::Complain("out of memory".to_owned()), Step::Exit(9)];
    let server = StdioServer::new(worker().on("tools/call", crash)).await;
    let good = StdioServer::new(worker()).await;
    let mut files = entry(&server);
    files["auto_restart"] = json!(false);
    let project = Project::with(json!({"files": files, "good": entry(&good)})).await;
    let first = project.call("files__work", json!({})).await;
    assert!(first.is_err(), "{first:?}");
    server.process().await.ended().await;
    let failed = async {
        while project.status("files").state() != ServerState::Failed {
            tokio::task::yield_now().await;
        }
    };
    within("the failure", failed).await;
    let again = project.call("files__work", json!({})).await;
    let again = again.unwrap_err().to_string();
    assert!(again.contains("plexus servers reconnect files"), "{again}");
    server.assert_not_started_again().await;
    let status = project.status("files").status.unwrap();
    assert_eq!(status.state, ServerState::Failed);
    assert!(status.reason.unwrap().contains("out of memory"));
    assert_eq!(project.call("good__work", json!({})).await.unwrap(), done());
}

/// S001-32: the six management tools are listed besides those of servers, and no others.
#[tokio::test]
async fn the_tools_that_manage_servers_are_there_besides() {
    let server = StdioServer::new(worker()).await;
    let project = Project::with(json!({"files": entry(&server)})).await;
    let catalogue = project.hub.catalogue().borrow().clone();
    let entries = catalogue.list(Section::Tools).entries().iter();
    let shown: HashSet<_> = entries.map(|entry| entry.key.to_string()).collect();
    let managing = MANAGING.map(str::to_owned);
    let own = ["sit".to_owned(), "files__work".to_owned()];
    let all: HashSet<_> = managing.into_iter().chain(own).collect();
    assert_eq!(shown, all);
}
