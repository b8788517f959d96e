//! A raw value keeps the bytes of its JSON text, and editing an object changes no byte of its other
//! members.

#![no_main]

use std::collections::BTreeMap;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use plexus_mcp_wire::{Kind, Limits, Object, ObjectError, Raw, encode};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

fuzz_target!(|input: &[u8]| {
    let Ok(value) = Raw::parse(Bytes::copy_from_slice(input), &Limits::default()) else {
        return;
    };
    assert!(serde_json::from_str::<IgnoredAny>(value.as_str()).is_ok());
    assert_eq!(value.as_bytes(), input.trim_ascii());
    assert_eq!(Raw::encode(&value).unwrap(), value);
    assert_eq!(encode::single_line(&value).len(), value.len());

    match Object::parse(&value) {
        Ok(object) => check_object(&value, object),
        Err(ObjectError::NotAnObject) => assert_ne!(value.kind(), Kind::Object),
        Err(ObjectError::DuplicateKey(key)) => assert!(members(&value).contains_key(&*key)),
        // For example, a key with a lone surrogate, which serde_json refuses as well.
        Err(_) => assert!(value.decode::<BTreeMap<String, &RawValue>>().is_err()),
    }
});

fn members(object: &Raw) -> BTreeMap<String, &RawValue> {
    object.decode().unwrap()
}

fn check_object(arrived: &Raw, object: Object) {
    let expected = members(arrived);
    assert_eq!(object.len(), expected.len());
    for (key, value) in object.iter() {
        assert_eq!(value.as_str(), expected[key].get());
    }

    let written = object.clone().to_raw();
    let again = Object::parse(&written).unwrap();
    assert!(object.iter().eq(again.iter()));
    assert_eq!(again.to_raw(), written);

    check_editing(object);
}

fn check_editing(object: Object) {
    const KEY: &str = "a \"new\"\nkey";
    let mut edited = object.clone();
    let before = edited.set(KEY, Raw::null());
    let mut edited = Object::parse(&edited.to_raw()).unwrap();
    assert_eq!(edited.get(KEY), Some(&Raw::null()));
    match before {
        Some(value) => edited.set(KEY, value),
        None => edited.remove(KEY),
    };
    assert!(object.iter().eq(edited.iter()));
}
