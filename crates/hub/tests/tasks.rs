//! The number of tasks per upstream server.

use plexus_mcp_client::{Definition, HttpTarget, Program, Target};
use plexus_mcp_core::Implementation;
use plexus_mcp_hub::{Hub, MemberKind, MemberSpec};
use plexus_mcp_protocol::Revision;
use plexus_testkit::server::{HttpServer, Offer, StdioServer, tool};
use plexus_testkit::within;

/// Enough for a supervisor, a connection, the standard error of a process or the unused connections of
/// an HTTP client, and the hub's own.
const MAX_TASKS: usize = 4;
const SERVERS: usize = 6;

fn alive() -> usize {
    tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks()
}

/// Connects members with these targets, and waits until they use at most [`MAX_TASKS`] each. Tasks
/// of the handshake end a moment later.
async fn assert_few_tasks(targets: Vec<Target>) {
    let hub = Hub::new(Implementation::new("hub", "1.0.0"));
    let before = alive();
    let most = before + MAX_TASKS * targets.len();
    let members = (0..).zip(targets).map(|(number, target): (u8, _)| {
        let definition = Definition::new(target).for_clients();
        let kind = MemberKind::Upstream(Box::new(definition));
        MemberSpec::new(format!("s{number}"), kind, [number; 32])
    });
    hub.set_members(members.collect()).await;
    hub.connect_all().await;
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
            let program = StdioServer::new(&Offer::tools(revision, [tool("a")])).await;
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
            let server = HttpServer::start(move |request| request.reply_from(&offer));
            let server = elsewhere.spawn(server).await.unwrap();
            targets.push(Target::Http(HttpTarget::new(server.url().parse().unwrap())));
            servers.push(server);
        }
        assert_few_tasks(targets).await;
    }
    elsewhere.shutdown_background();
}
