//! Which call a question on a shared connection belongs to, and which calls wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use plexus_testkit::server::{Offer, StdioServer, tool};
use plexus_testkit::within;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::{Caller, LEGACY, Log, asked, connected, during, for_clients, stdio};

fn principal(name: &str) -> Caller {
    Caller {
        principal: Some(name.to_owned()),
        progress: true,
        ..Caller::able(json!({"elicitation": {}}))
    }
}

fn question(id: &str) -> Value {
    let form = json!({"message": id, "requestedSchema": {"type": "object", "properties": {}}});
    json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": form})
}

/// Records that it was woken.
#[derive(Default)]
struct WakeRecorder {
    is_woken: AtomicBool,
    woken: Notify,
}

impl Wake for WakeRecorder {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        self.woken.notify_one();
    }
}

/// SAMP-13: every refusal of a question that belongs to no call of a caller is logged.
#[tokio::test]
async fn refused_questions_are_logged() {
    let log = Log::capture();
    let server = StdioServer::new(&Offer::tools(LEGACY, [tool("a")])).await;
    let upstream = connected(for_clients(stdio(&server))).await;
    let process = server.process().await;
    process.say(question("stray")).await;
    let answer = process.answer(&json!("stray")).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let refused = "refused a question of the server";
    assert!(log.has_warning(&[refused, "elicitation/create", "no call is in flight"]));

    let params = json!({"name": "a"});
    let (mut calling, mut events) = principal("one").call(&upstream, "tools/call", &params);
    let call = during(&mut calling, process.received("tools/call")).await;
    process.say(question("open")).await;
    let _open = asked(&mut calling, &mut events).await;
    process.reply(&call, json!({"content": []})).await;
    within("the result", calling).await.unwrap();
    let answer = process.answer(&json!("open")).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    assert!(log.has_warning(&[refused, "elicitation/create", "has ended"]));
}

/// A question that its caller cannot be asked is refused at once: the call stays in its lane, and
/// does not queue behind a waiting call.
#[tokio::test]
async fn a_call_whose_caller_cannot_be_asked_stays_in_its_lane() {
    let server = StdioServer::new(&Offer::tools(LEGACY, [tool("a")])).await;
    let upstream = connected(for_clients(stdio(&server))).await;
    let process = server.process().await;
    let params = json!({"name": "a"});
    let (mut first, _) = Caller::default().call(&upstream, "tools/call", &params);
    during(&mut first, process.received("tools/call")).await;
    // From now on, calls wait for their lane.
    process.say(question("one")).await;
    during(&mut first, process.answer(&json!("one"))).await;
    let waking = Arc::new(WakeRecorder::default());
    let waker = Waker::from(Arc::clone(&waking));
    let (mut second, _events) =
        Caller::able(json!({"elicitation": {}})).call(&upstream, "tools/call", &params);
    let polled = second.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending(), "it waits for its lane");
    // A further wake comes from the lanes, and not from the timer.
    within("the timer", waking.woken.notified()).await;
    waking.is_woken.store(false, Ordering::SeqCst);
    process.say(question("two")).await;
    let answer = during(&mut first, process.answer(&json!("two"))).await;
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    let is_woken = waking.is_woken.load(Ordering::SeqCst);
    assert!(!is_woken, "the waiting call was told to enter");
}
