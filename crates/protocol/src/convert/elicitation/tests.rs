use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::Revision;

const V24: &Features = Revision::V2024_11_05.features();
const V03: &Features = Revision::V2025_03_26.features();
const V06: &Features = Revision::V2025_06_18.features();
const V11: &Features = Revision::V2025_11_25.features();
const V26: &Features = Revision::V2026_07_28.features();

fn raw(value: &Value) -> Raw {
    Raw::encode(value).unwrap()
}

fn value(raw: &Raw) -> Value {
    raw.decode().unwrap()
}

fn form(fields: &Value, required: &[&str]) -> Value {
    json!({"mode": "form", "message": "Which?", "requestedSchema":
        {"type": "object", "properties": fields, "required": required}})
}

fn lowered(params: &Value, features: &Features) -> Result<LoweredElicitation, Unrepresentable> {
    elicitation(&raw(params), features, || "minted".to_owned())
}

/// The fields of a form as a 2025-06-18 client is shown them.
fn shown(fields: &Value) -> Value {
    let lowered = lowered(&form(fields, &[]), V06).unwrap();
    value(&lowered.params)["requestedSchema"]["properties"].clone()
}

/// The answer that the asking server gets for `content`.
fn raised(params: &Value, content: &Value) -> Result<Value, String> {
    let form = lowered(params, V06).unwrap().form.expect("a lowered form");
    let answer = raw(&json!({"action": "accept", "content": content}));
    let raised = form.raise(&answer).map_err(|invalid| invalid.to_string())?;
    Ok(value(&raised)["content"].clone())
}

fn colors() -> Value {
    json!({"type": "array", "title": "Colors", "description": "Of the wall",
        "items": {"anyOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"},
            {"const": "b", "title": "Blue"}]},
        "minItems": 1, "maxItems": 2, "default": ["r", "g"], "x-own": 1})
}

/// TRANSLATION §6.4: revisions with rich forms are asked as the server asks.
#[test]
fn newer_revisions_are_asked_as_they_are() {
    let params = form(&json!({"c": colors()}), &["c"]);
    for features in [V11, V26] {
        let lowered = lowered(&params, features).unwrap();
        assert_eq!(value(&lowered.params), params);
        assert!(lowered.form.is_none());
    }
}

/// TRANSLATION §6.4: a choice of several values is a text that says what may be written.
#[test]
fn a_list_of_choices_becomes_a_text_field() {
    let params = form(&json!({"c": colors()}), &["c"]);
    for features in [V24, V03, V06] {
        let lowered = lowered(&params, features).unwrap();
        assert_eq!(
            value(&lowered.params),
            json!({"message": "Which?", "requestedSchema": {"type": "object", "required": ["c"],
                "properties": {"c": {"type": "string", "title": "Colors", "default": "r, g",
                    "description": "Of the wall. Allowed values: r (Red), g (Green), b (Blue). \
                        Separate several values with commas, or write a JSON array. \
                        At least 1, at most 2.", "x-own": 1}}}})
        );
    }
    let untitled = json!({"type": "array", "items": {"type": "string", "enum": ["a", "b, c", ""]},
        "default": ["b, c"], "minItems": 2, "maxItems": 2});
    assert_eq!(
        shown(&json!({"u": untitled}))["u"],
        json!({"type": "string", "default": r#"["b, c"]"#,
            "description": "Allowed values: a, \"b, c\", \"\". \
                Write several as a JSON array, like [\"first\", \"second\"]. Exactly 2."})
    );
}

#[test]
fn a_text_is_raised_to_the_list_it_names() {
    let params = form(&json!({"c": colors(), "s": {"type": "string"}}), &["c"]);
    for (written, chosen) in [
        (json!("r"), json!(["r"])),
        (json!(" g ,r, "), json!(["g", "r"])),
        (json!("Red, green"), json!(["r", "g"])),
        (json!("R,r,RED"), json!(["r"])),
        (json!(r#"["Blue", "g"]"#), json!(["b", "g"])),
        (json!(["Blue"]), json!(["b"])),
    ] {
        let content = json!({"c": written, "s": "kept", "more": 1});
        let expected = json!({"c": chosen, "s": "kept", "more": 1});
        assert_eq!(raised(&params, &content), Ok(expected), "{written}");
    }
}

/// An answer that violates the original schema is refused with the reason.
#[test]
fn answers_that_violate_the_original_form_are_refused() {
    let params = form(&json!({"c": colors(), "n": {"type": "integer"}}), &["c"]);
    for (content, reason) in [
        (
            json!({"c": "r, purple"}),
            "c: \"purple\" is not one of the allowed values",
        ),
        (
            json!({"c": "r,g,b"}),
            "answer.c: [\"r\",\"g\",\"b\"] has more than 2 items",
        ),
        (json!({"c": " "}), "answer.c: [] has less than 1 item"),
        (json!({"c": 7}), "answer.c: 7 is not of type \"array\""),
        (
            json!({"c": "[1]"}),
            "c: \"1\" is not one of the allowed values",
        ),
        (json!({}), "answer: \"c\" is a required property"),
        (
            json!({"c": "r", "n": "x"}),
            "answer.n: \"x\" is not of type \"integer\"",
        ),
    ] {
        let told = raised(&params, &content).unwrap_err();
        assert!(told.contains(reason), "{content}: {told}");
    }
    let form = lowered(&params, V06).unwrap().form.unwrap();
    for odd in [
        json!({}),
        json!([]),
        json!({"action": "accept", "content": []}),
    ] {
        assert!(form.raise(&raw(&odd)).is_err(), "{odd}");
    }
}

#[test]
fn other_answers_than_acceptance_are_passed_on() {
    let params = form(&json!({"c": colors()}), &["c"]);
    let form = lowered(&params, V06).unwrap().form.unwrap();
    for action in ["decline", "cancel"] {
        let answer = raw(&json!({"action": action, "_meta": {"a": 1}}));
        assert_eq!(form.raise(&answer), Ok(answer));
    }
    let accepted = raw(&json!({"action": "accept", "content": {"c": "r"}, "_meta": {"a": 1}}));
    let expected = json!({"action": "accept", "content": {"c": ["r"]}, "_meta": {"a": 1}});
    assert_eq!(value(&form.raise(&accepted).unwrap()), expected);
}

/// Clients send empty texts for fields that the user did not fill in.
#[test]
fn an_empty_text_is_an_empty_list_or_no_answer() {
    let list = |min: u64| json!({"type": "array", "items": {"enum": ["a"]}, "minItems": min});
    let choice = json!({"type": "string", "oneOf": [{"const": "a", "title": "A"}]});
    let fields = json!({"may": list(0), "must": list(1), "one": choice});
    for empty in [json!(""), json!(" "), json!(null)] {
        let content = json!({"may": empty, "must": empty, "one": empty});
        assert_eq!(
            raised(&form(&fields, &[]), &content),
            Ok(json!({"may": []}))
        );
        for required in ["must", "one"] {
            raised(&form(&fields, &[required]), &content).unwrap_err();
        }
    }
    let nothing = form(&fields, &[]);
    let form = lowered(&nothing, V06).unwrap().form.unwrap();
    let answer = form.raise(&raw(&json!({"action": "accept"}))).unwrap();
    assert_eq!(value(&answer), json!({"action": "accept", "content": {}}));
}

/// TRANSLATION §6.4: titled choices have values and names in two lists; an answer may be either.
#[test]
fn a_titled_choice_becomes_an_enum_with_names() {
    for keyword in ["oneOf", "anyOf"] {
        let field = json!({"type": "string", "title": "C", "default": "r",
            keyword: [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]});
        assert_eq!(
            shown(&json!({"c": field}))["c"],
            json!({"type": "string", "title": "C", "default": "r", "enum": ["r", "g"],
                "enumNames": ["Red", "Green"]})
        );
        let params = form(&json!({"c": field}), &[]);
        for (written, chosen) in [("r", "r"), ("Green", "g"), ("green", "g"), (" R ", "r")] {
            let raised = raised(&params, &json!({"c": written}));
            assert_eq!(raised, Ok(json!({"c": chosen})));
        }
        let told = raised(&params, &json!({"c": "x"})).unwrap_err();
        assert_eq!(told, "c: \"x\" is not one of the allowed values");
    }
}

#[test]
fn values_that_are_no_strings_are_written_as_text_and_come_back_typed() {
    let level = json!({"type": "integer", "default": 1,
        "oneOf": [{"const": 1, "title": "Low"}, {"const": 2, "title": "High"}]});
    let sizes = json!({"type": "array", "items": {"type": "number"}, "default": [1, 2.5]});
    let names = json!({"type": "array", "items": {"type": "string"}});
    let fields = json!({"level": level, "sizes": sizes, "names": names});
    let shown = shown(&fields);
    assert_eq!(shown["level"]["type"], "string");
    assert_eq!(shown["level"]["enum"], json!(["1", "2"]));
    assert_eq!(shown["level"]["default"], "1");
    assert_eq!(shown["sizes"]["default"], "1, 2.5");

    let params = form(&fields, &[]);
    let content = json!({"level": "High", "sizes": "1, 2.5", "names": "kim, 7"});
    let expected = json!({"level": 2, "sizes": [1, 2.5], "names": ["kim", "7"]});
    assert_eq!(raised(&params, &content), Ok(expected));
    raised(&params, &json!({"sizes": "1, two"})).unwrap_err();
}

/// A value takes precedence over a title, and a text that several choices share selects none.
#[test]
fn words_that_several_choices_share_name_none() {
    let items = json!({"anyOf": [{"const": "a", "title": "b"}, {"const": "b", "title": "Same"},
        {"const": "c", "title": "Same"}, {"const": "X"}, {"const": "x"}]});
    let params = form(&json!({"c": {"type": "array", "items": items}}), &[]);
    let raised = |written: &str| raised(&params, &json!({"c": written}));
    assert_eq!(raised("b"), Ok(json!({"c": ["b"]})));
    assert_eq!(raised("x, X"), Ok(json!({"c": ["x", "X"]})));
    raised("Same").unwrap_err();
    raised("B").unwrap_err();
}

/// A field that cannot be lowered is refused with its name and the reason.
#[test]
fn fields_that_cannot_be_lowered_are_refused_with_the_reason() {
    let refused = |field: Value| {
        let refused = lowered(&form(&json!({"f": field}), &[]), V06);
        refused
            .map(|lowered| lowered.params)
            .unwrap_err()
            .to_string()
    };
    let about = "the client's revision cannot ask for the form field \"f\": ";
    for (field, reason) in [
        (
            json!({"type": "object"}),
            "it is an object, and a form has flat fields only",
        ),
        (
            json!({"type": ["null", "object"]}),
            "it is an object, and a form has flat fields only",
        ),
        (
            json!({"type": "array"}),
            "it is a list, and nothing says what it is a list of",
        ),
        (
            json!({"anyOf": [{"type": "array"}, {"type": "string"}]}),
            "it is neither a text, a number, a boolean nor a choice among values",
        ),
        (
            json!({"type": "array", "items": {}}),
            "it is a list, and nothing says of which type its items are",
        ),
        (
            json!({"type": "array", "items": {"type": "object"}}),
            "it is a list of objects or lists, which cannot be written as text",
        ),
    ] {
        assert_eq!(refused(field), format!("{about}{reason}"));
    }
    let unusable = refused(json!({"type": "array", "items": {"enum": ["a"], "$ref": "https://x"}}));
    assert!(
        unusable.starts_with("the form's schema cannot be used: "),
        "{unusable}"
    );
}

/// A keyword that forms do not have is not sent, but the answer is still validated against it.
#[test]
fn unknown_alternatives_are_validated_without_being_shown() {
    let fields = json!({"f": {"type": "string", "oneOf": [{"pattern": "^x"}]}});
    assert_eq!(shown(&fields), json!({"f": {"type": "string"}}));
    let params = form(&fields, &[]);
    assert_eq!(raised(&params, &json!({"f": "xy"})), Ok(json!({"f": "xy"})));
    raised(&params, &json!({"f": "y"})).unwrap_err();
}

#[test]
fn the_message_of_a_repeated_question_has_the_reason() {
    let params = form(&json!({"c": colors()}), &[]);
    let LoweredElicitation { params, form } = lowered(&params, V06).unwrap();
    let answer = raw(&json!({"action": "accept", "content": {"c": "x"}}));
    let invalid = form.unwrap().raise(&answer).unwrap_err();
    let mut expected = value(&params);
    expected["message"] = json!(
        "Which?\n\nThe last answer was not accepted: \
        c: \"x\" is not one of the allowed values"
    );
    assert_eq!(value(&invalid.with_reason_in_message(&params)), expected);
}

proptest! {
    /// For any values, a default that is sent back as it was shown becomes the original default.
    #[test]
    fn a_default_comes_back_as_it_was(
        values in proptest::collection::btree_set("[a-c, \\[\"]{0,4}", 1..5),
        chosen in proptest::collection::vec(any::<bool>(), 5),
    ) {
        let values: Vec<_> = values.into_iter().collect();
        let chosen = values.iter().zip(chosen).filter(|(_, is_chosen)| *is_chosen);
        let chosen: Vec<_> = chosen.map(|(value, _)| value.clone()).collect();
        let fields = json!({"c": {"type": "array", "items": {"enum": values}, "default": chosen}});
        let written = shown(&fields)["c"]["default"].clone();
        let back = raised(&form(&fields, &[]), &json!({"c": written}));
        prop_assert_eq!(back, Ok(json!({"c": chosen})));
    }

    #[test]
    fn no_answer_panics(text in ".*", values in proptest::collection::vec("[a, ]{0,5}", 0..4)) {
        let field = json!({"type": "array", "items": {"enum": values}});
        let params = form(&json!({"c": field}), &[]);
        let is_one_of = |chosen: &Value| values.iter().any(|value| chosen == value);
        if let Ok(content) = raised(&params, &json!({"c": text})) {
            prop_assert!(content["c"].as_array().unwrap().iter().all(is_one_of));
        }
    }
}
