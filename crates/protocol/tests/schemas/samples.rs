//! One of everything, in its newest form and with every member set.

use plexus_mcp_protocol::key;
use plexus_mcp_protocol::messages::*;
use plexus_mcp_wire::{Limits, Object, Raw};

/// Adds the members that every result of the stateless era has.
pub(crate) fn stamped(result: &Raw, is_cacheable: bool) -> Raw {
    let mut result = Object::parse(result).unwrap();
    result.set("resultType", raw(r#""complete""#));
    if is_cacheable {
        result.set("ttlMs", raw("0"));
        result.set("cacheScope", raw(r#""private""#));
    }
    result.set("_meta", server_info_meta());
    result.to_raw()
}

pub(crate) fn server_info_meta() -> Raw {
    let mut meta = Object::new();
    meta.set(key::SERVER_INFO, implementation().to_raw());
    meta.to_raw()
}

pub(crate) fn server_capabilities() -> ServerCapabilities {
    ServerCapabilities {
        tools: Some(ListCapability { list_changed: true }),
        resources: Some(ResourcesCapability {
            subscribe: true,
            list_changed: true,
        }),
        prompts: Some(ListCapability::default()),
        completions: true,
        logging: true,
        extensions: Some(raw(r#"{"io.modelcontextprotocol/ui":{}}"#)),
        experimental: Some(raw(r#"{"x":{}}"#)),
    }
}

pub(crate) fn raw(json: &str) -> Raw {
    Raw::parse(json.to_owned().into(), &Limits::default()).unwrap()
}

pub(crate) fn meta() -> Raw {
    raw(r#"{"example.com/x":1}"#)
}

pub(crate) fn icon() -> Icon {
    Icon::new("https://a.example/i.png")
        .mime_type("image/png")
        .size("48x48")
}

pub(crate) fn annotations() -> Annotations {
    Annotations::new()
        .audience([Role::User])
        .priority(0.5)
        .last_modified("2025-01-12T15:00:58Z")
}

pub(crate) fn implementation() -> Implementation {
    Implementation::new("plexus", "1.0")
        .title("Plexus")
        .description("Joins everything")
        .website_url("https://a.example")
        .icon(icon())
}

pub(crate) fn tool() -> Tool {
    Tool::new("t")
        .title("T")
        .description("Does it")
        .input_schema(raw(r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}"#))
        .output_schema(raw(r#"{"type":"object","properties":{"b":{"type":"integer"}}}"#))
        .annotations(ToolAnnotations::new().read_only(true).destructive(false).idempotent(true).open_world(false))
        .icon(icon())
        .meta(meta())
}

pub(crate) fn resource() -> Resource {
    Resource::new("file:///a", "a")
        .title("A")
        .description("A file")
        .mime_type("text/plain")
        .size(3)
        .annotations(annotations())
        .icon(icon())
        .meta(meta())
}

pub(crate) fn prompt() -> Prompt {
    let argument = PromptArgument::new("a")
        .title("A")
        .description("An argument")
        .required();
    Prompt::new("p")
        .title("P")
        .description("A prompt")
        .argument(argument)
        .icon(icon())
        .meta(meta())
}

pub(crate) fn blocks() -> Vec<ContentBlock> {
    let mut embedded =
        ContentBlock::resource(ResourceContents::blob("file:///b", [0, 255]).mime_type("a/b"));
    if let ContentBlock::Resource(embedded) = &mut embedded {
        embedded.meta = Some(meta());
    }
    let blocks = [
        ContentBlock::text("hello"),
        ContentBlock::image([1, 2, 3], "image/png"),
        ContentBlock::audio([1, 2, 3], "audio/wav"),
        ContentBlock::link(resource()),
        ContentBlock::resource(ResourceContents::text("file:///a", "text")),
        embedded,
    ];
    blocks
        .into_iter()
        .map(|block| block.annotated(annotations()))
        .collect()
}

pub(crate) fn call_tool_result() -> CallToolResult {
    CallToolResult::new(blocks())
        .structured_content(raw(r#"{"b":1}"#))
        .meta(meta())
}

pub(crate) fn get_prompt_result() -> GetPromptResult {
    let messages = blocks().into_iter().map(PromptMessage::user);
    GetPromptResult::new(messages.chain([PromptMessage::assistant("fine")])).description("d")
}

pub(crate) fn read_resource_result() -> ReadResourceResult {
    let mut text = ResourceContents::text("file:///a", "text").mime_type("text/plain");
    if let ResourceContents::Text { meta: own, .. } = &mut text {
        *own = Some(meta());
    }
    ReadResourceResult::new([text, ResourceContents::blob("file:///b", [0, 255])])
}

pub(crate) fn create_message_params() -> CreateMessageParams {
    let several = SamplingMessage {
        role: Role::User,
        content: vec![
            "one".into(),
            SamplingContent::Image(MediaContent::new([1], "image/png")),
        ],
        meta: Some(meta()),
    };
    let hints = vec![ModelHint {
        name: Some("m".to_owned()),
    }];
    let model_preferences = ModelPreferences {
        hints,
        cost_priority: Some(1.0),
        ..Default::default()
    };
    CreateMessageParams {
        model_preferences: Some(model_preferences),
        include_context: Some(IncludeContext::ThisServer),
        temperature: Some(0.5),
        stop_sequences: vec!["stop".to_owned()],
        metadata: Some(raw(r#"{"a":1}"#)),
        ..CreateMessageParams::new([SamplingMessage::assistant("hm"), several], 100)
            .system_prompt("be kind")
    }
}

pub(crate) fn create_message_params_with_tools() -> CreateMessageParams {
    let tool_use = ToolUseContent {
        id: "1".to_owned(),
        name: "t".to_owned(),
        input: raw("{}"),
        meta: None,
    };
    let tool_result = ToolResultContent {
        tool_use_id: "1".to_owned(),
        content: blocks(),
        structured_content: Some(raw("[1]")),
        is_error: true,
        meta: Some(meta()),
    };
    let message = |role, block| SamplingMessage {
        role,
        content: vec![block],
        meta: None,
    };
    let messages = [
        message(Role::Assistant, SamplingContent::ToolUse(tool_use)),
        message(Role::User, SamplingContent::ToolResult(tool_result)),
    ];
    CreateMessageParams {
        tools: vec![tool().output_schema(raw(r#"{"type":"array"}"#))],
        tool_choice: Some(ToolChoice {
            mode: Some(ToolChoiceMode::Required),
        }),
        ..CreateMessageParams::new(messages, 100)
    }
}
