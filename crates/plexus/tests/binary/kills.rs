//! Servers that are killed again and again while calls are in flight.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plexus_mcp_protocol::Revision;
use plexus_testkit::{Client, ForeignProcess, ListeningServer, StdioClient, within};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::net::TcpSocket;
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinSet, block_in_place};

use crate::home::Home;
use crate::process::{DATA_DIR, Plexus};
use crate::servers::{USER, built};
use crate::status::server as server_entry;

const ROUNDS: u64 = 100;
const CALLERS: usize = 4;
/// How long a call takes at the server, in milliseconds: so long that calls are in flight when the
/// server is killed.
const CALL_MS: u64 = 10;
/// In this round the gateway has all connections, threads and buffers that it needs. From then on, it
/// must not grow by more than the following tolerances, which are far below one leak for each round.
const WARM_ROUND: u64 = 10;
const MAX_MORE_DESCRIPTORS: usize = 12;
const MAX_MORE_CHILDREN: usize = 2;
const MAX_MORE_MEMORY_KIB: u64 = 6 * 1024;
const SUCCESS_QUEUE_CAPACITY: usize = 1024;

/// C35: Plexus starts the program again. Calls in flight fail once, and no call is executed twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_killed_a_hundred_times() {
    let fixture = Fixture::new();
    let server = Server::program(&fixture, &[]);
    let (plexus, callers) = over_http(&fixture);
    let pid = plexus.pid();
    kill_under_load(fixture, server, pid, callers, || ends(plexus)).await;
}

/// The same with one client, whose four calls at a time share one pipe.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_killed_a_hundred_times_under_a_stdio_client() {
    let fixture = Fixture::new();
    let server = Server::program(&fixture, &["--stateless"]);
    let client = over_stdio(&fixture);
    let pid = client.pid().unwrap();
    let client = Client::stdio(client, Revision::V2025_11_25, json!({}));
    kill_under_load(fixture, server, pid, vec![(client, CALLERS)], || ()).await;
}

/// The test starts the server again. A server of the handshake era loses its sessions each time.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_over_http_is_killed_a_hundred_times() {
    let fixture = Fixture::new();
    let server = Server::http(&fixture, &[]).await;
    let (plexus, callers) = over_http(&fixture);
    let pid = plexus.pid();
    kill_under_load(fixture, server, pid, callers, || ends(plexus)).await;
}

/// The listening socket outlives each process, and the next process is there at once. So a request
/// that Plexus sent twice would be executed twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_an_inherited_socket_is_killed_a_hundred_times() {
    let fixture = Fixture::new();
    let server = Server::on_inherited_socket(&fixture);
    let (plexus, callers) = over_http(&fixture);
    let pid = plexus.pid();
    kill_under_load(fixture, server, pid, callers, || ends(plexus)).await;
}

/// C35: with `auto_restart: false`, a killed server has failed, until the command
/// that the error names brings it back.
#[tokio::test(flavor = "multi_thread")]
async fn without_auto_restart_a_killed_server_needs_a_command() {
    for is_http in [false, true] {
        let fixture = Fixture::new();
        let mut server = if is_http {
            Server::http(&fixture, &["--stateless"]).await
        } else {
            Server::program(&fixture, &[])
        };
        fixture.configure(&server, &json!({"auto_restart": false}));
        let (plexus, mut callers) = over_http(&fixture);
        let (mut client, _) = callers.remove(0);
        client.open().await;
        let first = call_once(&mut client, 1).await.unwrap();
        let process = ForeignProcess::of(&first.to_string());
        kill(first);
        process.ended().await;

        // A server over HTTP is found lost by a call.
        call_once(&mut client, 2).await.unwrap_err();
        let failure = call_once(&mut client, 3).await.unwrap_err();
        let command = ["servers", "reconnect", "counting"];
        for part in ["\"counting\"", "auto_restart", &command.join(" ")] {
            assert!(failure.contains(part), "{part}: {failure}");
        }
        server.restart().await;
        call_once(&mut client, 4).await.unwrap_err();
        let status = fixture.home.start(&["status", "--json"]).end();
        let status: Value = serde_json::from_str(&status.stdout[0]).unwrap();
        assert_eq!(
            server_entry(&status, "counting")["state"],
            "failed",
            "{status}"
        );
        let reconnected = fixture.home.start(&command).end();
        assert_eq!(reconnected.code, Some(0), "{reconnected:?}");
        let second = call_once(&mut client, 5).await.unwrap();
        assert_ne!(first, second);
        assert_eq!(fixture.executed(), HashMap::from([(1, 1), (5, 1)]));
        ends(plexus);
    }
}

/// The result of a call: the process that executed it, or the error text.
async fn call_once(client: &mut Client, number: u64) -> Result<u32, String> {
    let exchange = client.exchange("tools/call", call(number)).await;
    outcome(&exchange.response)
}

/// Kills the server in each round after at least one call was answered, while `callers` make calls,
/// and checks every call.
async fn kill_under_load(
    fixture: Fixture,
    mut server: Server,
    plexus: u32,
    callers: Vec<(Client, usize)>,
    end: impl FnOnce(),
) {
    let (state, states) = watch::channel(State::default());
    let (failures, mut failed) = watch::channel(0);
    let (successes, mut answered) = mpsc::channel(SUCCESS_QUEUE_CAPACITY);
    let numbers = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for (client, calls_at_once) in callers {
        let load = Load {
            client,
            states: states.clone(),
            successes: successes.clone(),
            failures: failures.clone(),
            numbers: Arc::clone(&numbers),
        };
        tasks.spawn(load.run(calls_at_once));
    }

    let mut processes = HashMap::new();
    let mut warm = None;
    for round in 0..=ROUNDS {
        let recovery = async {
            while let Some(pid) = answered.recv().await {
                if !processes.contains_key(&pid) {
                    return pid;
                }
            }
            panic!("the callers have ended");
        };
        let pid = within("an answer of a new process", recovery).await;
        processes.insert(pid, ForeignProcess::of(&pid.to_string()));
        state.send_modify(|state| state.is_recovered = true);
        if round == WARM_ROUND {
            warm = Some(Usage::of(plexus));
        }
        if round < ROUNDS {
            state.send_modify(|state| {
                state.kills += 1;
                state.is_recovered = false;
            });
            kill(pid);
            if let Http::OwnSocket { .. } = server.http {
                // A call that comes while an attempt to connect is in progress gets its outcome. So no
                // attempt may be in progress when the server is back.
                let all = (round + 1) * CALLERS as u64;
                let all_failed = failed.wait_for(|failures| *failures == all);
                drop(
                    within("a failure of each caller", all_failed)
                        .await
                        .unwrap(),
                );
            }
            server.restart().await;
            state.send_modify(|state| state.restarts += 1);
        }
    }
    Usage::of(plexus).assert_flat(&warm.unwrap());
    for child in children(plexus) {
        processes.insert(child, ForeignProcess::of(&child.to_string()));
    }
    state.send_modify(|state| state.is_over = true);
    drop(successes);
    while answered.recv().await.is_some() {}
    let mut calls = Vec::new();
    while let Some(made) = tasks.join_next().await {
        calls.extend(made.unwrap());
    }
    block_in_place(end);
    drop(server);
    for (_, process) in processes {
        process.ended().await;
    }
    check(&calls, &fixture.executed());
}

/// Every call has one outcome; the server has executed no call twice, and each successful one.
fn check(calls: &[(u64, Result<u32, String>)], executed: &HashMap<u64, usize>) {
    let twice: Vec<_> = executed.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "executed twice: {twice:?}");
    let mut failures: HashMap<&str, usize> = HashMap::new();
    for (number, outcome) in calls {
        match outcome {
            Ok(_) => assert!(executed.contains_key(number), "{number} was not executed"),
            Err(text) => *failures.entry(text).or_default() += 1,
        }
    }
    let made: HashSet<_> = calls.iter().map(|(number, _)| *number).collect();
    assert_eq!(made.len(), calls.len(), "a call has two outcomes");
    let failed: usize = failures.values().sum();
    eprintln!("{} calls, {failed} failed: {failures:#?}", calls.len());
    for text in failures.keys() {
        let names_the_server = text.contains("\"counting\"");
        let says_what_happened = ["killed by signal 9", " broke: ", "cannot connect to"];
        assert!(
            names_the_server && says_what_happened.iter().any(|part| text.contains(part)),
            "{text}"
        );
    }
    assert!(
        failed as u64 >= ROUNDS / 2,
        "the server was killed while idle"
    );
}

/// The progress of the kills, which the callers observe.
#[derive(Debug, Default, Clone)]
struct State {
    kills: u64,
    /// How many killed processes were replaced, as far as that is up to the test.
    restarts: u64,
    /// Whether a process answered that was started after the last kill.
    is_recovered: bool,
    is_over: bool,
}

/// A client that makes calls until the state is over.
struct Load {
    client: Client,
    states: watch::Receiver<State>,
    successes: mpsc::Sender<u32>,
    failures: watch::Sender<u64>,
    numbers: Arc<AtomicU64>,
}

/// A caller makes one call at a time.
#[derive(Default)]
struct Caller {
    /// The last kill that one of its calls failed by.
    last_failure: u64,
}

struct InFlight {
    caller: Caller,
    number: u64,
    /// The first kill that the call may fail by.
    first_kill: u64,
}

impl Load {
    async fn run(mut self, calls_at_once: usize) -> Vec<(u64, Result<u32, String>)> {
        self.client.open().await;
        let mut idle: Vec<Caller> = (0..calls_at_once).map(|_| Caller::default()).collect();
        let mut in_flight: HashMap<String, InFlight> = HashMap::new();
        let mut calls = Vec::new();
        loop {
            let state = self.states.borrow().clone();
            if !state.is_over {
                for caller in idle.drain(..) {
                    let number = self.numbers.fetch_add(1, Ordering::Relaxed);
                    let id = self.client.begin("tools/call", call(number)).await;
                    let first_kill = state.kills + u64::from(state.is_recovered);
                    let call = InFlight {
                        caller,
                        number,
                        first_kill,
                    };
                    in_flight.insert(id.to_string(), call);
                }
            }
            if in_flight.is_empty() {
                break;
            }
            let is_response = |message: &Value| message.get("method").is_none();
            let response = self.client.expect("a response", is_response).await;
            let ended = in_flight.remove(&response["id"].to_string());
            let mut ended = ended.expect("one response for each call");
            let outcome = outcome(&response);
            match &outcome {
                // After the last round, successes are not counted.
                Ok(pid) => self.successes.send(*pid).await.unwrap_or(()),
                Err(text) => {
                    let kill = ended.first_kill.max(ended.caller.last_failure + 1);
                    let kills = self.states.borrow().kills;
                    assert!(
                        kill <= kills,
                        "call {} failed without a kill, after {kills} of them: {text}",
                        ended.number
                    );
                    ended.caller.last_failure = kill;
                    self.failures.send_modify(|failures| *failures += 1);
                    let restarted = |state: &State| state.restarts == state.kills;
                    let restart = self.states.wait_for(restarted);
                    drop(within("the restart", restart).await.unwrap());
                }
            }
            calls.push((ended.number, outcome));
            idle.push(ended.caller);
        }
        let rest = self.client.close().await;
        let is_response = |message: &Value| message.get("method").is_none();
        assert!(!rest.iter().any(is_response), "a second response: {rest:?}");
        calls
    }
}

fn call(number: u64) -> Value {
    // The calls of several callers do not end at the same time.
    let ms = CALL_MS + number % 5;
    json!({"name": "counting__count", "arguments": {"n": number, "ms": ms}})
}

/// The process that executed a call, or the error text.
fn outcome(response: &Value) -> Result<u32, String> {
    let result = &response["result"];
    if let Some(pid) = result["structuredContent"]["pid"].as_u64() {
        return Ok(pid.try_into().unwrap());
    }
    let text = result["content"][0]["text"].as_str();
    let text = text.or(response["error"]["message"].as_str());
    let text = text.unwrap_or_else(|| panic!("neither a result nor an error: {response}"));
    Err(text.to_owned())
}

/// A home directory, and the file with the numbers of executed calls.
struct Fixture {
    home: Home,
}

impl Fixture {
    fn new() -> Self {
        let home = Home::with(&[]);
        home.write("executed", "");
        Self { home }
    }

    fn file(&self) -> String {
        self.home.path("executed").display().to_string()
    }

    /// Configures the server with further settings.
    fn configure(&self, server: &Server, settings: &Value) {
        let mut definition = server.definition.clone();
        let settings = settings.as_object().unwrap().clone();
        definition.as_object_mut().unwrap().extend(settings);
        let file = json!({"mcpServers": {"counting": definition}});
        self.home.write(USER, &file.to_string());
    }

    /// How often each call was executed.
    fn executed(&self) -> HashMap<u64, usize> {
        let mut executed = HashMap::new();
        for line in self.home.read("executed").lines() {
            *executed.entry(line.parse().unwrap()).or_default() += 1;
        }
        executed
    }
}

/// The server of the gateway.
struct Server {
    definition: Value,
    /// The arguments of the program.
    arguments: Vec<String>,
    http: Http,
}

/// The process of the server, if the test starts it.
enum Http {
    None,
    OwnSocket {
        process: Option<ListeningServer>,
        /// Keeps the port from being assigned to others while the server is down.
        _port: TcpSocket,
    },
    InheritedSocket {
        process: Child,
        socket: TcpListener,
    },
}

impl Server {
    fn new(fixture: &Fixture, definition: Value, options: &[&str], http: Http) -> Self {
        let file = fixture.file();
        let arguments = [&[file.as_str()], options].concat();
        let server = Self {
            definition,
            arguments: arguments.into_iter().map(str::to_owned).collect(),
            http,
        };
        fixture.configure(&server, &json!({}));
        server
    }

    fn program(fixture: &Fixture, options: &[&str]) -> Self {
        let file = fixture.file();
        let arguments = [&[file.as_str()], options].concat();
        let definition = json!({"command": built("counting-server"), "args": arguments});
        Self::new(fixture, definition, options, Http::None)
    }

    async fn http(fixture: &Fixture, options: &[&str]) -> Self {
        let port = TcpSocket::new_v4().unwrap();
        port.set_reuseaddr(true).unwrap();
        port.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = port.local_addr().unwrap().to_string();
        let options = [&["--http", address.as_str()], options].concat();
        let http = Http::OwnSocket {
            process: None,
            _port: port,
        };
        let mut server = Self::new(fixture, at(&address), &options, http);
        server.restart().await;
        server
    }

    fn on_inherited_socket(fixture: &Fixture) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap().to_string();
        let options = ["--inherit", "--stateless"];
        let mut server = Self::new(fixture, at(&address), &options, Http::None);
        let process = inheriting(&socket, &server.arguments);
        server.http = Http::InheritedSocket { process, socket };
        server
    }

    /// Starts the server after a kill, unless Plexus does that.
    async fn restart(&mut self) {
        match &mut self.http {
            Http::None => {}
            Http::OwnSocket { process, .. } => {
                if let Some(killed) = process.take() {
                    assert_eq!(killed.exit().await.code, None);
                }
                let arguments: Vec<_> = self.arguments.iter().map(String::as_str).collect();
                let started = ListeningServer::start(built("counting-server"), &arguments).await;
                *process = Some(started);
            }
            Http::InheritedSocket { process, socket } => {
                *process = inheriting(socket, &self.arguments);
            }
        }
    }
}

/// The definition of a server over HTTP.
fn at(address: &str) -> Value {
    json!({"type": "http", "url": format!("http://{address}/mcp")})
}

/// Starts the server with this socket as its standard input.
#[expect(clippy::disallowed_methods, reason = "it is killed when it is dropped")]
fn inheriting(socket: &TcpListener, arguments: &[String]) -> Child {
    let socket = OwnedFd::from(socket.try_clone().unwrap());
    Command::new(built("counting-server"))
        .args(arguments)
        .stdin(socket)
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// A gateway over HTTP, and clients of both eras with one call at a time.
fn over_http(fixture: &Fixture) -> (Plexus, Vec<(Client, usize)>) {
    let plexus = fixture.home.start(&["serve", "--http", "127.0.0.1:0"]);
    let url = plexus.wait_for_stderr("listening on ");
    let client = |caller: usize| {
        let revision = [Revision::V2025_11_25, Revision::NEWEST_STATELESS][caller % 2];
        (Client::http(&url, revision, json!({})), 1)
    };
    let callers = (0..CALLERS).map(client).collect();
    (plexus, callers)
}

/// A gateway over stdio.
fn over_stdio(fixture: &Fixture) -> StdioClient {
    let home = format!("HOME={}", fixture.home.path("").display());
    let data = format!("{DATA_DIR}={}", fixture.home.path("data").display());
    let plexus = env!("CARGO_BIN_EXE_plexus");
    StdioClient::spawn("env", &[&home, &data, plexus, "serve", "--stdio"])
}

fn ends(mut plexus: Plexus) {
    plexus.terminate();
    let ended = plexus.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

fn kill(pid: u32) {
    let pid = Pid::from_raw(pid.try_into().unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

/// What a process uses.
#[derive(Debug)]
struct Usage {
    descriptors: usize,
    children: usize,
    memory_kib: u64,
}

impl Usage {
    fn of(pid: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let memory = memory.and_then(|kib| kib.trim().strip_suffix(" kB"));
        Self {
            descriptors: fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count(),
            children: children(pid).len(),
            memory_kib: memory.unwrap().parse().unwrap(),
        }
    }

    fn assert_flat(&self, warm: &Self) {
        eprintln!("{warm:?} in round {WARM_ROUND}, {self:?} in round {ROUNDS}");
        assert!(
            self.descriptors <= warm.descriptors + MAX_MORE_DESCRIPTORS
                && self.children <= warm.children + MAX_MORE_CHILDREN
                && self.memory_kib <= warm.memory_kib + MAX_MORE_MEMORY_KIB,
            "{self:?} after {warm:?}"
        );
    }
}

/// The children of a process, including those that have ended but were not waited for.
fn children(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap();
    let ids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    ids.filter(|id| parent_of(*id) == Some(parent)).collect()
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program before it may contain spaces.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}
