//! Callers that share one stdio server which asks: none waits for another, and none is asked for
//! another.

use std::collections::HashMap;
use std::time::Duration;

use plexus_mcp_protocol::Revision;
use plexus_testkit::server::{Offer, Process, StdioServer, Step, tool};
use plexus_testkit::{Client, HttpClient};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::gateway::{definition, file};
use crate::home::Home;
use crate::process::Plexus;
use crate::servers::{USER, built};

const LEGACY: Revision = Revision::V2025_11_25;
const STATELESS: Revision = Revision::NEWEST_STATELESS;
const CALLERS: usize = 4;
/// Shorter than the time for which calls wait for the calls of other callers once a server has asked
/// during a call. So calls that wait for each other do not all overlap.
const SHORT_CALL_MS: u64 = 300;
/// On a busy machine, four short calls may not overlap the first time.
const MAX_ROUNDS: u64 = 10;
const ECHOES: usize = 3;
/// The names of the clients' tokens.
const ASKED: &str = "asked";
const OTHER: &str = "other";

/// A gateway over HTTP.
struct Gateway {
    _home: Home,
    plexus: Plexus,
    url: String,
    /// The tokens of the clients by name, if the gateway requires tokens.
    tokens: HashMap<&'static str, String>,
}

impl Gateway {
    /// A gateway to `server`. With `with_tokens`, each client has a token, and is a principal, of its
    /// own. Without, all are the same principal.
    fn start(server: &Value, with_tokens: bool) -> Self {
        let home = Home::with(&[(USER, &file(&[("shared", server.clone())]))]);
        let names = [ASKED, OTHER].into_iter().filter(|_| with_tokens);
        let tokens = names.map(|name| {
            let added = home.start(&["token", "add", name]).end();
            (name, added.stdout.concat())
        });
        let tokens = tokens.collect();
        let mut arguments = vec!["serve", "--http", "127.0.0.1:0"];
        arguments.extend(with_tokens.then_some("--require-token"));
        let plexus = home.start(&arguments);
        let url = plexus.wait_for_stderr("listening on ");
        Self {
            _home: home,
            plexus,
            url,
            tokens,
        }
    }

    /// A client that can be asked.
    async fn client(&self, name: &str, revision: Revision) -> Client {
        let mut http = HttpClient::new(&self.url, revision);
        if let Some(token) = self.tokens.get(name) {
            http = http.with_header("authorization", &format!("Bearer {token}"));
        }
        let mut client = Client::over(http, revision, json!({"elicitation": {}, "roots": {}}));
        client.open().await;
        client
    }

    fn end(mut self) {
        self.plexus.terminate();
        assert_eq!(self.plexus.wait().code, Some(0));
    }
}

/// A request for roots outside of any call does not make callers wait for each
/// other.
#[tokio::test(flavor = "multi_thread")]
async fn calls_of_a_server_that_asked_for_roots_overlap() {
    let executed = tempfile::NamedTempFile::new().unwrap();
    let arguments = [executed.path().to_str().unwrap(), "--roots"];
    let server = json!({"command": built("counting-server"), "args": arguments});
    let gateway = Gateway::start(&server, false);
    let mut clients = Vec::new();
    for number in 0..CALLERS {
        let revision = [LEGACY, STATELESS][number % 2];
        clients.push(gateway.client(OTHER, revision).await);
    }
    let count = |ms: u64| json!({"name": "shared__count", "arguments": {"n": 1, "ms": ms}});
    // Only a call shows that the server has the roots.
    while !clients[0].result("tools/call", count(0)).await["structuredContent"]["hasRoots"]
        .as_bool()
        .unwrap()
    {}

    let mut most_in_flight = 0;
    for _ in 0..MAX_ROUNDS {
        most_in_flight = together(&mut clients, &count(SHORT_CALL_MS)).await;
        if most_in_flight == CALLERS {
            break;
        }
    }
    assert_eq!(most_in_flight, CALLERS, "callers wait for each other");
    let began = Instant::now();
    together(&mut clients, &count(1000)).await;
    let lasted = began.elapsed();
    eprintln!("{CALLERS} parallel calls of 1 s took {lasted:?}");
    assert!(lasted < Duration::from_secs(2), "{lasted:?}");
    gateway.end();
}

/// Makes this call for each client at the same time, and returns how many were ever in flight at once.
async fn together(clients: &mut [Client], call: &Value) -> usize {
    let mut ids = Vec::new();
    for client in &mut *clients {
        ids.push(client.begin("tools/call", call.clone()).await);
    }
    let mut most = 0;
    for (client, id) in clients.iter_mut().zip(ids) {
        let response = client.response(&id).await;
        let seen = response["result"]["structuredContent"]["mostInFlight"].as_u64();
        most = most.max(seen.unwrap_or_else(|| panic!("no result: {response}")));
    }
    usize::try_from(most).unwrap()
}

/// A server whose calls the test answers.
async fn asking(with_tokens: bool) -> (Gateway, StdioServer, Process) {
    let offer = Offer::tools(LEGACY, [tool("ask"), tool("echo")]);
    let server = StdioServer::new(&offer).await;
    let gateway = Gateway::start(&definition(&server), with_tokens);
    let process = server.process().await;
    (gateway, server, process)
}

fn question(id: &str) -> Value {
    let form = json!({"message": id, "requestedSchema": {"type": "object", "properties": {}}});
    json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": form})
}

async fn begin(client: &mut Client, process: &Process, tool: &str) -> (Value, Value) {
    let params = json!({"name": format!("shared__{tool}"), "arguments": {}});
    let id = client.begin("tools/call", params).await;
    (id, process.received("tools/call").await)
}

/// The server answers the call, and the client gets the answer.
async fn finish(client: &mut Client, process: &Process, call: &(Value, Value)) {
    process.reply(&call.1, json!({"content": []})).await;
    let response = client.response(&call.0).await;
    assert_eq!(response["result"]["content"], json!([]), "{response}");
}

/// Fails if the client was asked anything that the test did not expect.
async fn was_asked_nothing(client: Client) {
    let rest = client.close().await;
    let asked = rest.iter().find(|message| {
        message["method"] == "elicitation/create" || message["result"]["inputRequests"].is_object()
    });
    assert_eq!(asked, None, "asked for another caller");
}

/// An open question delays calls of another principal by less than a second.
#[tokio::test(flavor = "multi_thread")]
async fn an_echo_is_answered_while_a_question_of_another_principal_is_open() {
    for (asked_revision, other_revision) in [(LEGACY, STATELESS), (STATELESS, LEGACY)] {
        let (gateway, _server, process) = asking(true).await;
        let mut asked = gateway.client(ASKED, asked_revision).await;
        let mut other = gateway.client(OTHER, other_revision).await;
        let open = begin(&mut asked, &process, "ask").await;
        process.say(question("open")).await;
        let parked = if asked.is_stateless() {
            let response = asked.response(&open.0).await;
            assert_eq!(response["result"]["resultType"], "input_required");
            response["result"].clone()
        } else {
            asked.expect_method("elicitation/create").await
        };

        let mut fastest = Duration::MAX;
        for _ in 0..ECHOES {
            let began = Instant::now();
            let echo = begin(&mut other, &process, "echo").await;
            finish(&mut other, &process, &echo).await;
            fastest = fastest.min(began.elapsed());
        }
        eprintln!("{asked_revision}: the fastest of {ECHOES} echoes took {fastest:?}");
        assert!(fastest < Duration::from_secs(1), "{fastest:?}");

        // The question is still open, and its answer still arrives.
        let accepted = json!({"action": "accept", "content": {}});
        let id = if asked.is_stateless() {
            let (key, _) = parked["inputRequests"]
                .as_object()
                .unwrap()
                .iter()
                .next()
                .unwrap();
            let retry = json!({
                "name": "shared__ask", "arguments": {}, "requestState": parked["requestState"],
                "inputResponses": {key: accepted},
            });
            asked.begin("tools/call", retry).await
        } else {
            asked.answer(&parked, accepted).await;
            open.0
        };
        let answer = process.answer(&json!("open")).await;
        assert_eq!(answer["result"]["action"], "accept", "{answer}");
        finish(&mut asked, &process, &(id, open.1)).await;
        was_asked_nothing(asked).await;
        was_asked_nothing(other).await;
        gateway.end();
    }
}

/// A tool asks twice at once, and only its own caller may be asked, with tokens
/// and without.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_asks_twice_at_once_asks_no_other_caller() {
    for with_tokens in [false, true] {
        let (gateway, _server, process) = asking(with_tokens).await;
        let mut asked = gateway.client(ASKED, LEGACY).await;
        let mut other = gateway.client(OTHER, LEGACY).await;
        let ask_twice = |first: &str, second: &str| {
            Step::Write(format!("{}\n{}\n", question(first), question(second)))
        };

        // The other call begins while the questions are open.
        let call = begin(&mut asked, &process, "ask").await;
        process.perform(ask_twice("a", "b")).await;
        let mut questions = Vec::new();
        for _ in 0..2 {
            questions.push(asked.expect_method("elicitation/create").await);
        }
        let echo = begin(&mut other, &process, "echo").await;
        for question in questions {
            let message = question["params"]["message"].as_str().unwrap().to_owned();
            let content = json!({"action": "accept", "content": {"of": message}});
            asked.answer(&question, content).await;
            let answer = process.answer(&json!(message)).await;
            assert_eq!(answer["result"]["content"]["of"], message, "{answer}");
        }
        finish(&mut other, &process, &echo).await;
        finish(&mut asked, &process, &call).await;

        // The other call is running before, so the questions may be of either, and are refused.
        let echo = begin(&mut other, &process, "echo").await;
        let call = begin(&mut asked, &process, "ask").await;
        process.perform(ask_twice("c", "d")).await;
        for id in ["c", "d"] {
            let refusal = process.answer(&json!(id)).await;
            assert_eq!(refusal["error"]["code"], -32602, "{refusal}");
        }
        finish(&mut asked, &process, &call).await;
        finish(&mut other, &process, &echo).await;

        // The other call waits, because the server has asked before.
        let call = begin(&mut asked, &process, "ask").await;
        let params = json!({"name": "shared__echo", "arguments": {}});
        let waiting = other.begin("tools/call", params).await;
        process.perform(ask_twice("e", "f")).await;
        let echo = (waiting, process.received("tools/call").await);
        finish(&mut other, &process, &echo).await;
        was_asked_nothing(other).await;
        finish(&mut asked, &process, &call).await;
        gateway.end();
    }
}
