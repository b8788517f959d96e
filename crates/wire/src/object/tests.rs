use proptest::prelude::*;

use super::{Object, ObjectError};
use crate::testing::{json, json_object, raw};

fn object(json: &str) -> Object {
    Object::parse(&raw(json)).unwrap()
}

#[test]
fn members_keep_their_order_and_their_bytes() {
    let mut members = object(r#"{ "b" : 1.50 , "a":[ 1 ], "\u0063" : "\u0041" }"#);
    members.set("d", raw("2"));
    assert_eq!(
        members.to_raw().as_str(),
        r#"{"b":1.50,"a":[ 1 ],"\u0063":"\u0041","d":2}"#
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
    assert_eq!(members.to_raw().as_str(), r#"{"a":3,"b":2,"say \"c\"":4}"#);
}

#[test]
fn remove_keeps_the_others_in_order() {
    let mut members = object(r#"{"a":1,"b":2,"c":3}"#);
    assert_eq!(members.remove("a"), Some(raw("1")));
    assert_eq!(members.remove("a"), None);
    assert_eq!(members.len(), 2);
    assert_eq!(members.to_raw().as_str(), r#"{"b":2,"c":3}"#);
}

#[test]
fn an_empty_object_is_written_as_such() {
    assert!(Object::new().is_empty());
    assert_eq!(Object::new().to_raw().as_str(), "{}");
    let mut emptied = object(r#"{ "a": 1 }"#);
    emptied.remove("a");
    assert_eq!(emptied.to_raw().as_str(), "{}");
}

#[test]
fn unedited_objects_keep_the_original_bytes() {
    let arrived = raw(r#"{ "a" : 1 , "b":[ ] }"#);
    let mut members = Object::parse(&arrived).unwrap();
    assert_eq!(members.remove("c"), None);
    members.retain(|_| true);
    assert!(members.get_mut("c").is_none());
    let same = members.to_raw();
    assert_eq!(same.as_bytes().as_ptr(), arrived.as_bytes().as_ptr());

    let mut replaced = members.clone();
    replaced.set("a", raw("2"));
    assert_eq!(replaced.to_raw().as_str(), r#"{"a":2,"b":[ ]}"#);
    let mut named = members.clone();
    named.set("c", raw("3"));
    assert_eq!(named.to_raw().as_str(), r#"{"a":1,"b":[ ],"c":3}"#);
    let mut kept = members.clone();
    kept.retain(|name| name == "b");
    assert_eq!(kept.to_raw().as_str(), r#"{"b":[ ]}"#);
    for value in members.values_mut() {
        *value = raw("0");
    }
    assert_eq!(members.to_raw().as_str(), r#"{"a":0,"b":0}"#);
}

#[test]
fn texts_are_strings_without_their_escapes() {
    let members = object(r#"{"a":"plain","b":"\u0041\n","c":1,"d":"\ud800"}"#);
    assert_eq!(members.text("a").as_deref(), Some("plain"));
    assert_eq!(members.text("b").as_deref(), Some("A\n"));
    for none in ["c", "d", "e"] {
        assert_eq!(members.text(none), None, "{none}");
    }
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
        let written = members.clone().to_raw();
        let again = Object::parse(&written).unwrap();
        prop_assert!(members.iter().eq(again.iter()));
        for (_, value) in members.iter() {
            prop_assert!(arrived.as_str().contains(value.as_str()));
        }
        prop_assert_eq!(again.to_raw(), written);
    }

    #[test]
    fn a_set_member_is_found(json in json_object(), key in any::<String>(), value in json()) {
        let mut members = object(&json);
        members.set(key.clone(), raw(&value));
        let again = Object::parse(&members.to_raw()).unwrap();
        prop_assert_eq!(again.get(&key), Some(&raw(&value)));
    }
}
