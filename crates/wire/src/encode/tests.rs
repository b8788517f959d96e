use bytes::BytesMut;
use proptest::prelude::*;

use super::{
    ErrorId, error, message, notification, request, request_with_object, response, single_line,
};
use crate::testing::{self, json, raw};
use crate::{Id, Incoming, Limits, Message, Object, Raw, RpcError, decode};

fn written(write: impl FnOnce(&mut BytesMut)) -> String {
    let mut out = BytesMut::from("before ");
    write(&mut out);
    let text = String::from_utf8(out.to_vec()).unwrap();
    text.strip_prefix("before ").unwrap().to_owned()
}

/// S004-18, S004-K001, S004-K002, S004-K004, S004-K008, S004-K009.
#[test]
fn requests_and_notifications() {
    let params = raw(r#"{"n":1.50}"#);
    assert_eq!(
        written(|out| request(out, &Id::from(1_i64), "a\"b", Some(&params))),
        r#"{"jsonrpc":"2.0","id":1,"method":"a\"b","params":{"n":1.50}}"#
    );
    assert_eq!(
        written(|out| request(out, &Id::from("1"), "ping", None)),
        r#"{"jsonrpc":"2.0","id":"1","method":"ping"}"#
    );
    assert_eq!(
        written(|out| notification(out, "done", Some(&raw("[]")))),
        r#"{"jsonrpc":"2.0","method":"done","params":[]}"#
    );
}

/// S004-18: the members go on as they are, in one line.
#[test]
fn requests_with_an_object() {
    let mut params = Object::parse(&raw("{\"n\": [1.50,\r\n2], \"m\":\n{}}")).unwrap();
    params.set("x", raw("[\n]"));
    assert_eq!(
        written(|out| request_with_object(out, &Id::from(1_i64), "a", &params)),
        r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"n":[1.50,  2],"m":{},"x":[ ]}}"#
    );
    assert_eq!(
        written(|out| request_with_object(out, &Id::from(1_i64), "a", &Object::new())),
        r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{}}"#
    );
}

/// S002-34.
#[test]
fn responses() {
    assert_eq!(
        written(|out| response(out, &Id::from(u64::MAX), &Raw::null())),
        r#"{"jsonrpc":"2.0","id":18446744073709551615,"result":null}"#
    );
    let reason = RpcError {
        code: -32602,
        message: "no\nsuch tool".to_owned(),
        data: Some(raw("{\"limit\": 1}")),
    };
    assert_eq!(
        written(|out| error(out, ErrorId::Known(&Id::from(7_i64)), &reason)),
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no\nsuch tool","data":{"limit": 1}}}"#
    );
}

/// C33: an unknown id is null for the earlier revisions and absent for the later ones.
#[test]
fn an_unknown_id_is_null_or_absent() {
    let reason = RpcError {
        code: -32700,
        message: "parse error".to_owned(),
        data: None,
    };
    let body = r#""error":{"code":-32700,"message":"parse error"}}"#;
    assert_eq!(
        written(|out| error(out, ErrorId::Null, &reason)),
        format!(r#"{{"jsonrpc":"2.0","id":null,{body}"#)
    );
    assert_eq!(
        written(|out| error(out, ErrorId::Absent, &reason)),
        format!(r#"{{"jsonrpc":"2.0",{body}"#)
    );
}

/// STDIO-01, S000-35.
#[test]
fn line_breaks_between_tokens_become_spaces() {
    let pretty = raw("{\r\n\t\"a\": [\n1\r]\n}");
    assert_eq!(single_line(&pretty), &b"{  \t\"a\": [ 1 ] }"[..]);
    assert!(matches!(
        single_line(&raw(r#""a\n""#)),
        std::borrow::Cow::Borrowed(b"\"a\\n\"")
    ));
    assert_eq!(
        written(|out| notification(out, "a", Some(&pretty))),
        "{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":{  \t\"a\": [ 1 ] }}"
    );
}

fn in_one_line(value: &Raw) -> Raw {
    Raw::parse(single_line(value).into_owned().into(), &Limits::default()).unwrap()
}

/// The message as it is expected to arrive.
fn as_received(mut message: Message) -> Message {
    let value = match &mut message {
        Message::Request(request) => {
            let params = request.params.take();
            request.params = params.map(|params| in_one_line(&params));
            None
        }
        Message::Notification(notification) => notification.params.as_mut(),
        Message::Response(response) => match &mut response.outcome {
            Ok(result) => Some(result),
            Err(reason) => reason.data.as_mut(),
        },
    };
    if let Some(value) = value {
        *value = in_one_line(value);
    }
    message
}

proptest! {
    /// STDIO-01, S000-35, S004-K003: every message is one line, and is decoded to the same message.
    #[test]
    fn messages_are_one_line_and_read_back(sent in testing::message()) {
        let mut out = BytesMut::new();
        message(&mut out, &sent);
        prop_assert!(!out.contains(&b'\n') && !out.contains(&b'\r'));
        let received = decode(out.freeze(), &Limits::default()).unwrap();
        prop_assert_eq!(received, Incoming::Single(Ok(as_received(sent))));
    }

    #[test]
    fn one_line_is_the_same_value(json in json()) {
        let (value, line) = (raw(&json), in_one_line(&raw(&json)));
        prop_assert_eq!(value.len(), line.len());
        prop_assert!(!line.as_str().contains(['\r', '\n']));
        // A value with half a surrogate pair, or a number out of range, has no other form.
        if let Ok(expected) = value.decode::<serde_json::Value>() {
            prop_assert_eq!(line.decode::<serde_json::Value>().unwrap(), expected);
        }
    }
}
