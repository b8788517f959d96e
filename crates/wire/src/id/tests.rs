use std::collections::HashSet;

use proptest::prelude::*;

use super::Id;
use crate::testing::id;

fn read(json: &str) -> Result<Id, serde_json::Error> {
    serde_json::from_str(json)
}

/// S002-33, S002-14, S002-40.
#[test]
fn strings_and_integers_are_echoed_with_their_type() {
    for json in [
        "1",
        "0",
        "-7",
        "\"1\"",
        "\"\"",
        "\"a b\"",
        "9223372036854775807",
    ] {
        let id = read(json).unwrap();
        assert_eq!(id.to_string(), json);
        assert_eq!(serde_json::to_string(&id).unwrap(), json);
        assert_eq!(id.to_raw().as_str(), json);
    }
}

/// C33.
#[test]
fn integers_beyond_64_bits_are_kept_exactly() {
    for json in [
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775809",
        "123456789012345678901234567890123456789012345678901234567890",
    ] {
        let id = read(json).unwrap();
        assert_eq!(id.as_i64(), None);
        assert_eq!(serde_json::to_string(&id).unwrap(), json);
        assert_ne!(id, Id::from(json));
    }
    assert_eq!(read("18446744073709551615").unwrap(), Id::from(u64::MAX));
}

/// BASE-02, S002-15, C33.
#[test]
fn other_values_are_not_ids() {
    for json in [
        "null",
        "true",
        "1.0",
        "1.5",
        "1e0",
        "1E2",
        "-0.0",
        "[]",
        "[1]",
        "{}",
        r#""\ud800""#,
    ] {
        assert!(read(json).is_err(), "{json}");
    }
}

/// C34.
#[test]
fn a_string_is_not_the_number_it_spells() {
    assert_ne!(Id::from("3"), Id::from(3_i64));
    let pending = HashSet::from([Id::from(3_i64)]);
    assert!(!pending.contains(&Id::from("3")));
    assert!(pending.contains(&Id::from(3_u64)));
}

#[test]
fn minus_zero_is_zero() {
    let id = read("-0").unwrap();
    assert_eq!(id, Id::from(0_i64));
    assert_eq!(id.to_string(), "0");
}

#[test]
fn strings_compare_by_text() {
    assert_eq!(read(r#""\u0061""#).unwrap(), Id::from("a"));
    assert_eq!(read(r#""\u0061""#).unwrap().as_str(), Some("a"));
    assert_eq!(Id::from("a\n").to_string(), r#""a\n""#);
}

proptest! {
    #[test]
    fn ids_read_back(id in id()) {
        let json = serde_json::to_string(&id).unwrap();
        prop_assert_eq!(&json, &id.to_string());
        prop_assert_eq!(json.as_bytes(), &id.to_raw().into_bytes()[..]);
        prop_assert_eq!(read(&json).unwrap(), id);
    }
}
