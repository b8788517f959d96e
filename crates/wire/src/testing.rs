//! Values for the tests of this crate.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::{Id, Limits, Message, Notification, Raw, Request, Response, RpcError};

/// Reads a value that the test knows to be valid.
pub(crate) fn raw(json: &str) -> Raw {
    Raw::parse(json.to_owned().into(), &Limits::default()).unwrap()
}

/// JSON text of any shape, with every kind of white space between its tokens.
pub(crate) fn json() -> impl Strategy<Value = String> {
    scalar().prop_recursive(3, 12, 4, |inner| {
        prop_oneof![array_of(inner.clone()), object_of(inner)]
    })
}

pub(crate) fn json_object() -> impl Strategy<Value = String> {
    object_of(json())
}

/// The literal of a string, some written with needless escapes.
pub(crate) fn string_literal() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
        "[a-z/_]{0,6}".prop_map(|text| serde_json::to_string(&text).unwrap()),
        "[a-z]{0,4}".prop_map(|text| format!(r#""\u0041\/{text}\ud83d\ude00""#)),
    ]
}

pub(crate) fn id() -> impl Strategy<Value = Id> {
    prop_oneof![
        any::<i64>().prop_map(Id::from),
        any::<u64>().prop_map(Id::from),
        any::<String>().prop_map(Id::from),
        "-?[1-9][0-9]{20,40}".prop_map(|digits| raw(&digits).decode().unwrap()),
    ]
}

pub(crate) fn message() -> impl Strategy<Value = Message> {
    let params = || proptest::option::of(json_container().prop_map(|json| raw(&json)));
    let call = || (any::<String>().prop_map(Into::into), params());
    let request = (id(), call())
        .prop_map(|(id, (method, params))| Message::Request(Request { id, method, params }));
    let notification =
        call().prop_map(|(method, params)| Message::Notification(Notification { method, params }));
    let success = (id(), json()).prop_map(|(id, result)| {
        let (id, outcome) = (Some(id), Ok(raw(&result)));
        Message::Response(Response { id, outcome })
    });
    let failure = (proptest::option::of(id()), rpc_error()).prop_map(|(id, error)| {
        let outcome = Err(error);
        Message::Response(Response { id, outcome })
    });
    prop_oneof![request, notification, success, failure]
}

fn rpc_error() -> impl Strategy<Value = RpcError> {
    let data = proptest::option::of(json().prop_map(|json| raw(&json)));
    (any::<i64>(), any::<String>(), data).prop_map(|(code, message, data)| RpcError {
        code,
        message,
        data,
    })
}

fn json_container() -> impl Strategy<Value = String> {
    prop_oneof![array_of(json()), object_of(json())]
}

fn scalar() -> BoxedStrategy<String> {
    prop_oneof![
        "null|true|false",
        "-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,4})?",
        string_literal(),
        Just(r#""half a pair: \udc00""#.to_owned()),
    ]
    .boxed()
}

fn array_of(item: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    vec((space(), item, space()), 0..4).prop_map(|items| {
        let items: Vec<String> = items
            .into_iter()
            .map(|(a, item, b)| a + &item + &b)
            .collect();
        format!("[{}]", items.join(","))
    })
}

fn object_of(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    vec((space(), string_literal(), space(), value, space()), 0..4).prop_map(|members| {
        let mut seen = std::collections::HashSet::new();
        let members: Vec<String> = members
            .into_iter()
            .filter(|(_, key, ..)| seen.insert(serde_json::from_str::<String>(key).unwrap()))
            .map(|(a, key, b, value, c)| format!("{a}{key}{b}:{a}{value}{c}"))
            .collect();
        format!("{{{}}}", members.join(","))
    })
}

fn space() -> impl Strategy<Value = String> {
    "[ \t\r\n]{0,2}"
}
