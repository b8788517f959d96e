use bytes::Bytes;
use proptest::prelude::*;

use super::{DecodeError, Incoming, decode};
use crate::testing::{json, raw};
use crate::{
    Id, Limits, Malformed, MalformedReason, Message, Notification, Object, Raw, Request, Response,
    RpcError,
};

fn incoming(json: &str) -> Result<Incoming, DecodeError> {
    decode(json.to_owned().into(), &Limits::default())
}

fn single(json: &str) -> Result<Message, Malformed> {
    match incoming(json) {
        Ok(Incoming::Single(message)) => message,
        other => panic!("{json} gave {other:?}"),
    }
}

fn params(json: &str) -> Object {
    match single(json) {
        Ok(Message::Request(request)) => Object::parse(&request.params.unwrap()).unwrap(),
        other => panic!("{json} gave {other:?}"),
    }
}

fn flaw(json: &str) -> (Option<Id>, MalformedReason) {
    let malformed = single(json).unwrap_err();
    (malformed.id, malformed.reason)
}

fn request(id: impl Into<Id>, method: &str, params: Option<Raw>) -> Message {
    Message::Request(Request {
        id: id.into(),
        method: method.into(),
        params,
    })
}

fn response(id: Option<Id>, outcome: Result<Raw, RpcError>) -> Message {
    Message::Response(Response { id, outcome })
}

/// S000-12, S004-26.
#[test]
fn requests() {
    assert_eq!(
        single(r#" {"jsonrpc":"2.0","id":1,"method":"a","params":{"b": 1.50}} "#),
        Ok(request(1_i64, "a", Some(raw(r#"{"b": 1.50}"#))))
    );
    assert_eq!(
        single(r#"{"method":"a\/b","params":[1e400],"id":"1","jsonrpc":"2.0"}"#),
        Ok(request("1", "a/b", Some(raw("[1e400]"))))
    );
}

/// S000-15.
#[test]
fn notifications() {
    let expected = Message::Notification(Notification {
        method: "a".into(),
        params: None,
    });
    assert_eq!(
        single(r#"{"jsonrpc":"2.0","method":"a"}"#),
        Ok(expected.clone())
    );
    assert_eq!(
        single(r#"{"jsonrpc":"2.0","method":"a","params":null}"#),
        Ok(expected)
    );
}

/// S000-13, S000-14, S004-26, S004-K005, S004-K006, S004-K007.
#[test]
fn responses() {
    let id = || Some(Id::from(7_i64));
    assert_eq!(
        single(r#"{"jsonrpc":"2.0","id":7,"result":null}"#),
        Ok(response(id(), Ok(Raw::null())))
    );
    let error = RpcError {
        code: -32601,
        message: "no such method".to_owned(),
        data: Some(raw("[ 1 ]")),
    };
    assert_eq!(
        single(
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no such method","data":[ 1 ],"x":0}}"#
        ),
        Ok(response(id(), Err(error)))
    );
}

/// C33: an error about a request whose id could not be read has a null id or none.
#[test]
fn an_error_may_lack_an_id() {
    let error = RpcError {
        code: -32700,
        message: "m".to_owned(),
        data: None,
    };
    let expected = Ok(response(None, Err(error)));
    let body = r#""error":{"code":-32700,"message":"m"}}"#;
    assert_eq!(
        single(&format!(r#"{{"jsonrpc":"2.0","id":null,{body}"#)),
        expected
    );
    assert_eq!(single(&format!(r#"{{"jsonrpc":"2.0",{body}"#)), expected);
}

#[test]
fn params_share_the_bytes_they_came_in() {
    let line = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"b":1}}"#);
    let place = line[46..].as_ptr();
    let Ok(Incoming::Single(Ok(Message::Request(request)))) = decode(line, &Limits::default())
    else {
        panic!("not a request");
    };
    let params = request.params.unwrap();
    assert_eq!(params.as_str(), r#"{"b":1}"#);
    assert_eq!(params.as_bytes().as_ptr(), place);
}

#[test]
fn unknown_members_are_tolerated() {
    let message = single(r#"{"jsonrpc":"2.0","id":1,"x":{},"x":1,"\ud800":[],"method":"a"}"#);
    assert_eq!(message, Ok(request(1_i64, "a", None)));
}

#[test]
fn escaped_members_are_known_by_their_text() {
    let message = single(r#"{"\u006asonrpc":"2\u002e0","\u0069d":1,"method":"a"}"#);
    assert_eq!(message, Ok(request(1_i64, "a", None)));
    let (id, reason) = flaw(r#"{"jsonrpc":"2.0","id":1,"\u0069d":2,"method":"a"}"#);
    assert_eq!((id, reason), (None, MalformedReason::RepeatedMember));
}

#[test]
fn repeated_members_are_malformed() {
    let one = || Some(Id::from(1_i64));
    for (json, id) in [
        (
            r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"a"}"#,
            one(),
        ),
        (r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"a"}"#, None),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#,
            one(),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{},"params":{}}"#,
            one(),
        ),
        (r#"{"jsonrpc":"2.0","id":1,"result":1,"result":1}"#, one()),
        (r#"{"jsonrpc":"2.0","id":1,"error":1,"error":1}"#, one()),
    ] {
        assert_eq!(flaw(json), (id, MalformedReason::RepeatedMember), "{json}");
    }
}

/// BASE-02, S002-15, C33.
#[test]
fn ids_are_strings_or_integers() {
    let with_id = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"a"}}"#);
    assert_eq!(flaw(&with_id("null")), (None, MalformedReason::NullId));
    for id in ["1.5", "1.0", "1e3", "true", "{}", "[1]"] {
        assert_eq!(
            flaw(&with_id(id)),
            (None, MalformedReason::InvalidId),
            "{id}"
        );
    }
    let Ok(Message::Request(request)) = single(&with_id("18446744073709551616")) else {
        panic!("not a request");
    };
    assert_eq!(request.id.to_string(), "18446744073709551616");
}

#[test]
fn malformed_messages_keep_their_id() {
    for (json, reason) in [
        (r#"{"id":5,"method":"a"}"#, MalformedReason::Version),
        (
            r#"{"jsonrpc":"1.0","id":5,"method":"a"}"#,
            MalformedReason::Version,
        ),
        (
            r#"{"jsonrpc":2.0,"id":5,"method":"a"}"#,
            MalformedReason::Version,
        ),
        (
            r#"{"jsonrpc":"2.0","id":5}"#,
            MalformedReason::NoMethodOrOutcome,
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":1}"#,
            MalformedReason::InvalidMethod,
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":null}"#,
            MalformedReason::InvalidMethod,
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"a","params":1}"#,
            MalformedReason::InvalidParams,
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"a","params":"b"}"#,
            MalformedReason::InvalidParams,
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"a","params":false}"#,
            MalformedReason::InvalidParams,
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"a","result":1}"#,
            MalformedReason::MethodAndOutcome,
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"a","error":null}"#,
            MalformedReason::MethodAndOutcome,
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"result":1,"error":{}}"#,
            MalformedReason::ResultAndError,
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"error":null}"#,
            MalformedReason::InvalidError,
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"error":{"code":1}}"#,
            MalformedReason::InvalidError,
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"error":{"code":1.5,"message":"m"}}"#,
            MalformedReason::InvalidError,
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"error":{"code":1,"message":2}}"#,
            MalformedReason::InvalidError,
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"error":{"code":1,"code":2,"message":"m"}}"#,
            MalformedReason::InvalidError,
        ),
    ] {
        assert_eq!(flaw(json), (Some(Id::from(5_i64)), reason), "{json}");
    }
}

#[test]
fn a_result_needs_an_id() {
    assert_eq!(
        flaw(r#"{"jsonrpc":"2.0","result":1}"#),
        (None, MalformedReason::ResultWithoutId)
    );
    assert_eq!(
        flaw(r#"{"jsonrpc":"2.0","id":null,"result":1}"#),
        (None, MalformedReason::ResultWithoutId)
    );
}

#[test]
fn a_scalar_is_json_but_no_message() {
    for json in ["1", "null", "\"a\"", " true ", "1e999", r#""\ud800""#] {
        assert_eq!(flaw(json), (None, MalformedReason::NotAnObject), "{json}");
    }
}

/// S002-35, S002-41, C04, S002-03, BASE-09.
#[test]
fn one_bad_element_does_not_spoil_a_batch() {
    let json = r#" [ {"jsonrpc":"2.0","id":1,"method":"a","params":[ 2 ]}, 1, [], "x",
        {"jsonrpc":"2.0","id":2} ] "#;
    let malformed = |id, reason| Err(Malformed { id, reason });
    let expected = vec![
        Ok(request(1_i64, "a", Some(raw("[ 2 ]")))),
        malformed(None, MalformedReason::NotAnObject),
        malformed(None, MalformedReason::NotAnObject),
        malformed(None, MalformedReason::NotAnObject),
        malformed(Some(Id::from(2_i64)), MalformedReason::NoMethodOrOutcome),
    ];
    assert_eq!(incoming(json), Ok(Incoming::Batch(expected)));
}

/// C04.
#[test]
fn a_batch_has_one_to_a_hundred_elements() {
    assert_eq!(incoming("[]"), Err(DecodeError::EmptyBatch));
    assert_eq!(incoming(" [ ] "), Err(DecodeError::EmptyBatch));
    let batch_of = |count: usize| format!("[{}]", vec!["1"; count].join(","));
    assert!(matches!(incoming(&batch_of(1)), Ok(Incoming::Batch(items)) if items.len() == 1));
    assert!(matches!(incoming(&batch_of(100)), Ok(Incoming::Batch(items)) if items.len() == 100));
    assert_eq!(
        incoming(&batch_of(101)),
        Err(DecodeError::BatchTooLong { limit: 100 })
    );
}

#[test]
fn bad_syntax_is_told_with_its_place() {
    let error = incoming("{\"a\":\n 01}").unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid json at line 2 column 3: invalid number"
    );
    let error = incoming("[{}").unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid json at line 1 column 3: end of input while parsing a list"
    );
}

#[test]
fn bad_syntax_is_found_everywhere() {
    for json in [
        "",
        "  ",
        "{",
        "{}{}",
        "[1",
        "[1,]",
        "[] x",
        "{\"a\":}",
        "{\"a\":tru}",
        "{a:1}",
        "\u{feff}{}",
        "\u{c}{}",
        "{\"method\":\"a\nb\"}",
        "{\"x\":\"\\q\"}",
    ] {
        assert!(
            matches!(incoming(json), Err(DecodeError::Syntax { .. })),
            "{json:?}"
        );
    }
}

/// S000-04, S000-36, BASE-08.
#[test]
fn input_must_be_utf8() {
    let line = Bytes::from_static(b"{\"jsonrpc\":\"2.0\",\"method\":\"\xc3\x28\"}");
    assert_eq!(decode(line, &Limits::default()), Err(DecodeError::NotUtf8));
}

/// C09.
#[test]
fn size_and_depth_are_limited() {
    let large = format!(
        r#"{{"jsonrpc":"2.0","method":"{}"}}"#,
        "a".repeat(1024 * 1024)
    );
    assert_eq!(
        incoming(&large),
        Err(DecodeError::TooLarge { limit: 1024 * 1024 })
    );
    let nested = |depth: usize| {
        let params = "[".repeat(depth) + &"]".repeat(depth);
        format!(r#"{{"jsonrpc":"2.0","method":"a","params":{params}}}"#)
    };
    assert_eq!(
        incoming(&nested(128)),
        Err(DecodeError::TooDeep { limit: 128 })
    );
    let Ok(Message::Notification(notification)) = single(&nested(127)) else {
        panic!("not a notification");
    };
    // JSON within the limit can also be decoded: decoding recurses, and has a limit of its own.
    assert!(
        notification
            .params
            .unwrap()
            .decode::<serde_json::Value>()
            .is_ok()
    );
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in any::<Vec<u8>>()) {
        drop(decode(bytes.into(), &Limits::default()));
    }

    #[test]
    fn arbitrary_json_is_decoded(json in json()) {
        let empty = json.trim_matches(['[', ']', ' ', '\t', '\r', '\n']).is_empty();
        prop_assert!(incoming(&json).is_ok() || empty);
    }

    /// Members in any combination: never a panic, and a message only under the right version.
    #[test]
    fn arbitrary_members_are_decoded(
        members in proptest::collection::vec((member_name(), member_value()), 0..7),
    ) {
        let members: Vec<_> = members.iter().map(|(name, value)| format!("{name}:{value}")).collect();
        let json = format!("{{{}}}", members.join(","));
        let is_message = single(&json).is_ok();
        prop_assert!(!is_message || json.matches(r#""jsonrpc":"2.0""#).count() == 1);
    }
}

fn member_name() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just(r#""jsonrpc""#),
        Just(r#""id""#),
        Just(r#""method""#),
        Just(r#""params""#),
        Just(r#""result""#),
        Just(r#""error""#),
        Just(r#""other""#),
    ]
}

fn member_value() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => Just(r#""2.0""#.to_owned()),
        1 => Just(r#"{"code":1,"message":"m"}"#.to_owned()),
        2 => json(),
    ]
}

#[test]
fn half_a_surrogate_pair_is_no_text() {
    for (json, expected) in [
        (r#""""#, true),
        (r#""a\"n\u0041\ud83d\ude00""#, true),
        (r#""\ud800""#, false),
        (r#""\\ud800""#, true),
        ("1", false),
        (r#"{"a":"b"}"#, false),
    ] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":{json}}}}}"#);
        let arrived = params(&line);
        let parsed = Object::parse(&arrived.to_raw()).unwrap();
        let mut edited = arrived.clone();
        edited.set("b", arrived.get("a").unwrap().clone());
        edited.set("a", raw(r#""\ud800""#));
        for (object, key) in [(&arrived, "a"), (&parsed, "a"), (&edited, "b")] {
            assert_eq!(object.text(key).is_some(), expected, "{json}");
        }
        assert_eq!(edited.text("a"), None);
    }
}
