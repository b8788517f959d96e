use serde::Deserialize;

use super::*;

fn schema<T: JsonSchema>() -> Value {
    schema_of::<T>().decode().unwrap()
}

fn form(schema: &Value) -> Result<Form, AskError> {
    Form::new(&Raw::encode(schema).unwrap())
}

/// Private thoughts.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is looked at")]
struct Everything {
    /// As others call you.
    name: String,
    nickname: Option<String>,
    #[schemars(extend("format" = "email"))]
    address: Option<String>,
    #[serde(default = "thirty")]
    #[schemars(range(min = 0, max = 150))]
    age: u8,
    score: f64,
    #[serde(default)]
    subscribe: bool,
    /// How to ship.
    plain: Plain,
    maybe: Option<Plain>,
    titled: Titled,
    maybe_titled: Option<Titled>,
    several: Vec<Plain>,
    several_titled: Vec<Titled>,
}

fn thirty() -> u8 {
    30
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Plain {
    Fast,
    Slow,
}

/// With the milk.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Titled {
    /// The first
    One,
    #[schemars(title = "The second")]
    Two,
    Three,
}

/// ELIC-07: a Rust type with every kind of field becomes a form schema of the protocol.
#[test]
fn a_rust_type_makes_a_form() {
    let schema = schema::<Everything>();
    assert!(form(&schema).is_ok());
    let described = "With the milk.";
    let titled = json!([
        { "const": "three", "title": "three" },
        { "const": "one", "title": "The first" },
        { "const": "two", "title": "The second" },
    ]);
    let expected = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "As others call you." },
            "nickname": { "type": "string" },
            "address": { "type": "string", "format": "email" },
            "age": { "type": "integer", "minimum": 0, "maximum": 150, "default": 30 },
            "score": { "type": "number" },
            "subscribe": { "type": "boolean", "default": false },
            "plain": { "type": "string", "enum": ["fast", "slow"], "description": "How to ship." },
            "maybe": { "type": "string", "enum": ["fast", "slow"] },
            "titled": { "type": "string", "oneOf": titled, "description": described },
            "maybe_titled": { "type": "string", "oneOf": titled, "description": described },
            "several": { "type": "array", "items": { "type": "string", "enum": ["fast", "slow"] } },
            "several_titled": { "type": "array", "items": { "anyOf": titled } },
        },
        "required": ["name", "score", "plain", "titled", "several", "several_titled"],
    });
    assert_eq!(schema, expected);
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is looked at")]
struct Nested {
    inner: Inner,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is looked at")]
struct Inner {
    name: String,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is looked at")]
struct FreeList {
    names: Vec<String>,
}

/// ELIC-07: a schema that is not a flat object is refused as a form.
#[test]
fn only_flat_objects_are_forms() {
    let with_field = |field: Value| json!({ "type": "object", "properties": { "a": field } });
    for schema in [
        schema::<String>(),
        schema::<Vec<Inner>>(),
        schema::<Nested>(),
        schema::<FreeList>(),
        json!({ "type": "object" }),
        json!({ "properties": {} }),
        with_field(json!({})),
        with_field(json!(true)),
        with_field(json!({ "type": "null" })),
        with_field(json!({ "type": ["string", "number"] })),
        with_field(json!({ "type": "array" })),
        with_field(json!({ "type": "string", "pattern": "(" })),
        json!(null),
        json!(7),
    ] {
        let refused = matches!(form(&schema), Err(AskError::Unaskable(_)));
        assert!(refused, "{schema}");
    }
}

/// ELIC-15, ELIC-19: only an accepted form has to be filled in, and in the way that was asked for.
#[test]
fn answers_are_held_against_the_schema() {
    let age = json!({ "type": "integer", "minimum": 18 });
    let properties = json!({ "name": { "type": "string" }, "age": age });
    let form = form(&json!({
        "type": "object",
        "properties": properties,
        "required": ["name"],
    }))
    .unwrap();
    let accept = |content: Value| ElicitResult::accept(Raw::encode(&content).unwrap());
    for answer in [
        accept(json!({ "name": "Kim" })),
        accept(json!({ "name": "Kim", "age": 18 })),
        ElicitResult::decline(),
        ElicitResult::cancel(),
    ] {
        assert_eq!(form.check(&answer), Ok(()), "{answer:?}");
    }
    for answer in [
        accept(json!({})),
        accept(json!({ "name": 7 })),
        accept(json!({ "name": "Kim", "age": 17 })),
        accept(json!({ "name": "Kim", "age": null })),
        accept(json!([])),
        ElicitResult::accept_url(),
    ] {
        let refused = matches!(form.check(&answer), Err(AskError::Malformed(_)));
        assert!(refused, "{answer:?}");
    }
}

/// Nothing to fill in may be sent as nothing.
#[test]
fn content_may_be_left_out_where_nothing_is_required() {
    let form = form(&json!({ "type": "object", "properties": {} })).unwrap();
    assert_eq!(form.check(&ElicitResult::accept_url()), Ok(()));
}
