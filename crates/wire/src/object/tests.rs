use proptest::prelude::*;

use super::{Object, ObjectError};
use crate::testing::{json, json_object, raw};

fn object(json: &str) -> Object {
    Object::parse(&raw(json)).unwrap()
}

#[test]
fn members_keep_their_order_and_their_bytes() {
    let arrived = r#"{ "b" : 1.50 , "a":[ 1 ], "\u0063" : "\u0041" }"#;
    assert_eq!(
        object(arrived).into_raw().as_str(),
        r#"{"b":1.50,"a":[ 1 ],"\u0063":"\u0041"}"#
    );
}

#[test]
fn untouched_values_share_the_bytes_they_came_in() {
    let arrived = raw(r#"{"a":[1]}"#);
    let members = Object::parse(&arrived).unwrap();
    let value = members.get("a").unwrap();
    assert_eq!(value.as_bytes().as_ptr(), arrived.as_bytes()[5..].as_ptr());
}

#[test]
fn escaped_keys_are_found_by_their_text() {
    let members = object(r#"{"\u0061b":1,"x\n":2}"#);
    assert_eq!(members.get("ab"), Some(&raw("1")));
    assert_eq!(members.get("x\n"), Some(&raw("2")));
    assert!(!members.contains("\\u0061b"));
    assert_eq!(
        members.iter().map(|(key, _)| key).collect::<Vec<_>>(),
        ["ab", "x\n"]
    );
}

#[test]
fn set_replaces_in_place_or_appends() {
    let mut members = object(r#"{"a":1,"b":2}"#);
    assert_eq!(members.set("a", raw("3")), Some(raw("1")));
    assert_eq!(members.set(String::from("say \"c\""), raw("4")), None);
    assert_eq!(members.get("say \"c\""), Some(&raw("4")));
    assert_eq!(
        members.into_raw().as_str(),
        r#"{"a":3,"b":2,"say \"c\"":4}"#
    );
}

#[test]
fn remove_keeps_the_others_in_order() {
    let mut members = object(r#"{"a":1,"b":2,"c":3}"#);
    assert_eq!(members.remove("a"), Some(raw("1")));
    assert_eq!(members.remove("a"), None);
    assert_eq!(members.len(), 2);
    assert_eq!(members.into_raw().as_str(), r#"{"b":2,"c":3}"#);
}

#[test]
fn an_empty_object_is_written_as_such() {
    assert!(Object::new().is_empty());
    assert_eq!(Object::new().into_raw().as_str(), "{}");
    assert_eq!(object("{ }").into_raw().as_str(), "{}");
}

#[test]
fn other_values_are_not_objects() {
    for json in ["null", "1", "\"{}\"", "[{}]", "true"] {
        assert!(
            matches!(Object::parse(&raw(json)), Err(ObjectError::NotAnObject)),
            "{json}"
        );
    }
}

#[test]
fn a_duplicate_key_is_named() {
    for json in [r#"{"a":1,"b":2,"a":3}"#, r#"{"a":1,"\u0061":2}"#] {
        let error = Object::parse(&raw(json)).unwrap_err();
        assert_eq!(error.to_string(), r#"duplicate key "a""#, "{json}");
    }
}

#[test]
fn a_key_that_is_no_text_is_refused() {
    let error = Object::parse(&raw(r#"{"\ud800":1}"#)).unwrap_err();
    assert!(matches!(error, ObjectError::Key(_)));
}

#[test]
fn debug_output_shows_the_members() {
    assert_eq!(
        format!("{:?}", object(r#"{"a":[1]}"#)),
        r#"{"a": Raw([1])}"#
    );
}

proptest! {
    #[test]
    fn every_member_survives_byte_exactly(json in json_object()) {
        let arrived = raw(&json);
        let members = Object::parse(&arrived).unwrap();
        let written = members.clone().into_raw();
        let again = Object::parse(&written).unwrap();
        prop_assert!(members.iter().eq(again.iter()));
        for (_, value) in members.iter() {
            prop_assert!(arrived.as_str().contains(value.as_str()));
        }
        prop_assert_eq!(again.into_raw(), written);
    }

    #[test]
    fn what_is_set_is_found(json in json_object(), key in any::<String>(), value in json()) {
        let mut members = object(&json);
        members.set(&key, raw(&value));
        let again = Object::parse(&members.into_raw()).unwrap();
        prop_assert_eq!(again.get(&key), Some(&raw(&value)));
    }
}
