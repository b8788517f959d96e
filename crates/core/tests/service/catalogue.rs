//! The catalogue and the capabilities of a service.

use plexus_mcp_core::{
    Builder, CacheHints, Context, Implementation, NoArguments, Prompt, PromptMessage, Raw,
    Resource, ResourceContents, ResourceTemplate, Section, Tool, Variables,
};
use plexus_mcp_protocol::messages::{ListCapability, ResourcesCapability, ServerCapabilities};
use serde_json::json;

use crate::support::{Caller, builder, raw, value};

pub(crate) fn with_tool(builder: Builder, tool: Tool) -> Builder {
    builder.tool(tool, async |_: NoArguments, _: Context| ())
}

pub(crate) fn with_resource(builder: Builder, uri: &str) -> Builder {
    let handler = async |uri: String, _: Context| ResourceContents::text(uri, "");
    builder.resource(Resource::new(uri, "resource"), handler)
}

pub(crate) fn with_template(builder: Builder, uri: &str) -> Builder {
    let handler = async |uri: String, _: Variables, _: Context| ResourceContents::text(uri, "");
    builder.template(ResourceTemplate::new(uri, "template"), handler)
}

pub(crate) fn with_prompt(builder: Builder, name: &str) -> Builder {
    let handler = async |_: NoArguments, _: Context| PromptMessage::user("");
    builder.prompt(Prompt::new(name), handler)
}

fn names(builder: Builder, section: Section) -> Vec<String> {
    let catalogue = Caller::of(builder).catalogue();
    let entries = catalogue.list(section).entries().iter();
    entries.map(|entry| entry.key.as_ref().to_owned()).collect()
}

/// S001-07: lists are in the order of registration. An entry that is added again keeps its place.
#[test]
fn lists_keep_the_order_of_registration() {
    let mut building = builder();
    for name in ["c", "a", "b", "a"] {
        let uri = format!("test://{name}");
        building = with_tool(building, Tool::new(name));
        building = with_resource(building, &uri);
        building = with_template(building, &format!("{uri}/{{id}}"));
        building = with_prompt(building, name);
    }
    assert_eq!(names(building.clone(), Section::Tools), ["c", "a", "b"]);
    assert_eq!(names(building.clone(), Section::Prompts), ["c", "a", "b"]);
    let uris = ["test://c", "test://a", "test://b"];
    assert_eq!(names(building.clone(), Section::Resources), uris);
    let templates = uris.map(|uri| format!("{uri}/{{id}}"));
    assert_eq!(names(building, Section::Templates), templates);
}

#[test]
fn adding_a_tool_again_replaces_it() {
    let older = with_tool(builder(), Tool::new("tool").description("older"));
    let caller = Caller::of(with_tool(older, Tool::new("tool").description("newer")));
    let catalogue = caller.catalogue();
    let [tool] = catalogue.list(Section::Tools).entries() else {
        panic!("there is one tool")
    };
    assert_eq!(value(&tool.definition)["description"], "newer");
}

fn capabilities(builder: Builder) -> ServerCapabilities {
    Caller::of(builder).catalogue().capabilities.clone()
}

/// C43: the declared capabilities are exactly those of the registered entries.
#[test]
fn capabilities_are_what_is_registered() {
    let nothing = ServerCapabilities {
        logging: true,
        ..ServerCapabilities::default()
    };
    assert_eq!(capabilities(builder()), nothing);

    let list_changed = ListCapability { list_changed: true };
    let tools = ServerCapabilities {
        tools: Some(list_changed),
        ..nothing.clone()
    };
    assert_eq!(capabilities(with_tool(builder(), Tool::new("a"))), tools);

    let resources = ServerCapabilities {
        resources: Some(ResourcesCapability {
            subscribe: true,
            list_changed: true,
        }),
        ..nothing.clone()
    };
    assert_eq!(capabilities(with_resource(builder(), "a://b")), resources);
    assert_eq!(capabilities(with_template(builder(), "a://{b}")), resources);

    let prompts = ServerCapabilities {
        prompts: Some(list_changed),
        ..nothing
    };
    let prompt = with_prompt(builder(), "a");
    assert_eq!(capabilities(prompt.clone()), prompts);
    // Expected prompts are declared at once, because a client may read the capabilities only once.
    assert_eq!(capabilities(builder().expecting_prompts()), prompts);

    // COMP-01
    let completions = ServerCapabilities {
        completions: true,
        ..prompts
    };
    let completed = prompt.complete_prompt("a", "b", async |_: String, _| ["c"]);
    assert_eq!(capabilities(completed), completions);
}

/// S000-39, C44: an unchanging service does not declare `listChanged`.
#[test]
fn unchanging_services_announce_no_changes() {
    let all = with_tool(builder(), Tool::new("a"));
    let all = with_prompt(with_resource(all, "a://b"), "a");
    let declared = capabilities(all.unchanging());
    assert!(declared.tools.is_some_and(|tools| !tools.list_changed));
    assert!(
        declared
            .prompts
            .is_some_and(|prompts| !prompts.list_changed)
    );
    let resources = declared.resources.unwrap();
    assert!(resources.subscribe && !resources.list_changed);
}

#[test]
fn a_service_says_who_it_is_and_how_to_use_it() {
    let hints = CacheHints {
        ttl_ms: 1000,
        public: true,
    };
    let described = builder()
        .identity(Implementation::new("other", "2.0.0"))
        .instructions("Call nothing.")
        .cache(hints);
    let catalogue = Caller::of(described).catalogue();
    assert_eq!(catalogue.identity, Implementation::new("other", "2.0.0"));
    assert_eq!(catalogue.instructions.as_deref(), Some("Call nothing."));
    assert_eq!(catalogue.cache, hints);

    let plain = Caller::of(builder()).catalogue();
    assert_eq!(plain.identity, Implementation::new("test", "1.0.0"));
    assert_eq!(
        (&plain.instructions, plain.cache),
        (&None, CacheHints::NONE)
    );
}

fn hash(builder: Builder) -> [u8; 32] {
    *Caller::of(builder).catalogue().list(Section::Tools).hash()
}

fn golden(description: &str) -> Builder {
    let schema = json!({ "type": "object" });
    let tool = Tool::new("golden")
        .description(description)
        .input_schema(raw(&schema));
    let builder = builder().tool_with_schema(tool, async |_: Raw, _: Context| ());
    builder.tool_with_schema(
        Tool::new("other").input_schema(raw(&schema)),
        async |_: Raw, _: Context| (),
    )
}

/// The hash is the same in every process and on every machine: caches and cursors outlive both.
#[test]
fn the_hash_of_a_list_is_stable() {
    let known = [
        0xd4, 0x3f, 0x30, 0x73, 0xb0, 0x8a, 0x65, 0xb1, 0x3d, 0xe0, 0xd7, 0x09, 0x71, 0x10, 0x00,
        0x95, 0x64, 0x08, 0x77, 0x2e, 0x5d, 0xc7, 0xd2, 0x72, 0x48, 0xdc, 0xe3, 0xe4, 0xe2, 0x84,
        0xdb, 0x92,
    ];
    assert_eq!(hash(golden("Never changes")), known);
}

#[test]
fn the_hash_of_a_list_changes_with_any_definition_and_their_order() {
    let one = |name| Tool::new(name);
    let hashes = [
        hash(builder()),
        hash(golden("Never changes")),
        hash(golden("Never changes.")),
        hash(with_tool(with_tool(builder(), one("a")), one("b"))),
        hash(with_tool(with_tool(builder(), one("b")), one("a"))),
    ];
    for (position, hash) in hashes.iter().enumerate() {
        assert!(!hashes[..position].contains(hash), "{hashes:?}");
    }
}
