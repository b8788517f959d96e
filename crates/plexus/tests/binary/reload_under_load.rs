//! A hundred changes of the configuration file while fifty calls are in flight.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use plexus_mcp_protocol::Revision;
use plexus_testkit::Client;
use plexus_testkit::server::{Offer, Process, Script, StdioServer, tool};
use serde_json::{Value, json};
use tokio::task::{JoinSet, block_in_place, yield_now};

use crate::gateway::{definition, file};
use crate::home::Home;

const FILE: &str = ".mcp.json";
const ROUNDS: usize = 25;
const CALLERS: usize = 50;

/// S001-36, S004-13, S004-53, C38, C35: each of 25 rounds writes the file four times: truncated,
/// invalid, with a server added or removed, and with a server changed. Fifty calls are in flight
/// meanwhile, and are answered after that. Each call gets its answer; no call reaches a server
/// twice; no process is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_call_is_lost_or_made_twice() {
    let mut steady = Fixture::new().await;
    let mut changing = Fixture::new().await;
    let mut passing = Fixture::new().await;
    let rounds = [&steady, &changing, &passing].map(|fixture| definition(&fixture.server));
    let rounds: Vec<Round> = (0..=ROUNDS)
        .map(|round| Round::new(round, &rounds))
        .collect();

    let home = Home::with(&[(FILE, &rounds[0].changed)]);
    let mut plexus = home.start(&["serve", "--http", "127.0.0.1:0"]);
    let url = plexus.wait_for_stderr("listening on ");
    steady.starts().await;
    changing.starts().await;
    let over = Arc::new(AtomicBool::new(false));
    let mut callers = start_callers(&url, &over);
    for (number, round) in rounds.iter().enumerate().skip(1) {
        home.write(FILE, &round.half);
        // Some of the truncated files exist for long enough to be read.
        if number.is_multiple_of(3) {
            block_in_place(|| plexus.wait_for_stderr(".mcp.json:1:"));
        }
        home.write(FILE, &round.mistaken);
        home.write(FILE, &round.passing);
        home.write(FILE, &round.changed);
        changing.starts().await;
        if has_passing(number) {
            passing.starts().await;
        }
        changing.answers().await;
        steady.answers().await;
    }

    over.store(true, Ordering::Relaxed);
    let mut made = Vec::new();
    while !callers.is_empty() {
        changing.answers().await;
        steady.answers().await;
        while let Some(calls) = callers.try_join_next() {
            made.extend(calls.unwrap());
        }
        yield_now().await;
    }
    plexus.terminate();
    assert_eq!(plexus.wait().code, Some(0));
    let mut received: HashMap<u64, usize> = HashMap::new();
    for fixture in [steady, changing, passing] {
        for n in fixture.ends().await {
            *received.entry(n).or_default() += 1;
        }
    }
    let twice = received.values().filter(|times| **times > 1).count();
    assert_eq!(twice, 0, "calls were made twice");
    assert_eq!(received.len(), made.len(), "calls were lost");
    assert!(made.len() > ROUNDS * CALLERS / 2, "{} calls", made.len());
}

/// The file contents of one round.
struct Round {
    half: String,
    mistaken: String,
    passing: String,
    changed: String,
}

impl Round {
    fn new(number: usize, [steady, changing, passing]: &[Value; 3]) -> Self {
        let servers = |changed: usize, has_passing: bool| {
            let mut changing = changing.clone();
            changing["env"] = json!({"CHANGED": changed.to_string()});
            let mut servers = vec![("steady", steady.clone()), ("changing", changing)];
            servers.extend(has_passing.then(|| ("passing", passing.clone())));
            servers
        };
        let before = number.saturating_sub(1);
        let mut mistaken = servers(before, has_passing(before));
        mistaken.push(("mistaken", json!({"command": 7})));
        let changed = file(&servers(number, has_passing(number)));
        Self {
            half: changed.chars().take(changed.len() / 2).collect(),
            mistaken: file(&mistaken),
            passing: file(&servers(before, has_passing(number))),
            changed,
        }
    }
}

fn has_passing(round: usize) -> bool {
    round % 2 == 1
}

/// A server that answers calls when the test says so.
struct Fixture {
    server: StdioServer,
    /// All processes of the server so far.
    processes: Vec<Process>,
    answered: HashSet<u64>,
}

impl Fixture {
    async fn new() -> Self {
        let offer = Offer::tools(Revision::V2025_06_18, [tool("work")]);
        Self {
            server: StdioServer::new(Script::from(&offer).ignoring("tools/call")).await,
            processes: Vec::new(),
            answered: HashSet::new(),
        }
    }

    async fn starts(&mut self) {
        self.processes.push(self.server.process().await);
    }

    /// Answers every pending call of every process.
    async fn answers(&mut self) {
        for process in &self.processes {
            for call in calls(process).await {
                let n = number(&call);
                if self.answered.insert(n) {
                    let content = json!([{"type": "text", "text": n.to_string()}]);
                    process.reply(&call, json!({ "content": content })).await;
                }
            }
        }
    }

    /// The numbers of all received calls, after all processes have ended.
    async fn ends(self) -> Vec<u64> {
        let mut numbers = Vec::new();
        for process in &self.processes {
            process.ended().await;
            numbers.extend(calls(process).await.iter().map(number));
        }
        self.server.assert_not_started_again().await;
        numbers
    }
}

async fn calls(process: &Process) -> Vec<Value> {
    let mut messages = process.all().await;
    messages.retain(|message| message["method"] == "tools/call");
    messages
}

fn number(call: &Value) -> u64 {
    call["params"]["arguments"]["n"].as_u64().unwrap()
}

/// Clients of both eras that send one call after the other until `over` is set. Each returns the
/// numbers of its calls.
fn start_callers(url: &str, over: &Arc<AtomicBool>) -> JoinSet<Vec<u64>> {
    let numbers = Arc::new(AtomicU64::new(0));
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let (url, over, numbers) = (url.to_owned(), Arc::clone(over), Arc::clone(&numbers));
        let revision = [Revision::V2025_11_25, Revision::NEWEST_STATELESS][caller % 2];
        let tool = ["steady__work", "changing__work"][caller / 2 % 2];
        callers.spawn(async move {
            let mut client = Client::http(&url, revision, json!({}));
            client.open().await;
            let mut made = Vec::new();
            while !over.load(Ordering::Relaxed) {
                let n = numbers.fetch_add(1, Ordering::Relaxed);
                let result = client.call(tool, json!({ "n": n })).await;
                assert_eq!(result["content"][0]["text"], n.to_string(), "{result}");
                made.push(n);
            }
            made
        });
    }
    callers
}
