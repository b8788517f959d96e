//! A hub with servers in this process, and clients that call it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plexus_mcp_core::{
    Builder, Call, CallToolResult, Context, Event, EventSender, Fault, Implementation, Json,
    LocalService, NoArguments, Object, Peer, Presence, Principal, Raw, Resource, ResourceContents,
    Service, Tool, Updates,
};
use plexus_mcp_hub::{Hub, MemberKind, MemberSpec, manage};
use plexus_mcp_protocol::Revision;
use plexus_mcp_protocol::messages::ClientCapabilities;
use plexus_testkit::within;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub(crate) fn raw(value: &Value) -> Raw {
    Raw::encode(value).unwrap()
}

/// A server with one tool, whose result the test sets, and which counts its calls.
#[derive(Clone)]
pub(crate) struct Weather {
    pub(crate) service: LocalService,
    pub(crate) degrees: Arc<AtomicU64>,
    pub(crate) calls: Arc<AtomicU64>,
}

/// Above this value the tool fails.
pub(crate) const BROKEN: u64 = 1000;

impl Weather {
    pub(crate) fn new() -> Self {
        let degrees = Arc::new(AtomicU64::new(20));
        let calls = Arc::new(AtomicU64::new(0));
        let builder = LocalService::builder("weather", "1.0.0");
        let builder = measuring("in the shade", builder, &degrees, &calls);
        let (read, structured) = (Arc::clone(&degrees), Arc::clone(&degrees));
        let builder = builder
            .tool(
                Tool::new("structured"),
                move |_: NoArguments, _: Context| {
                    let degrees = structured.load(Ordering::SeqCst);
                    async move { Json(degrees_object(degrees)) }
                },
            )
            .resource(
                Resource::new("weather://today", "today")
                    .mime_type("text/plain")
                    .description("How warm it is"),
                move |uri: String, _: Context| {
                    let degrees = read.load(Ordering::SeqCst);
                    async move { ResourceContents::text(uri, format!("{degrees} degrees")) }
                },
            )
            .resource(
                Resource::new("weather://map", "map"),
                async |uri: String, _: Context| {
                    ResourceContents::blob(uri, b"hello").mime_type("image/png")
                },
            );
        Self {
            service: builder.build().unwrap(),
            degrees,
            calls,
        }
    }

    pub(crate) fn becomes(&self, degrees: u64) {
        self.degrees.store(degrees, Ordering::SeqCst);
        self.service.resource_updated("weather://today");
    }

    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    /// Changes the definition of its tool.
    pub(crate) fn redefine(&self) {
        let (degrees, calls) = (&self.degrees, &self.calls);
        let redefined = |builder: Builder| {
            measuring("in the sun", builder.remove_tool("measure"), degrees, calls)
        };
        self.service.edit(redefined).unwrap();
    }
}

#[derive(serde::Serialize, schemars::JsonSchema)]
pub(crate) struct Degrees {
    degrees: u64,
}

fn degrees_object(degrees: u64) -> Degrees {
    Degrees { degrees }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Place {
    place: Option<String>,
}

fn measuring(
    description: &str,
    builder: Builder,
    degrees: &Arc<AtomicU64>,
    calls: &Arc<AtomicU64>,
) -> Builder {
    let (degrees, calls) = (Arc::clone(degrees), Arc::clone(calls));
    let tool = Tool::new("measure").description(description);
    builder.tool(tool, move |Place { place }: Place, _: Context| {
        calls.fetch_add(1, Ordering::SeqCst);
        let degrees = degrees.load(Ordering::SeqCst);
        let place = place.unwrap_or_else(|| "here".to_owned());
        async move {
            match degrees {
                BROKEN.. => CallToolResult::error("the thermometer is broken"),
                degrees => CallToolResult::text(format!("{degrees} degrees {place}")),
            }
        }
    })
}

/// A hub with the weather server and an empty server.
pub(crate) async fn hub(weather: &Weather) -> Hub {
    let hub = Hub::new(Implementation::new("hub", "1.0.0"));
    let local = |name: &str, service: LocalService| {
        MemberSpec::new(name, MemberKind::Local(Arc::new(service)), [1; 32])
    };
    let bare = LocalService::builder("bare", "1.0.0")
        .tool(Tool::new("sit"), async |_: NoArguments, _: Context| "done")
        .build()
        .unwrap();
    hub.set_members(vec![
        manage::member(&hub).unwrap(),
        local("weather", weather.service.clone()),
        local("bare", bare),
    ])
    .await;
    hub
}

/// A client of the hub.
#[derive(Clone)]
pub(crate) struct Client {
    hub: Hub,
    pub(crate) peer: Arc<Peer>,
    pub(crate) presence: Presence,
    /// Its answer to questions.
    answer: Option<Value>,
}

impl Client {
    pub(crate) fn of(hub: &Hub) -> Self {
        Self::new(hub, ClientCapabilities::none(), None, None)
    }

    pub(crate) fn named(hub: &Hub, name: &str) -> Self {
        let info = raw(&json!({"name": name, "version": "1.0.0"}));
        Self::new(hub, ClientCapabilities::none(), Some(info), None)
    }

    /// A client whose user answers questions of the policy like this.
    pub(crate) fn answering(hub: &Hub, answer: &str) -> Self {
        let able = ClientCapabilities::from_raw(&raw(&json!({"elicitation": {"form": {}}})));
        let answer = json!({"action": "accept", "content": {"answer": answer}});
        Self::new(hub, able.unwrap(), None, Some(answer))
    }

    fn new(
        hub: &Hub,
        capabilities: ClientCapabilities,
        info: Option<Raw>,
        answer: Option<Value>,
    ) -> Self {
        let presence = Presence::new();
        let revision = Revision::NEWEST_HANDSHAKE;
        let peer = Peer::new(revision, capabilities, info, Principal::anonymous());
        Self {
            hub: hub.clone(),
            peer: Arc::new(peer.present(presence.clone())),
            presence,
            answer,
        }
    }

    /// A client whose calls cannot be correlated (stateless era).
    pub(crate) fn stateless(hub: &Hub) -> Self {
        let mut client = Self::of(hub);
        let mut peer = Peer::clone(&client.peer);
        peer.presence = None;
        client.peer = Arc::new(peer);
        client
    }

    pub(crate) async fn request(&self, method: &str, params: &Value) -> Result<Value, Fault> {
        let (events, mut queue) = EventSender::channel(Arc::clone(&self.peer), false, None);
        let call = Call::new(
            method,
            Object::parse(&raw(params)).unwrap(),
            events,
            CancellationToken::new(),
        );
        let answering = async {
            while let Some(event) = queue.recv().await {
                if let Event::Ask(ask) = event {
                    ask.answer(Ok(raw(self
                        .answer
                        .as_ref()
                        .expect("no question is expected"))));
                }
            }
        };
        let (result, ()) = tokio::join!(self.hub.call(call), answering);
        result.map(|result| result.decode().unwrap())
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<Value, Fault> {
        let params = json!({"name": tool, "arguments": arguments});
        within(tool, self.request("tools/call", &params)).await
    }

    /// The structured result of a call that must succeed.
    pub(crate) async fn structured(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments).await.unwrap();
        assert_ne!(result["isError"], true, "{result}");
        result["structuredContent"].clone()
    }

    /// The text of a call that must succeed.
    pub(crate) async fn text(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await.unwrap();
        assert_ne!(result["isError"], true, "{result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// The error text of a call that must fail.
    pub(crate) async fn failure(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await.unwrap();
        assert_eq!(result["isError"], true, "{result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// The blocks that are added to the result of an unrelated tool.
    pub(crate) async fn news(&self) -> Vec<String> {
        let result = self.call("bare__sit", json!({})).await.unwrap();
        let blocks = result["content"].as_array().unwrap();
        assert_eq!(blocks[0]["text"], "done");
        let news = blocks[1..].iter();
        news.map(|block| block["text"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Subscribes, and returns the id.
    pub(crate) async fn subscribe(&self, tool: &str, arguments: Value) -> String {
        let result = self.structured(tool, arguments).await;
        assert_eq!(result["subscribed"], true);
        assert_eq!(result.as_object().unwrap().len(), 2, "{result}");
        result["subscriptionId"].as_str().unwrap().to_owned()
    }

    /// The updates of a subscription.
    pub(crate) async fn listen(&self, id: &str) -> Updates {
        let listening = self
            .hub
            .subscribe(&self.peer, &format!("subscription://{id}"));
        within("the subscription", listening).await.unwrap()
    }

    /// The report of a subscription.
    pub(crate) async fn report(&self, id: &str) -> Result<Value, Fault> {
        let uri = format!("subscription://{id}");
        let read = self.request("resources/read", &json!({"uri": uri})).await?;
        let text = read["contents"][0]["text"].as_str().unwrap();
        Ok(serde_json::from_str(text).unwrap())
    }
}

/// Waits for a change, with a long timeout, because time may be paused.
pub(crate) async fn hears(updates: &mut Updates) {
    let change = tokio::time::timeout(Duration::from_mins(5), updates.next()).await;
    change.expect("a change").expect("the subscription goes on");
}
