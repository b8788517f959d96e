//! Everything we can say, in each revision, against that revision's official JSON Schema.
//!
//! The schemas leave every object open, so that a member of a newer revision would go unnoticed.
//! Here they are closed first: what we lower to a revision has only members the revision knows, and
//! `_meta` in definitions.
//!
//! Quirks of the schemas, all of generating them from TypeScript, and what we make of them:
//! - `number` becomes `integer` in the values of an elicitation's answer and in free JSON objects,
//!   which also lack `null`: the samples hold integers there.
//! - Schemas for tools and forms are described by what each revision's own texts use of JSON Schema.
//!   They hold more than that, and must: those descriptions stay open.

#![cfg(test)]

mod official;
mod samples;

use official::Official;
use plexus_mcp_protocol::messages::*;
use plexus_mcp_protocol::{Era, Features, Revision, convert};
use plexus_mcp_wire::{Id, Raw};
use samples::*;

#[test]
fn v2024_11_05() {
    check(Revision::V2024_11_05);
}

#[test]
fn v2025_03_26() {
    check(Revision::V2025_03_26);
}

#[test]
fn v2025_06_18() {
    check(Revision::V2025_06_18);
}

#[test]
fn v2025_11_25() {
    check(Revision::V2025_11_25);
}

#[test]
fn v2026_07_28() {
    check(Revision::V2026_07_28);
}

/// The tests above would prove nothing if the schemas let anything pass.
#[test]
fn the_schemas_reject_messages_that_are_not_lowered() {
    let official = Official::load(Revision::V2024_11_05);
    let newest = [
        ("Tool", tool().to_raw()),
        ("Resource", resource().to_raw()),
        ("Prompt", prompt().to_raw()),
        ("Implementation", implementation().to_raw()),
        ("CallToolResult", call_tool_result().to_raw()),
        ("GetPromptResult", get_prompt_result().to_raw()),
        ("ReadResourceResult", read_resource_result().to_raw()),
    ];
    for (definition, message) in newest {
        assert!(
            official.complaint(definition, &message).is_some(),
            "{definition}"
        );
    }
}

fn check(revision: Revision) {
    let official = Official::load(revision);
    let features = revision.features();
    check_definitions(&official, features);
    check_results(&official, features);
    check_notifications(&official, features);
    check_questions_and_answers(&official, features);
    match features.era {
        Era::Handshake => check_handshake(&official, revision),
        Era::Stateless => check_stateless(&official, features),
    }
}

fn check_definitions(official: &Official, features: &Features) {
    official.accepts(
        "Tool",
        &convert::tool_definition(&tool().to_raw(), features),
    );
    let with_list = tool().output_schema(raw(r#"{"type":"array","items":true}"#));
    official.accepts(
        "Tool",
        &convert::tool_definition(&with_list.to_raw(), features),
    );
    let with_anything = tool().input_schema(raw(
        r#"{"type":"object","properties":{"a":true,"b":false}}"#,
    ));
    official.accepts(
        "Tool",
        &convert::tool_definition(&with_anything.to_raw(), features),
    );
    official.accepts(
        "Tool",
        &convert::tool_definition(&Tool::new("bare").to_raw(), features),
    );

    official.accepts(
        "Resource",
        &convert::resource_definition(&resource().to_raw(), features),
    );
    let template = ResourceTemplate::new("file:///{path}", "files")
        .title("Files")
        .description("All of them")
        .mime_type("text/plain")
        .annotations(annotations())
        .icon(icon())
        .meta(meta());
    let template = convert::template_definition(&template.to_raw(), features);
    official.accepts("ResourceTemplate", &template);
    official.accepts(
        "Prompt",
        &convert::prompt_definition(&prompt().to_raw(), features),
    );
    let implementation = convert::implementation(&implementation().to_raw(), features);
    official.accepts("Implementation", &implementation);
}

fn check_results(official: &Official, features: &Features) {
    let newest = |result: Raw| stamped(&result, false);
    let newest_cacheable = |result: Raw| stamped(&result, true);

    let structured =
        [r#"{"a":1}"#, "[1]", "null"].map(|json| CallToolResult::structured(raw(json)));
    let others = [
        call_tool_result(),
        CallToolResult::error("no"),
        CallToolResult::default(),
    ];
    for result in structured.into_iter().chain(others) {
        let result = convert::call_tool_result(&newest(result.to_raw()), features);
        official.accepts("CallToolResult", &result);
    }
    let result = convert::get_prompt_result(&newest(get_prompt_result().to_raw()), features);
    official.accepts("GetPromptResult", &result);
    let result = newest_cacheable(read_resource_result().to_raw());
    official.accepts(
        "ReadResourceResult",
        &convert::read_resource_result(&result, features),
    );

    let values = (0..1_000).map(|number| number.to_string());
    let result = newest(CompleteResult::from(Completion::new(values)).to_raw());
    official.accepts("CompleteResult", &convert::result(&result, features));

    let next_cursor = Some("x".to_owned());
    let tools = vec![convert::tool_definition(&tool().to_raw(), features)];
    let result = newest_cacheable(
        ListToolsResult {
            tools,
            next_cursor: next_cursor.clone(),
        }
        .to_raw(),
    );
    official.accepts("ListToolsResult", &convert::result(&result, features));
    let prompts = vec![convert::prompt_definition(&prompt().to_raw(), features)];
    let result = newest_cacheable(
        ListPromptsResult {
            prompts,
            next_cursor: next_cursor.clone(),
        }
        .to_raw(),
    );
    official.accepts("ListPromptsResult", &convert::result(&result, features));
    let resources = vec![convert::resource_definition(&resource().to_raw(), features)];
    let result = newest_cacheable(
        ListResourcesResult {
            resources,
            next_cursor,
        }
        .to_raw(),
    );
    official.accepts("ListResourcesResult", &convert::result(&result, features));
    let result = ListResourceTemplatesResult {
        resource_templates: Vec::new(),
        next_cursor: None,
    };
    let result = newest_cacheable(result.to_raw());
    official.accepts(
        "ListResourceTemplatesResult",
        &convert::result(&result, features),
    );
}

fn check_notifications(official: &Official, features: &Features) {
    for (progress, total) in [(1.0, None), (0.5, Some(2.0)), (1e300, Some(f64::MAX))] {
        let message = features.progress_message.then(|| "half".to_owned());
        let params = ProgressParams {
            progress_token: Id::from("t"),
            progress,
            total,
            message,
        };
        official.accepts_call(
            "ProgressNotification",
            "notifications/progress",
            &params.to_raw(),
        );
    }
    for level in LogLevel::ALL {
        let params = LoggingMessageParams {
            level,
            logger: Some("l".to_owned()),
            data: raw("[1.5,null]"),
        };
        official.accepts_call(
            "LoggingMessageNotification",
            "notifications/message",
            &params.to_raw(),
        );
    }
    let params = CancelledParams {
        request_id: Id::from(7_i64),
        reason: Some("late".to_owned()),
    };
    official.accepts_call(
        "CancelledNotification",
        "notifications/cancelled",
        &params.to_raw(),
    );
    let params = ResourceUriParams {
        uri: "file:///a".to_owned(),
    };
    let method = "notifications/resources/updated";
    official.accepts_call("ResourceUpdatedNotification", method, &params.to_raw());
}

fn check_questions_and_answers(official: &Official, features: &Features) {
    let form = raw(r#"{"type":"object","required":["s"],"properties":{
            "s":{"type":"string","title":"S","format":"email","default":"a@b.example"},
            "n":{"type":"integer","minimum":1,"maximum":9},
            "b":{"type":"boolean","default":true},
            "e":{"type":"string","enum":["a","b"]},
            "t":{"type":"string","oneOf":[{"const":"a","title":"A"}]}}}"#);
    let several = raw(r#"{"type":"object","properties":{
            "u":{"type":"array","items":{"type":"string","enum":["a"]},"minItems":1},
            "t":{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}}}"#);
    let has_elicitation = official.defines("ElicitRequest");
    // A client that declares elicitation before there is any is asked as in the first revision of it.
    let first = Official::load(Revision::V2025_06_18);
    let judge = if has_elicitation { official } else { &first };
    for (params, is_url) in [
        (ElicitParams::form("who?", form), false),
        (ElicitParams::form("which?", several), false),
        (ElicitParams::url("go", "https://a.example/x"), true),
    ] {
        let lowered = convert::elicitation(&params.to_raw(), features, || "minted".to_owned());
        match lowered {
            Ok(lowered) => {
                judge.accepts_call("ElicitRequest", "elicitation/create", &lowered.params);
            }
            Err(error) => assert!(is_url && !features.rich_elicitation_forms, "{error}"),
        }
    }
    if has_elicitation {
        let filled_in = ElicitResult::accept(raw(r#"{"s":"x","n":1,"b":true}"#));
        for answer in [
            filled_in,
            ElicitResult::accept_url(),
            ElicitResult::decline(),
            ElicitResult::cancel(),
        ] {
            official.accepts("ElicitResult", &answer.to_raw());
        }
    }

    let mut asked = 0;
    for params in [create_message_params(), create_message_params_with_tools()] {
        if let Ok(params) = convert::sampling_params(&params.to_raw(), features) {
            official.accepts_call("CreateMessageRequest", "sampling/createMessage", &params);
            asked += 1;
        }
    }
    assert_eq!(asked, if features.sampling_tools { 2 } else { 1 });
    let answer = CreateMessageResult {
        role: Role::Assistant,
        content: vec!["hello".into()],
        model: "m".to_owned(),
        stop_reason: Some("endTurn".to_owned()),
    };
    official.accepts("CreateMessageResult", &answer.to_raw());
    let answer = ListRootsResult {
        roots: vec![Root::new("file:///home")],
    };
    official.accepts("ListRootsResult", &answer.to_raw());
}

fn check_handshake(official: &Official, revision: Revision) {
    let features = revision.features();
    let params = InitializeParams {
        protocol_version: revision.to_string(),
        capabilities: ClientCapabilities::from_raw(&raw(
            r#"{"roots":{"listChanged":true},"sampling":{}}"#,
        ))
        .unwrap(),
        client_info: Implementation::new("client", "1"),
    };
    official.accepts_call("InitializeRequest", "initialize", &params.to_raw());
    let capabilities = ServerCapabilities {
        extensions: None,
        ..server_capabilities()
    };
    let result = InitializeResult {
        protocol_version: revision.to_string(),
        capabilities: capabilities.to_raw(features),
        server_info: convert::implementation(&implementation().to_raw(), features),
        instructions: Some("be kind".to_owned()),
    };
    official.accepts("InitializeResult", &result.to_raw());

    let params = SetLevelParams {
        level: LogLevel::Notice,
    };
    official.accepts_call("SetLevelRequest", "logging/setLevel", &params.to_raw());
    let params = CallToolParams {
        name: "t".to_owned(),
        arguments: Some(raw(r#"{"a":1.5}"#)),
    };
    official.accepts_call("CallToolRequest", "tools/call", &params.to_raw());
    let params = GetPromptParams {
        name: "p".to_owned(),
        arguments: [("a".to_owned(), "b".to_owned())].into(),
    };
    official.accepts_call("GetPromptRequest", "prompts/get", &params.to_raw());
    official.accepts_call(
        "ListToolsRequest",
        "tools/list",
        &ListParams::default().to_raw(),
    );
    for (definition, method) in [
        ("ReadResourceRequest", "resources/read"),
        ("SubscribeRequest", "resources/subscribe"),
        ("UnsubscribeRequest", "resources/unsubscribe"),
    ] {
        let params = ResourceUriParams {
            uri: "file:///a".to_owned(),
        };
        official.accepts_call(definition, method, &params.to_raw());
    }
    let references = [
        CompletionReference::Prompt {
            name: "p".to_owned(),
        },
        CompletionReference::Resource {
            uri: "file:///{path}".to_owned(),
        },
    ];
    for reference in references {
        let argument = CompletionArgument {
            name: "a".to_owned(),
            value: "b".to_owned(),
        };
        let known = features
            .completion_context
            .then(|| ("c".to_owned(), "d".to_owned()));
        let context = CompletionContext {
            arguments: known.into_iter().collect(),
        };
        let params = CompleteParams {
            reference,
            argument,
            context,
        };
        official.accepts_call("CompleteRequest", "completion/complete", &params.to_raw());
    }
}

fn check_stateless(official: &Official, features: &Features) {
    let result = DiscoverResult {
        supported_versions: Revision::ALL.map(|revision| revision.to_string()).to_vec(),
        capabilities: server_capabilities().to_raw(features),
        instructions: Some("be kind".to_owned()),
        ttl_ms: 0,
        cache_scope: CacheScope::Private,
        meta: Some(server_info_meta()),
    };
    official.accepts("DiscoverResult", &result.to_raw());

    let mut result = InputRequiredResult {
        request_state: Some("s".to_owned()),
        ..Default::default()
    };
    official.accepts("InputRequiredResult", &result.to_raw());
    let url = ElicitParams::url("go", "https://a.example/x");
    for (key, method, params) in [
        ("q1", "elicitation/create", Some(url.to_raw())),
        (
            "q2",
            "sampling/createMessage",
            Some(create_message_params_with_tools().to_raw()),
        ),
        ("q3", "roots/list", None),
    ] {
        result.ask(
            key,
            &InputRequest {
                method: method.to_owned(),
                params,
            },
        );
    }
    official.accepts("InputRequiredResult", &result.to_raw());

    let filter = SubscriptionFilter {
        tools_list_changed: true,
        resource_subscriptions: vec!["file:///a".to_owned()],
        ..Default::default()
    };
    let params = ListenParams {
        notifications: filter,
    };
    let method = "notifications/subscriptions/acknowledged";
    official.accepts_call(
        "SubscriptionsAcknowledgedNotification",
        method,
        &params.to_raw(),
    );

    for capability in [
        ClientCapability::Roots,
        ClientCapability::Sampling,
        ClientCapability::SamplingTools,
        ClientCapability::SamplingContext,
        ClientCapability::ElicitationForm,
        ClientCapability::ElicitationUrl,
    ] {
        official.accepts("ClientCapabilities", &capability.required());
    }
}
