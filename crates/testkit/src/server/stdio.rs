//! A scripted stdio server, and the test's connection to it.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::record::Record;
use super::{MARK, Script, Step, built};
use crate::timeout::within;

/// A scripted stdio server, which may be started several times.
#[derive(Debug)]
pub struct StdioServer {
    listener: TcpListener,
    arguments: Vec<String>,
}

impl StdioServer {
    /// Creates a server that runs `script`.
    pub async fn new(script: impl Into<Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.unwrap_or_else(|error| panic!("no port: {error}"));
        let address = listener.local_addr();
        let address = address.unwrap_or_else(|error| panic!("no address: {error}"));
        let script = serde_json::to_string(&script.into());
        let script = script.unwrap_or_else(|error| panic!("no script: {error}"));
        Self {
            listener,
            arguments: vec![address.to_string(), script],
        }
    }

    /// The path of the program to start.
    pub fn command() -> String {
        built("scripted-server").display().to_string()
    }

    /// The arguments of the program.
    pub fn arguments(&self) -> &[String] {
        &self.arguments
    }

    /// Waits for the next process that is started.
    pub async fn process(&self) -> Process {
        let accepted = within("the server to be started", self.listener.accept()).await;
        let (stream, _) = accepted.unwrap_or_else(|error| panic!("no line to it: {error}"));
        let (reading, writing) = stream.into_split();
        let mut lines = BufReader::new(reading).lines();
        let first = within("its first words", lines.next_line()).await;
        let pid = first.ok().flatten().and_then(|pid| pid.parse().ok());
        let received = Record::default();
        let mut reader = JoinSet::new();
        reader.spawn(read(lines, received.clone()));
        Process {
            pid: pid.unwrap_or_else(|| panic!("the server did not say its number")),
            received,
            directions: Mutex::new(writing),
            _reader: reader,
        }
    }

    /// Fails if a further process was started.
    pub async fn assert_not_started_again(&self) {
        let waiting = tokio::time::timeout(std::time::Duration::ZERO, self.listener.accept()).await;
        assert!(waiting.is_err(), "the server was started once more");
    }
}

/// A running server.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    received: Record<Value>,
    directions: Mutex<OwnedWriteHalf>,
    _reader: JoinSet<()>,
}

impl Process {
    /// The process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits for the next message with `method`.
    pub async fn received(&self, method: &str) -> Value {
        let wanted = |message: &Value| message["method"] == method;
        self.received.take(method, wanted).await
    }

    /// Waits for the answer to the server's own request `id`.
    pub async fn answer(&self, id: &Value) -> Value {
        let wanted = |message: &Value| message["id"] == *id && message["method"].is_null();
        self.received.take("an answer", wanted).await
    }

    /// All messages that the server had read when it last answered, and maybe more.
    pub async fn all(&self) -> Vec<Value> {
        if !self.received.is_finished() {
            self.direct(&Step::Mark).await.ok();
            self.received.take_or_end(|message| message == MARK).await;
        }
        let mut all = self.received.all();
        all.retain(|message| message != MARK);
        all
    }

    /// The methods of all requests and notifications.
    pub async fn methods(&self) -> Vec<String> {
        let method = |message: &Value| message["method"].as_str().map(str::to_owned);
        self.all().await.iter().filter_map(method).collect()
    }

    /// Makes the server perform a step now.
    pub async fn perform(&self, step: Step) {
        let told = self.direct(&step).await;
        assert!(told.is_ok(), "the server has ended");
    }

    /// Sends a message.
    pub async fn say(&self, message: Value) {
        self.perform(Step::Say(message)).await;
    }

    /// Answers a request.
    pub async fn reply(&self, request: &Value, result: Value) {
        let message = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
        self.say(message).await;
    }

    /// Answers a request with an error.
    pub async fn refuse(&self, request: &Value, error: Value) {
        let message = json!({"jsonrpc": "2.0", "id": request["id"], "error": error});
        self.say(message).await;
    }

    /// Waits until the process has ended.
    pub async fn ended(&self) {
        self.received.finished("the server to end").await;
    }

    async fn direct(&self, step: &Step) -> std::io::Result<()> {
        let line = serde_json::to_string(step).unwrap_or_default() + "\n";
        let mut directions = self.directions.lock().await;
        directions.write_all(line.as_bytes()).await
    }
}

async fn read(mut lines: tokio::io::Lines<BufReader<OwnedReadHalf>>, received: Record<Value>) {
    while let Ok(Some(line)) = lines.next_line().await {
        received.add(serde_json::from_str(&line).unwrap_or(Value::String(line)));
    }
    received.finish();
}
