use plexus_mcp_core::Principal;
use plexus_mcp_wire::{Limits, decode};
use serde_json::{Value, json};

use super::*;
use crate::rpc::in_flight::ResponseReceiver;

fn pending_requests() -> (PendingRequests, mpsc::Receiver<Update>) {
    let (stray, strays) = mpsc::channel(8);
    (PendingRequests::new(stray), strays)
}

/// Delivers a message, on the stream of the request `of` if there is one.
fn deliver(requests: &PendingRequests, message: &Value, of: Option<Number>) {
    let decoded = decode(message.to_string().into(), &Limits::default());
    let Ok(plexus_mcp_wire::Incoming::Single(Ok(message))) = decoded else {
        panic!("{message} is no message");
    };
    requests.take(Incoming::Message { message, of });
}

fn call(requests: &PendingRequests, number: Number, principal: &str) -> ResponseReceiver {
    let caller = Caller::try_from(number).unwrap();
    let traits = Traits::call(caller, &Principal::new(principal), method::TOOLS_CALL);
    requests.expect(number, traits).unwrap()
}

fn question(id: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": {}})
}

/// CAN-03: an entry of a question is removed when the server withdraws it, and not only when its call
/// ends.
#[test]
fn a_withdrawn_question_is_removed() {
    for of in [None, Some(1)] {
        let (requests, _strays) = pending_requests();
        let _receiver = call(&requests, 1, "us");
        deliver(&requests, &question("q"), of);
        assert_eq!(lock(&requests.table).asked.len(), 1);
        let withdrawal = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": "q"}});
        deliver(&requests, &withdrawal, of);
        assert!(lock(&requests.table).asked.is_empty());
    }
}

/// The transport of a call breaks, and it is unknown whether the server executes the call. A question
/// that comes afterwards may be for that call, so it is not put to another principal.
#[test]
fn a_call_whose_transport_broke_may_still_ask() {
    let broken = || LinkError::Broken("reset".to_owned());
    let refused = || LinkError::Unreachable("refused".to_owned());
    for (error, is_refused) in [(broken(), true), (refused(), false)] {
        let (requests, _strays) = pending_requests();
        let _first = call(&requests, 1, "us");
        let _second = call(&requests, 2, "other");
        requests.take(Incoming::Failed { request: 1, error });
        deliver(&requests, &question("q"), None);
        assert_eq!(requests.next_notice().is_some(), is_refused);
        assert_eq!(lock(&requests.table).asked.is_empty(), is_refused);
    }
}

/// A call that was given up may still ask, but only if the server has received it.
#[test]
fn a_call_that_was_never_sent_asks_nothing() {
    for is_sent in [true, false] {
        let (requests, _strays) = pending_requests();
        let _first = call(&requests, 1, "us");
        let _second = call(&requests, 2, "other");
        requests.give_up(1, is_sent).unwrap();
        deliver(&requests, &question("q"), None);
        assert_eq!(requests.next_notice().is_some(), is_sent);
        assert_eq!(lock(&requests.table).asked.is_empty(), is_sent);
    }
}

/// A request after the end of the transport is not registered: it was not sent, so it can be made on
/// another connection.
#[test]
fn a_lost_connection_takes_no_more_requests() {
    let (requests, _strays) = pending_requests();
    let _first = call(&requests, 1, "us");
    requests.take(Incoming::Closed(LinkError::Closed("ended".to_owned())));
    assert!(requests.expect(2, Traits::default()).is_none());
}
