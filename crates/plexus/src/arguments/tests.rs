use serde_json::json;

use super::*;

fn read(schema: &Value, words: &[&str]) -> Result<Value, String> {
    let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
    let read = typed(&words, &Raw::encode(schema).unwrap())?;
    Ok(read.decode().unwrap())
}

fn one(property: &Value, text: &str) -> Result<Value, String> {
    let schema = json!({"properties": {"it": property}, "$defs": {"size": {"type": "integer"}}});
    let mut read = read(&schema, &[&format!("it={text}")])?;
    Ok(read["it"].take())
}

#[test]
fn values_have_the_type_that_the_schema_says() {
    for (schema, text, expected) in [
        (json!({"type": "string"}), "12", json!("12")),
        (json!({"type": "string"}), "a=b", json!("a=b")),
        (json!({"type": "string"}), "", json!("")),
        (json!({"type": "integer"}), "12", json!(12)),
        (json!({"type": "number"}), "-1.5e3", json!(-1500.0)),
        (json!({"type": "boolean"}), "true", json!(true)),
        (json!({"type": ["string", "null"]}), "null", json!(null)),
        (json!({"type": ["integer", "string"]}), "12", json!(12)),
        (json!({"type": ["integer", "string"]}), "12a", json!("12a")),
        (
            json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}),
            "3",
            json!(3),
        ),
        (json!({"$ref": "#/$defs/size"}), "4", json!(4)),
        (json!({"enum": ["a", 1]}), "1", json!(1)),
        (
            json!({"type": "array", "items": {"type": "integer"}}),
            "[1, 2]",
            json!([1, 2]),
        ),
        (
            json!({"type": "array", "items": {"type": "integer"}}),
            "1",
            json!([1]),
        ),
        (json!({"type": "object"}), r#"{"a": 1}"#, json!({"a": 1})),
        (json!({}), "12", json!("12")),
        (json!(true), "x", json!("x")),
    ] {
        assert_eq!(one(&schema, text), Ok(expected), "{schema} {text}");
    }
}

#[test]
fn type_errors_name_the_expected_type() {
    for (schema, text, expected) in [
        (
            json!({"type": "integer"}),
            "1.5",
            "it: expected whole number, not \"1.5\"",
        ),
        (json!({"type": "number"}), "x", "expected number"),
        (json!({"type": "boolean"}), "yes", "expected true or false"),
        (json!({"enum": ["a", "b"]}), "c", "expected one of a, b"),
        (json!({"type": "object"}), "x", "expected JSON object"),
        (
            json!({"type": "array", "items": {"type": "integer"}}),
            "x",
            "expected array of whole number",
        ),
        (
            json!({"type": ["integer", "null"]}),
            "x",
            "whole number or null",
        ),
    ] {
        let wrong = one(&schema, text).unwrap_err();
        assert!(wrong.contains(expected), "{schema} {text}: {wrong}");
    }
}

#[test]
fn keys_are_repeated_for_arrays_only() {
    let schema = json!({"properties": {
        "tags": {"type": "array", "items": {"type": "string"}}, "name": {"type": "string"}
    }});
    assert_eq!(
        read(&schema, &["tags=a", "tags=b", "name=x"]),
        Ok(json!({"tags": ["a", "b"], "name": "x"}))
    );
    assert!(
        read(&schema, &["name=a", "name=b"])
            .unwrap_err()
            .contains("more than once")
    );
    assert!(read(&schema, &["tags=a", "tags:=[]"]).is_err());
}

#[test]
fn json_is_taken_as_it_is() {
    let schema = json!({"properties": {"it": {"type": "string"}}});
    assert_eq!(
        read(&schema, &["it:=[1.50, null]"]),
        Ok(json!({"it": [1.50, null]}))
    );
    assert!(read(&schema, &["it:={"]).unwrap_err().contains("not JSON"));
}

#[test]
fn slips_in_names_are_noticed() {
    let schema = json!({"properties": {"message": {"type": "string"}}, "required": ["message"]});
    let wrong = read(&schema, &["mesage=x"]).unwrap_err();
    assert!(wrong.contains("did you mean message?"), "{wrong}");
    let wrong = read(&schema, &[]).unwrap_err();
    assert!(
        wrong.contains("missing: message (string, required)"),
        "{wrong}"
    );
    for words in [["message"], ["=x"], [":=1"]] {
        assert!(read(&schema, &words).is_err(), "{words:?}");
    }
    let open = json!({"additionalProperties": {"type": "integer"}, "properties": {}});
    assert_eq!(read(&open, &["x=1"]), Ok(json!({"x": 1})));
    assert_eq!(
        read(&json!({"type": "object"}), &["x=1"]),
        Ok(json!({"x": "1"}))
    );
}

/// A recursive schema is followed to a limited depth.
#[test]
fn circles_end() {
    let schema = json!({"properties": {"it": {"$ref": "#/properties/it"}}});
    assert_eq!(read(&schema, &["it=x"]), Ok(json!({"it": "x"})));
}
