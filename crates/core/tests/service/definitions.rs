//! Definitions that cannot be offered.

use plexus_mcp_core::{
    BuildError, Builder, Context, Entry, InvalidDefinition, List, NoArguments, Raw, Section, Tool,
};
use plexus_mcp_protocol::schema::InvalidSchema;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::catalogue::{with_prompt, with_template};
use crate::support::{builder, raw};

fn error(builder: Builder) -> BuildError {
    builder.build().expect_err("the service cannot be built")
}

fn with_schema(schema: &Value) -> Builder {
    let tool = Tool::new("tool").input_schema(raw(schema));
    builder().tool_with_schema(tool, async |_: Raw, _: Context| ())
}

/// TOOL-10.
#[test]
fn tools_need_an_input_schema_of_objects() {
    for schema in [
        json!({}),
        json!({ "type": "string" }),
        json!(true),
        json!(7),
    ] {
        let error = error(with_schema(&schema));
        let BuildError::Schema { name, source } = &error else {
            panic!("{error:?}")
        };
        assert_eq!(
            (name.as_str(), &**source),
            ("tool", &InvalidSchema::NotOfObjects)
        );
        assert!(error.to_string().starts_with("tool \"tool\": "), "{error}");
    }
    let error = error(builder().tool(Tool::new("tool"), async |_: String, _: Context| ()));
    assert!(matches!(error, BuildError::Schema { .. }), "{error:?}");
}

/// JS-02: a schema that refers beyond itself is refused, and nothing is fetched.
#[test]
fn input_schemas_must_be_valid_and_whole() {
    for schema in [
        json!({ "type": "object", "properties": 7 }),
        json!({ "type": "object", "$ref": "https://example.com/schema.json" }),
    ] {
        let error = error(with_schema(&schema));
        assert!(matches!(error, BuildError::Schema { .. }), "{error:?}");
    }
}

/// HDR26-22: the tool at fault is named.
#[test]
fn header_annotations_must_be_valid() {
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Annotated {
        #[schemars(extend("x-mcp-header" = "not a header"))]
        value: String,
    }
    let tool = Tool::new("annotated");
    let error = error(builder().tool(tool, async |_: Annotated, _: Context| ()));
    let BuildError::Definition { name, source } = &error else {
        panic!("{error:?}")
    };
    assert_eq!(name, "annotated");
    assert!(
        matches!(**source, InvalidDefinition::Header(_)),
        "{source:?}"
    );
}

#[test]
fn templates_must_be_valid() {
    let error = error(with_template(builder(), "test://{"));
    assert!(matches!(error, BuildError::Template(_)), "{error:?}");
}

#[test]
fn values_are_proposed_only_for_what_is_there() {
    let prompt = with_prompt(builder(), "prompt");
    let template = with_template(builder(), "test://{id}");
    let misspelt = [
        prompt
            .clone()
            .complete_prompt("promt", "a", async |_: String, _| ["b"]),
        template
            .clone()
            .complete_template("test://{ID}", "a", async |_: String, _| ["b"]),
    ];
    for builder in misspelt {
        let error = error(builder);
        assert!(matches!(error, BuildError::Completion(_)), "{error:?}");
    }
    // A prompt and its completer may be added in any order, and are removed together.
    let before = builder().complete_prompt("prompt", "a", async |_: String, _| ["b"]);
    let both = with_prompt(before, "prompt");
    assert!(both.clone().build().is_ok());
    assert!(both.remove_prompt("prompt").build().is_ok());
    let both = template.complete_template("test://{id}", "id", async |_: String, _| ["b"]);
    assert!(both.remove_template("test://{id}").build().is_ok());
}

/// Of several errors, the first is reported.
#[test]
fn the_first_mistake_is_told() {
    let wrong = with_template(builder(), "test://{first");
    let wrong = with_template(wrong, "test://{second");
    let told = error(wrong).to_string();
    assert!(told.contains("first"), "{told}");
}

fn entry(section: Section, definition: &Value) -> Result<Entry, InvalidDefinition> {
    Entry::new(section, raw(definition))
}

#[test]
fn entries_are_named_by_the_member_of_their_list() {
    let schema = json!({ "type": "object" });
    for (section, definition) in [
        (
            Section::Tools,
            json!({ "name": "a", "inputSchema": schema }),
        ),
        (Section::Resources, json!({ "uri": "a", "name": "b" })),
        (
            Section::Templates,
            json!({ "uriTemplate": "a", "name": "b" }),
        ),
        (Section::Prompts, json!({ "name": "a" })),
    ] {
        let entry = entry(section, &definition).unwrap();
        assert_eq!(&*entry.key, "a");
        assert_eq!(entry.definition, raw(&definition));

        let error = Entry::new(section, raw(&json!({ "title": "a" }))).unwrap_err();
        assert!(matches!(error, InvalidDefinition::Unnamed(key) if key == section.key()));
        let unnamed = json!({ (section.key()): 7, "inputSchema": schema });
        let error = Entry::new(section, raw(&unnamed)).unwrap_err();
        assert!(matches!(error, InvalidDefinition::Unnamed(_)), "{error:?}");
        let error = Entry::new(section, raw(&json!([]))).unwrap_err();
        assert!(
            matches!(error, InvalidDefinition::Malformed(_)),
            "{error:?}"
        );
    }
}

/// TOOL-10.
#[test]
fn a_tool_without_an_input_schema_is_no_entry() {
    for definition in [
        json!({ "name": "a" }),
        json!({ "name": "a", "inputSchema": null }),
        json!({ "name": "a", "inputSchema": true }),
    ] {
        let error = entry(Section::Tools, &definition).unwrap_err();
        assert!(
            matches!(error, InvalidDefinition::NoInputSchema),
            "{error:?}"
        );
    }
}

/// TOOL-11: names are unique and case-sensitive.
#[test]
fn a_list_has_no_name_twice() {
    let prompt = |name: &str| entry(Section::Prompts, &json!({ "name": name })).unwrap();
    let list = List::new(vec![prompt("a"), prompt("A")]).unwrap();
    assert_eq!(&*list.get("A").unwrap().key, "A");
    assert!(list.get("b").is_none());
    let error = List::new(vec![prompt("a"), prompt("b"), prompt("a")]).unwrap_err();
    assert!(matches!(error, InvalidDefinition::Duplicate(name) if &*name == "a"));
}

/// An invalid edit returns its error, and the service stays as it was.
#[test]
fn a_service_that_was_built_is_free_of_mistakes() {
    let service = builder().build().unwrap();
    let before = plexus_mcp_core::Service::catalogue(&service);
    let edited = service.edit(|builder| {
        let builder = builder.tool(Tool::new("good"), async |_: NoArguments, _: Context| ());
        with_template(builder, "test://{")
    });
    assert!(matches!(edited, Err(BuildError::Template(_))), "{edited:?}");
    assert!(!before.has_changed().unwrap());
    assert!(service.edit(|builder| builder).is_ok());
}
