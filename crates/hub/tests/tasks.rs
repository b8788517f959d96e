//! The number of tasks per upstream server.

#![expect(clippy::unwrap_used, reason = "a failing test panics")]

use plexus_mcp_client::{Definition, HttpTarget, Program, Target};
use plexus_mcp_core::{Client, Implementation};
use plexus_mcp_hub::{Hub, MemberKind, MemberSpec};
use plexus_mcp_protocol::{Era, Revision};
use plexus_testkit::server::{HttpServer, Offer, Reply, Script, StdioServer, Step, tool};
use plexus_testkit::within;
use serde_json::{Value, json};

/// Enough for a supervisor, a connection, the hub's own, and either the standard error of a process or
/// the session of a caller over HTTP.
const MAX_TASKS: usize = 4;
const SERVERS: usize = 6;

/// The result of a tool call.
fn called(revision: Revision) -> Value {
    match revision.era() {
        Era::Handshake => json!({"content": []}),
        Era::Stateless => json!({"content": [], "resultType": "complete"}),
    }
}

fn alive() -> usize {
    tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks()
}

/// Connects members with these targets, calls the tool of each, and waits until they use at most
/// [`MAX_TASKS`] each. Tasks of the handshake and of the call end a moment later.
async fn assert_few_tasks(targets: Vec<Target>) {
    let servers = targets.len();
    let hub = Hub::new(Implementation::new("hub", "1.0.0"));
    let before = alive();
    let most = before + MAX_TASKS * servers;
    let members = (0..).zip(targets).map(|(number, target): (u8, _)| {
        let definition = Definition::new(target);
        let kind = MemberKind::Upstream(Box::new(definition));
        MemberSpec::new(format!("s{number}"), kind, [number; 32])
    });
    hub.set_members(members.collect()).await;
    hub.connect_all().await;
    let client = Client::new(hub.clone());
    for number in 0..servers {
        let call = client.call_tool(&format!("s{number}__a"), json!({}));
        within("the result", call.into_future()).await.unwrap();
    }
    let few = async {
        while alive() > most {
            tokio::task::yield_now().await;
        }
    };
    within("no more tasks than are allowed", few).await;
    assert!(alive() > before, "they are counted");
    hub.close().await;
}

#[tokio::test]
async fn a_program_takes_at_most_four_tasks() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut programs = Vec::new();
        let mut targets = Vec::new();
        for _ in 0..SERVERS {
            let script = Script::from(&Offer::tools(revision, [tool("a")]))
                .on("tools/call", [Step::Result(called(revision))]);
            let program = StdioServer::new(script).await;
            let arguments = program.arguments().iter().cloned();
            let command = Program::new(StdioServer::command()).args(arguments);
            targets.push(Target::Stdio(command));
            programs.push(program);
        }
        assert_few_tasks(targets).await;
    }
}

#[tokio::test]
async fn a_server_over_http_takes_at_most_four_tasks() {
    // The servers run on a runtime of their own, so that their tasks are not counted.
    let elsewhere = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut servers = Vec::new();
        let mut targets = Vec::new();
        for _ in 0..SERVERS {
            let offer = Offer::tools(revision, [tool("a")]);
            let server = HttpServer::start(move |request| {
                let reply = match request.mcp() {
                    "tools/call" => Reply::json(&request.result(&called(revision))),
                    _ => request.reply_from(&offer),
                };
                // The HTTP client keeps other connections for some seconds, each with a task.
                reply.with_header("connection", "close")
            });
            let server = elsewhere.spawn(server).await.unwrap();
            targets.push(Target::Http(HttpTarget::new(server.url().parse().unwrap())));
            servers.push(server);
        }
        assert_few_tasks(targets).await;
    }
    elsewhere.shutdown_background();
}
