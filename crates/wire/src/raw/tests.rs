use std::collections::HashMap;

use bytes::Bytes;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Kind, Raw};
use crate::testing::{json, raw};
use crate::{DecodeError, Limits};

fn parse(json: &'static str) -> Result<Raw, DecodeError> {
    Raw::parse(json.into(), &Limits::default())
}

#[test]
fn white_space_around_the_value_is_trimmed() {
    assert_eq!(
        parse(" \t\r\n{\"a\": 1}\n ").unwrap().as_str(),
        "{\"a\": 1}"
    );
}

#[test]
fn only_one_value_is_accepted() {
    for json in [
        "",
        " ",
        "1 2",
        "{",
        "{}x",
        "'a'",
        "nul",
        "01",
        "\u{feff}1",
        "\"\n\"",
    ] {
        assert!(
            matches!(parse(json), Err(DecodeError::Syntax { .. })),
            "{json:?}"
        );
    }
}

/// S000-36, BASE-08.
#[test]
fn text_must_be_utf8() {
    let bytes = Bytes::from_static(b"\"\xff\"");
    assert_eq!(
        Raw::parse(bytes, &Limits::default()),
        Err(DecodeError::NotUtf8)
    );
}

/// C09.
#[test]
fn limits_apply() {
    let limits = Limits {
        max_bytes: 6,
        max_depth: 2,
        max_batch: 1,
    };
    assert_eq!(
        Raw::parse("\"12345\"".into(), &limits),
        Err(DecodeError::TooLarge { limit: 6 })
    );
    assert!(Raw::parse("\"1234\"".into(), &limits).is_ok());
    assert_eq!(
        Raw::parse("[[[]]]".into(), &limits),
        Err(DecodeError::TooDeep { limit: 2 })
    );
    assert!(Raw::parse("[[],1]".into(), &limits).is_ok());
}

#[test]
fn a_very_deep_value_is_refused_without_recursion() {
    let deep = "[".repeat(1_000_000);
    let limits = Limits::default();
    assert_eq!(
        Raw::parse(deep.into(), &limits),
        Err(DecodeError::TooDeep { limit: 128 })
    );
}

#[test]
fn the_first_byte_tells_the_kind() {
    let kinds = [
        ("null", Kind::Null),
        ("true", Kind::Bool),
        ("false", Kind::Bool),
        ("-1", Kind::Number),
        ("0", Kind::Number),
        ("\"n\"", Kind::String),
        ("[]", Kind::Array),
        ("{}", Kind::Object),
    ];
    for (json, kind) in kinds {
        assert_eq!(raw(json).kind(), kind, "{json}");
    }
    assert_eq!(Raw::null().kind(), Kind::Null);
    assert_eq!(Raw::empty_object().kind(), Kind::Object);
}

#[test]
fn a_borrowed_part_shares_the_bytes() {
    let whole = raw(r#"{"a":[1,2]}"#);
    let members: HashMap<&str, &RawValue> = whole.decode().unwrap();
    let part = whole.part(members["a"]);
    assert_eq!(part.as_str(), "[1,2]");
    assert_eq!(part.as_bytes().as_ptr(), whole.as_bytes()[5..].as_ptr());
}

#[test]
fn a_foreign_part_is_copied() {
    let foreign = RawValue::from_string("[1,2]".to_owned()).unwrap();
    assert_eq!(raw("{}").part(&foreign).as_str(), "[1,2]");
}

#[test]
fn serde_embeds_the_text_verbatim() {
    #[derive(Serialize, Deserialize)]
    struct Holder {
        value: Raw,
    }
    let json = r#"{"value":[1.50,  1e2,"\u0041",18446744073709551616]}"#;
    let holder: Holder = serde_json::from_str(json).unwrap();
    assert_eq!(serde_json::to_string(&holder).unwrap(), json);
    assert_eq!(Raw::encode(&holder).unwrap().as_str(), json);
}

#[test]
fn debug_output_is_short() {
    assert_eq!(format!("{:?}", raw("[1]")), "Raw([1])");
    let long = raw(&format!("\"{}\"", "é".repeat(10_000)));
    let shown = format!("{long:?}");
    assert!(shown.len() < 500);
    assert!(shown.ends_with("… 20002 bytes)"));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in any::<Vec<u8>>()) {
        if let Ok(value) = Raw::parse(bytes.into(), &Limits::default()) {
            prop_assert!(serde_json::from_str::<&RawValue>(value.as_str()).is_ok());
        }
    }

    #[test]
    fn valid_json_keeps_its_bytes(json in json()) {
        let value = Raw::parse(json.clone().into(), &Limits::default()).unwrap();
        prop_assert_eq!(value.as_str(), json.as_str());
        prop_assert_eq!(Raw::encode(&value).unwrap(), value);
    }
}

#[test]
fn arrays_are_made_of_values_as_they_are() {
    let none: [Raw; 0] = [];
    assert_eq!(Raw::array(&none).as_str(), "[]");
    let values = [
        Raw::from_static(r#"{"a": 1.0}"#),
        Raw::null(),
        Raw::string("x,y"),
    ];
    let array = Raw::array(&values);
    assert_eq!(array.as_str(), r#"[{"a": 1.0},null,"x,y"]"#);
    assert!(array.elements().unwrap().eq(values));
}
