//! Callers as a service sees them: their identity, their presence, and catalogues that differ between
//! callers.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a failing test panics"
)]

use std::sync::{Arc, Mutex};

use plexus_mcp_core::{
    Boxed, Call, Catalogue, Context, Fault, LocalService, NoArguments, Outcome, Peer, Presence,
    Service, Tool, Updates,
};
use plexus_mcp_protocol::Revision;
use plexus_mcp_server::http::{HttpOptions, HttpServer};
use plexus_mcp_server::{Edge, Options, stdio};
use plexus_testkit::{HttpClient, within};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf};
use tokio::io::{WriteHalf, split};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The tools `common` and `secret`, the second of which a client called `guest` is not shown.
struct House {
    everything: LocalService,
    /// The service that guests are shown.
    common: LocalService,
    /// The presence of each caller, in order.
    callers: Arc<Mutex<Vec<Option<Presence>>>>,
}

impl House {
    fn new() -> Arc<Self> {
        let service = |tools: &[&str]| {
            let builder = LocalService::builder("house", "1.0.0");
            let builder = tools.iter().fold(builder, |builder, tool| {
                builder.tool(Tool::new(*tool), async |_: NoArguments, _: Context| "done")
            });
            builder.build().unwrap()
        };
        Arc::new(Self {
            everything: service(&["common", "secret"]),
            common: service(&["common"]),
            callers: Arc::default(),
        })
    }

    fn last_caller(&self) -> Option<Presence> {
        self.callers.lock().unwrap().last().unwrap().clone()
    }
}

impl Service for House {
    fn catalogue(&self) -> watch::Receiver<Arc<Catalogue>> {
        self.everything.catalogue()
    }

    fn catalogue_for(&self, peer: &Peer) -> Option<watch::Receiver<Arc<Catalogue>>> {
        let info: Value = peer.client_info.as_ref()?.decode().unwrap();
        (info["name"] == "guest").then(|| self.common.catalogue())
    }

    fn call(&self, call: Call) -> Boxed<Outcome> {
        let caller = call.peer().presence.clone();
        self.callers.lock().unwrap().push(caller);
        self.everything.call(call)
    }

    fn subscribe(&self, peer: &Arc<Peer>, uri: &str) -> Boxed<Result<Updates, Fault>> {
        self.everything.subscribe(peer, uri)
    }
}

/// A client on a pipe.
struct Pipe {
    input: WriteHalf<DuplexStream>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    server: JoinHandle<std::io::Result<()>>,
}

impl Pipe {
    fn to(house: &Arc<House>) -> Self {
        let edge = Edge::new(Arc::clone(house) as _, Options::default()).unwrap();
        let (near, far) = tokio::io::duplex(64 * 1024);
        #[expect(
            clippy::disallowed_methods,
            reason = "the handle is awaited by the test"
        )]
        let server = tokio::spawn(async move {
            let (input, output) = split(far);
            stdio::serve_on(&edge, input, output).await
        });
        let (output, input) = split(near);
        Self {
            input,
            output: BufReader::new(output).lines(),
            server,
        }
    }

    async fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.input.write_all(line.as_bytes()).await.unwrap();
    }

    async fn receive(&mut self) -> Value {
        let line = within("a message", self.output.next_line()).await;
        serde_json::from_str(&line.unwrap().expect("a message")).unwrap()
    }

    async fn ask(&mut self, message: &Value) -> Value {
        self.send(message).await;
        self.receive().await
    }

    async fn initialize(&mut self, name: &str) {
        self.ask(&initialize(name)).await;
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
    }

    async fn close(self) {
        drop(self.input);
        drop(self.output);
        within("the end", self.server).await.unwrap().unwrap();
    }
}

fn initialize(name: &str) -> Value {
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": name, "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

fn request(method: &str, mut params: Value, stateless: Option<&str>) -> Value {
    if let Some(name) = stateless {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": name, "version": "1"},
        });
    }
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

fn call(stateless: Option<&str>) -> Value {
    request(
        "tools/call",
        json!({"name": "common", "arguments": {}}),
        stateless,
    )
}

fn names(answer: &Value) -> Vec<&str> {
    let tools = answer["result"]["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap()).collect()
}

/// The client of a pipe is present until the pipe closes, in either era.
#[tokio::test]
async fn a_caller_on_a_pipe_is_there_until_it_closes() {
    let house = House::new();
    let mut pipe = Pipe::to(&house);
    pipe.ask(&call(Some("client"))).await;
    let stateless = house.last_caller().expect("it is there");
    pipe.initialize("client").await;
    pipe.ask(&call(None)).await;
    let caller = house.last_caller().expect("it is there");
    assert_eq!(caller, stateless);
    assert!(!caller.is_over());

    let mut other = Pipe::to(&house);
    other.initialize("client").await;
    other.ask(&call(None)).await;
    let another = house.last_caller().expect("it is there");
    assert_ne!(caller, another);
    pipe.close().await;
    within("the end of its presence", caller.over()).await;
    assert!(!another.is_over());
}

/// Over HTTP a caller has a presence only within a session, and it ends with the session.
#[tokio::test]
async fn a_caller_over_http_is_there_until_its_session_ends() {
    let house = House::new();
    let edge = Edge::new(Arc::clone(&house) as _, Options::default()).unwrap();
    let options = HttpOptions::default();
    let server = HttpServer::bind(edge, &["127.0.0.1:0".parse().unwrap()], options).await;
    let server = server.unwrap();
    let url = format!("http://{}{}", server.addresses()[0], server.path());
    let serving = server.run();
    let client = HttpClient::new(&url, Revision::V2025_06_18);
    let calling = async {
        let stateless = client
            .post(&call(Some("client")))
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "common")
            .send()
            .await;
        assert_eq!(stateless.status(), 200);
        assert_eq!(house.last_caller(), None);

        let opened = client.post(&initialize("client")).send().await;
        let id = opened.header("mcp-session-id").unwrap().to_owned();
        let in_session = client
            .with_header("mcp-session-id", &id)
            .with_header("mcp-protocol-version", "2025-06-18");
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        in_session.post(&ready).send().await;
        in_session.post(&call(None)).send().await;
        let caller = house.last_caller().expect("it is there");
        in_session.post(&call(None)).send().await;
        assert_eq!(house.last_caller().as_ref(), Some(&caller));
        assert!(!caller.is_over());
        in_session.delete().send().await;
        within("the end of its presence", caller.over()).await;
    };
    tokio::select! {
        () = calling => {}
        () = serving => {}
    }
}

/// A client is shown its own lists in either era, and told only of what changes in them.
#[tokio::test]
async fn clients_need_not_be_shown_the_same() {
    let house = House::new();
    let mut guest = Pipe::to(&house);
    let mut owner = Pipe::to(&house);
    guest.initialize("guest").await;
    owner.initialize("owner").await;
    let list = |stateless| request("tools/list", json!({}), stateless);
    for _ in 0..2 {
        assert_eq!(names(&guest.ask(&list(None)).await), ["common"]);
        assert_eq!(names(&owner.ask(&list(None)).await), ["common", "secret"]);
        for (name, shown) in [("guest", &["common"][..]), ("owner", &["common", "secret"])] {
            assert_eq!(names(&guest.ask(&list(Some(name))).await), shown);
        }
    }
    house
        .everything
        .edit(|builder| builder.remove_tool("secret"))
        .unwrap();
    let told = owner.receive().await;
    assert_eq!(told["method"], "notifications/tools/list_changed");
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    assert_eq!(guest.ask(&ping).await["id"], 2, "nothing changed for it");
}
