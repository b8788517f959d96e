//! Many parked calls in a bridge to a legacy server: they are resumed in any order and from other
//! connections, abandoned, or retried with a changed state (TRANSLATION §5.4, §8).

#![cfg(target_os = "linux")]
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking"
)]

use std::path::Path;

use plexus_mcp_protocol::Revision;
use plexus_testkit::{Client, ListeningServer};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const SERVER: &str = env!("CARGO_BIN_EXE_conformance-server");
const ANY_PORT: &str = "127.0.0.1:0";

const CALLS: usize = 200;
const ABANDONED: usize = CALLS / 10;
const TAMPERED: usize = CALLS / 10;
/// How many clients resume the calls that one client began.
const CLIENTS: usize = 9;

/// The answer timeout, in seconds: enough to begin and resume all calls on a busy machine. The test
/// waits for it to end.
const ANSWER_TIME: &str = "15";
/// The number of warm-up rounds, after which the memory of the bridge hardly grows.
const WARM_UP: usize = 2;
/// The tolerated growth of the bridge's memory, in bytes.
const SLACK: u64 = 8 * 1024 * 1024;

const LEGACY: [&str; 4] = ["--era", "legacy", "--log-level", "plexus_mcp_server=debug"];
/// The log message of the server for each call that is cancelled.
const CANCELLED: &str = "cancelled by the client";

#[tokio::test]
async fn of_a_server_over_http() {
    let arguments = [&["--http", ANY_PORT], &LEGACY[..]].concat();
    let mut server = ListeningServer::start(SERVER, &arguments).await;
    let bridge = bridge(&[server.url()]).await;
    let taken = take_all(&bridge).await;
    server.wait_for_log(CANCELLED, ABANDONED + TAMPERED).await;
    taken.is_over(&bridge).await;
    end(bridge).await;
    assert_eq!(cancelled(&end(server).await), ABANDONED + TAMPERED);
}

#[tokio::test]
async fn of_a_server_on_a_pipe() {
    let server = [&["--", SERVER, "--stdio"], &LEGACY[..]].concat();
    let mut bridge = bridge(&server).await;
    // After the first question of the server, calls of different callers use different lanes.
    let alone = park(&bridge, 1).await;
    resume(&bridge, &alone, &[CallOutcome::Completed]).await;
    let taken = take_all(&bridge).await;
    // The bridge logs the standard error output of its server.
    bridge.wait_for_log(CANCELLED, ABANDONED + TAMPERED).await;
    taken.is_over(&bridge).await;
    assert_eq!(cancelled(&end(bridge).await), ABANDONED + TAMPERED);
}

/// How the test ends a parked call.
#[derive(Debug, Clone, Copy, PartialEq)]
enum CallOutcome {
    Completed,
    Abandoned,
    /// The retry is changed; the number selects the change.
    Tampered(usize),
}

/// A parked call: its parameters, its request state, and the key of its question.
struct Parked {
    params: Value,
    state: String,
    question: String,
}

/// All calls, after those that are not abandoned were retried.
struct Taken {
    /// The bridge's memory before the calls, in bytes; `peak` is its memory while all are parked.
    base: u64,
    peak: u64,
    parked: Vec<Parked>,
    outcomes: [CallOutcome; CALLS],
}

impl Taken {
    /// Checks that the bridge has freed the memory of all calls, and rejects retries of abandoned
    /// ones.
    async fn is_over(&self, bridge: &ListeningServer) {
        let Self { base, peak, .. } = *self;
        let left = resident(bridge);
        assert!(
            left <= base + SLACK,
            "the bridge had {base} bytes, with all calls parked {peak}, and keeps {left}"
        );
        let mut client = client(bridge);
        for (number, call) in self.parked.iter().enumerate() {
            if self.outcomes[number] == CallOutcome::Abandoned {
                let params = retry(call, number, CallOutcome::Completed);
                let error = client.error("tools/call", params).await;
                assert_eq!(error, refusal(), "{number}");
            }
        }
        client.close().await;
    }
}

async fn take_all(bridge: &ListeningServer) -> Taken {
    for _ in 0..WARM_UP {
        let parked = park(bridge, CALLS).await;
        resume(bridge, &parked, &[CallOutcome::Completed; CALLS]).await;
    }
    let base = resident(bridge);

    let parked = park(bridge, CALLS).await;
    let peak = resident(bridge);
    let mut outcomes = [CallOutcome::Completed; CALLS];
    let chosen = shuffled(CALLS, 1);
    for (count, &call) in chosen[..ABANDONED + TAMPERED].iter().enumerate() {
        outcomes[call] = if count < ABANDONED {
            CallOutcome::Abandoned
        } else {
            CallOutcome::Tampered(count)
        };
    }
    resume(bridge, &parked, &outcomes).await;
    Taken {
        base,
        peak,
        parked,
        outcomes,
    }
}

/// Begins this many calls, each with its own question, and returns them when all are parked.
async fn park(bridge: &ListeningServer, calls: usize) -> Vec<Parked> {
    let mut client = client(bridge);
    let mut begun = Vec::new();
    for number in 0..calls {
        let arguments = json!({"message": format!("Who is number {number}?")});
        let params = json!({"name": "test_elicitation", "arguments": arguments});
        let id = client.begin("tools/call", params.clone()).await;
        begun.push((id, params));
    }
    let mut parked = Vec::new();
    for (id, params) in begun {
        let response = client.response(&id).await;
        let result = &response["result"];
        assert_eq!(result["resultType"], "input_required", "{response}");
        let questions = result["inputRequests"].as_object().unwrap();
        assert_eq!(questions.len(), 1, "{response}");
        let (question, request) = questions.iter().next().unwrap();
        assert_eq!(request["params"]["message"], params["arguments"]["message"]);
        parked.push(Parked {
            state: result["requestState"].as_str().unwrap().to_owned(),
            question: question.clone(),
            params,
        });
    }
    client.close().await;
    parked
}

/// Retries the calls in a shuffled order, as `outcomes` says. Checks that each correct retry
/// completes with its own answer, and that all others fail with the same error.
async fn resume(bridge: &ListeningServer, parked: &[Parked], outcomes: &[CallOutcome]) {
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| client(bridge)).collect();
    let mut begun = Vec::new();
    let order = shuffled(parked.len(), 2).into_iter();
    for (count, number) in order.enumerate() {
        let (call, outcome) = (&parked[number], outcomes[number]);
        if outcome == CallOutcome::Abandoned {
            continue;
        }
        let client = count % CLIENTS;
        let params = retry(call, number, outcome);
        let id = clients[client].begin("tools/call", params).await;
        begun.push((client, id, number));
    }
    let (mut completed, mut refused) = (0, 0);
    for (client, id, number) in begun {
        let response = clients[client].response(&id).await;
        if outcomes[number] == CallOutcome::Completed {
            let text = response["result"]["content"][0]["text"].as_str();
            let text = text.unwrap_or_else(|| panic!("{number}: {response}"));
            assert!(text.contains("action=accept"), "{number}: {text}");
            assert!(text.contains(&name(number)), "{number}: {text}");
            completed += 1;
        } else {
            assert_eq!(response["error"], refusal(), "{number}");
            refused += 1;
        }
    }
    let count = |wanted: fn(&CallOutcome) -> bool| {
        outcomes.iter().filter(|outcome| wanted(outcome)).count()
    };
    assert_eq!(
        completed,
        count(|outcome| *outcome == CallOutcome::Completed)
    );
    assert_eq!(
        refused,
        count(|outcome| matches!(outcome, CallOutcome::Tampered(_)))
    );
    for client in clients {
        client.close().await;
    }
}

/// The error for a retry with an invalid state. It is the same for every reason.
fn refusal() -> Value {
    json!({"code": -32602, "message": "requestState is invalid or expired"})
}

fn retry(call: &Parked, number: usize, outcome: CallOutcome) -> Value {
    let content = json!({"username": name(number), "email": "someone@example.com"});
    let mut params = call.params.clone();
    params["requestState"] = json!(call.state);
    params["inputResponses"] = json!({&call.question: {"action": "accept", "content": content}});
    let CallOutcome::Tampered(way) = outcome else {
        return params;
    };
    match way % 3 {
        0 => {
            let mut state = call.state.clone().into_bytes();
            let place = way * 7 % state.len();
            state[place] = if state[place] == b'A' { b'B' } else { b'A' };
            params["requestState"] = json!(String::from_utf8(state).unwrap());
        }
        1 => params["requestState"] = json!(call.state.get(1..)),
        _ => params["arguments"] = json!({"message": "Who is somebody else?"}),
    }
    params
}

/// The name in the answer for call `number`. No name is a prefix of another.
fn name(number: usize) -> String {
    format!("number {number}.")
}

fn client(bridge: &ListeningServer) -> Client {
    let capabilities = json!({"elicitation": {"form": {}}});
    Client::http(bridge.url(), Revision::V2026_07_28, capabilities)
}

async fn bridge(server: &[&str]) -> ListeningServer {
    let plexus = Path::new(SERVER).with_file_name("plexus");
    assert!(
        plexus.is_file(),
        "{} is missing: build it with `cargo build --workspace --bins`",
        plexus.display()
    );
    let options = ["bridge", "--http", ANY_PORT, "--log-level", "debug"];
    let time = ["--answer-time", ANSWER_TIME];
    ListeningServer::start(plexus, &[&options, &time[..], server].concat()).await
}

/// Ends a server with SIGTERM, and returns its log.
async fn end(server: ListeningServer) -> String {
    kill_process(pid(&server), Signal::TERM).unwrap();
    let exit = server.exit().await;
    assert_eq!(exit.code, Some(0), "{}", exit.log);
    exit.log
}

fn cancelled(log: &str) -> usize {
    log.matches(CANCELLED).count()
}

/// The resident memory of a server, in bytes.
fn resident(server: &ListeningServer) -> u64 {
    let pid = server.pid().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    kilobytes * 1024
}

fn pid(server: &ListeningServer) -> Pid {
    let id = i32::try_from(server.pid().unwrap()).unwrap();
    Pid::from_raw(id).unwrap()
}

/// The numbers below `count`, in an order that is the same for the same `seed`.
fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let mut numbers: Vec<_> = (0..count).collect();
    let mut state = seed;
    for place in (1..count).rev() {
        // Knuth's MMIX generator.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let other = usize::try_from(state >> 33).unwrap() % (place + 1);
        numbers.swap(place, other);
    }
    numbers
}
