use plexus_mcp_wire::{Id, Limits, Raw};
use serde::de::DeserializeOwned;

use super::*;
use crate::Revision;

fn raw(json: &str) -> Raw {
    Raw::parse(json.to_owned().into(), &Limits::default()).unwrap()
}

fn read<T: DeserializeOwned>(json: &str) -> T {
    raw(json).decode().unwrap()
}

fn is_refused<T: DeserializeOwned>(json: &str) -> bool {
    raw(json).decode::<T>().is_err()
}

/// S002-21: a client that reads `isError` without a default is served too.
#[test]
fn a_tool_result_says_whether_it_failed() {
    assert_eq!(
        CallToolResult::text("done").to_raw().as_str(),
        r#"{"content":[{"type":"text","text":"done"}],"isError":false}"#
    );
    assert_eq!(
        CallToolResult::error("no").to_raw().as_str(),
        r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#
    );
    assert!(!read::<CallToolResult>(r#"{"content":[]}"#).is_error);
}

/// TRANSLATION §12.28: in 2026-07-28 `null` is a structured value like any other.
#[test]
fn structured_content_that_is_null_is_not_absent() {
    let null: CallToolResult = read(r#"{"content":[],"structuredContent":null}"#);
    assert_eq!(null.structured_content, Some(Raw::null()));
    assert_eq!(
        null.to_raw().as_str(),
        r#"{"content":[],"structuredContent":null,"isError":false}"#
    );
    assert_eq!(
        read::<CallToolResult>(r#"{"content":[]}"#).structured_content,
        None
    );
}

/// TOOL-08: structured data is also given as text, digit for digit.
#[test]
fn structured_results_carry_their_text() {
    let result = CallToolResult::structured(raw(r#"{"n":1.50}"#));
    assert_eq!(result.content, [ContentBlock::text(r#"{"n":1.50}"#)]);
    assert_eq!(result.structured_content, Some(raw(r#"{"n":1.50}"#)));
}

/// S004-K027.
#[test]
fn media_is_base64() {
    assert_eq!(
        ContentBlock::image([0xfb, 0xff], "image/png")
            .to_raw()
            .as_str(),
        r#"{"type":"image","data":"+/8=","mimeType":"image/png"}"#
    );
}

/// C41: an embedded resource is nested, never flat.
#[test]
fn embedded_resources_are_nested() {
    let block = ContentBlock::resource(ResourceContents::text("x:y", "t").mime_type("text/plain"));
    let json = r#"{"type":"resource","resource":{"uri":"x:y","mimeType":"text/plain","text":"t"}}"#;
    assert_eq!(block.to_raw().as_str(), json);
    assert_eq!(read::<ContentBlock>(json), block);
    assert!(is_refused::<ContentBlock>(
        r#"{"type":"resource","uri":"x:y","text":"t"}"#
    ));
}

/// S004-24, S004-K020.
#[test]
fn resource_contents_are_text_or_blob() {
    assert!(is_refused::<ResourceContents>(r#"{"uri":"x:y"}"#));
    assert!(is_refused::<ResourceContents>(
        r#"{"uri":"x:y","text":"","blob":""}"#
    ));
    let blob: ResourceContents = read(r#"{"uri":"x:y","blob":"AA=="}"#);
    assert_eq!(blob, ResourceContents::blob("x:y", [0]));
    assert_eq!(blob.uri(), "x:y");
}

#[test]
fn unknown_blocks_survive() {
    let json = r#"{"type":"hologram","depth":1.50,"type2":null}"#;
    let block: ContentBlock = read(json);
    assert_eq!(block, ContentBlock::Other(raw(json)));
    assert_eq!(block.to_raw().as_str(), json);
    let content: SamplingContent = read(json);
    assert_eq!(Raw::encode(&content).unwrap().as_str(), json);
    assert!(is_refused::<ContentBlock>(r#"{"text":"no type"}"#));
}

/// S000-47, S003-39, S004-23, S004-K015.
#[test]
fn every_block_round_trips() {
    let annotations = Annotations::new().audience([Role::Assistant]).priority(2.0);
    assert_eq!(annotations.priority, Some(1.0), "priorities end at one");
    for block in [
        ContentBlock::text("t"),
        ContentBlock::image([1], "image/png"),
        ContentBlock::audio([1], "audio/wav"),
        ContentBlock::link(Resource::new("x:y", "n").size(7)),
        ContentBlock::resource(ResourceContents::blob("x:y", [1])),
    ] {
        let block = block.annotated(annotations.clone());
        assert!(
            block
                .to_raw()
                .as_str()
                .contains(r#""annotations":{"audience":["assistant"],"priority":1}"#)
        );
        assert_eq!(read::<ContentBlock>(block.to_raw().as_str()), block);
    }
}

/// S004-22, C40, S004-K025: the specification's names are written, and both are read.
#[test]
fn tool_hints_are_read_by_either_name() {
    let older: ToolAnnotations =
        read(r#"{"readOnly":true,"destructive":false,"idempotent":true,"openWorld":false}"#);
    let hints = ToolAnnotations::new()
        .read_only(true)
        .destructive(false)
        .idempotent(true)
        .open_world(false);
    assert_eq!(older, hints);
    let tool = Tool::new("t").annotations(hints).to_raw();
    assert!(tool.as_str().contains(
        r#"{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}"#
    ));
    let both: ToolAnnotations = read(r#"{"readOnly":true,"readOnlyHint":false}"#);
    assert_eq!(
        both,
        ToolAnnotations::new().read_only(false),
        "the specification's name counts"
    );
}

/// TOOL-10: a tool without arguments says so in a schema of objects.
#[test]
fn a_tool_takes_no_arguments_unless_it_says_so() {
    assert_eq!(
        Tool::new("t").to_raw().as_str(),
        r#"{"name":"t","inputSchema":{"type":"object","additionalProperties":false}}"#
    );
    assert!(is_refused::<Tool>(r#"{"name":"t"}"#));
}

#[test]
fn peers_that_write_null_for_unset_are_understood() {
    let tool: Tool = read(
        r#"{"name":"t","title":null,"inputSchema":{},"outputSchema":null,"annotations":null,"icons":null,"_meta":null}"#,
    );
    assert_eq!(tool, Tool::new("t").input_schema(raw("{}")));
    let prompt: Prompt = read(r#"{"name":"p","arguments":null}"#);
    assert_eq!(prompt, Prompt::new("p"));
    let params: GetPromptParams = read(r#"{"name":"p","arguments":null}"#);
    assert!(params.arguments.is_empty());
}

/// PAGE-04.
#[test]
fn an_empty_cursor_is_a_cursor() {
    assert_eq!(
        read::<ListParams>(r#"{"cursor":""}"#).cursor.as_deref(),
        Some("")
    );
    assert_eq!(read::<ListParams>("{}").cursor, None);
}

/// COMP-03.
#[test]
fn completions_stop_at_a_hundred() {
    let completion = Completion::new((0..250).map(|number| number.to_string()));
    assert_eq!(completion.values.len(), 100);
    assert_eq!(
        (completion.total, completion.has_more),
        (Some(250), Some(true))
    );
    let few = Completion::new(["a", "b"]);
    assert_eq!(
        (few.values.len(), few.total, few.has_more),
        (2, Some(2), Some(false))
    );
}

#[test]
fn completion_requests_name_what_they_complete() {
    let json = r#"{"ref":{"type":"ref/resource","uri":"file:///{path}"},"argument":{"name":"path","value":"/h"},"context":{"arguments":{"a":"b"}}}"#;
    let params: CompleteParams = read(json);
    assert_eq!(
        params.reference,
        CompletionReference::Resource {
            uri: "file:///{path}".to_owned()
        }
    );
    assert_eq!(params.to_raw().as_str(), json);
    let prompt: CompleteParams = read(
        r#"{"ref":{"type":"ref/prompt","name":"p","title":"P"},"argument":{"name":"a","value":""}}"#,
    );
    assert_eq!(
        prompt.reference,
        CompletionReference::Prompt {
            name: "p".to_owned()
        }
    );
    assert!(is_refused::<CompleteParams>(
        r#"{"ref":{"type":"ref/x"},"argument":{"name":"a","value":""}}"#
    ));
}

/// ELIC-06: a question without a mode is a form.
#[test]
fn elicitation_is_by_form_unless_it_says_otherwise() {
    let schema = r#"{"type":"object","properties":{}}"#;
    let without_mode: ElicitParams =
        read(&format!(r#"{{"message":"m","requestedSchema":{schema}}}"#));
    assert_eq!(without_mode, ElicitParams::form("m", raw(schema)));
    assert_eq!(
        without_mode.to_raw().as_str(),
        format!(r#"{{"mode":"form","message":"m","requestedSchema":{schema}}}"#)
    );
    let url = ElicitParams::url("m", "https://a.example");
    assert_eq!(
        url.to_raw().as_str(),
        r#"{"mode":"url","message":"m","url":"https://a.example"}"#
    );
    assert_eq!(read::<ElicitParams>(url.to_raw().as_str()), url);
    assert!(is_refused::<ElicitParams>(
        r#"{"mode":"telepathy","message":"m"}"#
    ));
}

#[test]
fn elicitation_answers_have_content_only_when_given() {
    assert_eq!(
        ElicitResult::accept(raw(r#"{"n":1}"#)).to_raw().as_str(),
        r#"{"action":"accept","content":{"n":1}}"#
    );
    assert_eq!(
        ElicitResult::decline().to_raw().as_str(),
        r#"{"action":"decline"}"#
    );
    assert_eq!(
        read::<ElicitResult>(r#"{"action":"cancel","_meta":{}}"#),
        ElicitResult::cancel()
    );
    assert!(is_refused::<ElicitResult>(r#"{"action":"maybe"}"#));
}

/// SAMP-14: one block or several, read alike; one is written alone, as the older revisions need it.
#[test]
fn sampling_content_is_one_block_or_several() {
    let one = r#"{"role":"user","content":{"type":"text","text":"a"}}"#;
    let message: SamplingMessage = read(one);
    assert_eq!(message, SamplingMessage::user("a"));
    assert_eq!(Raw::encode(&message).unwrap().as_str(), one);
    assert_eq!(
        read::<SamplingMessage>(r#"{"role":"user","content":[{"type":"text","text":"a"}]}"#),
        message
    );
    let several = r#"{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"1","name":"t","input":{"x":1.0}}]}"#;
    let message: SamplingMessage = read(several);
    assert!(matches!(
        message.content.as_slice(),
        [SamplingContent::Text(_), SamplingContent::ToolUse(_)]
    ));
    assert_eq!(Raw::encode(&message).unwrap().as_str(), several);
}

#[test]
fn log_levels_are_ordered_and_closed() {
    assert!(LogLevel::ALL.is_sorted());
    for level in LogLevel::ALL {
        assert_eq!(level.to_string().parse(), Ok(level));
        assert_eq!(read::<LogLevel>(&format!("\"{level}\"")), level);
    }
    for unknown in ["", "Debug", "warn", "fatal"] {
        assert_eq!(
            unknown.parse::<LogLevel>(),
            Err(UnknownLogLevel(unknown.to_owned()))
        );
    }
    assert!(is_refused::<SetLevelParams>(r#"{"level":"loud"}"#));
}

/// An integer is written without a fraction; a float keeps its fraction (PROG-02).
#[test]
fn whole_progress_is_written_without_a_fraction() {
    let written = |progress, total| {
        let params = ProgressParams {
            progress_token: Id::from(1_i64),
            progress,
            total,
            message: None,
        };
        params.to_raw().as_str().to_owned()
    };
    assert_eq!(
        written(1.0, Some(100.0)),
        r#"{"progressToken":1,"progress":1,"total":100}"#
    );
    assert_eq!(written(0.5, None), r#"{"progressToken":1,"progress":0.5}"#);
    assert_eq!(written(-0.0, None), r#"{"progressToken":1,"progress":0}"#);
    let params: ProgressParams = read(r#"{"progressToken":"1","progress":3,"message":"m"}"#);
    assert_eq!(
        (params.progress_token, params.progress),
        (Id::from("1"), 3.0)
    );
}

#[test]
fn discovery_says_it_is_complete_and_is_read_without() {
    let result = DiscoverResult {
        supported_versions: vec!["2026-07-28".to_owned()],
        capabilities: raw(r#"{"tools":{}}"#),
        instructions: None,
        ttl_ms: 0,
        cache_scope: CacheScope::Private,
        meta: None,
    };
    let json = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}"#;
    assert_eq!(result.to_raw().as_str(), json);
    assert_eq!(read::<DiscoverResult>(json), result);
    assert_eq!(
        read::<DiscoverResult>(&json.replace(r#""resultType":"complete","#, "")),
        result
    );
}

#[test]
fn interim_results_hold_questions_by_key() {
    let mut result = InputRequiredResult::default();
    result.ask(
        "q1",
        &InputRequest {
            method: "roots/list".to_owned(),
            params: None,
        },
    );
    result.request_state = Some("s".to_owned());
    assert_eq!(
        result.to_raw().as_str(),
        r#"{"resultType":"input_required","inputRequests":{"q1":{"method":"roots/list"}},"requestState":"s"}"#
    );
    let only_state = InputRequiredResult {
        request_state: Some("s".to_owned()),
        ..Default::default()
    };
    assert_eq!(
        only_state.to_raw().as_str(),
        r#"{"resultType":"input_required","requestState":"s"}"#
    );
}

#[test]
fn subscriptions_leave_out_what_is_not_wanted() {
    let filter: SubscriptionFilter =
        read(r#"{"toolsListChanged":true,"promptsListChanged":false,"taskIds":["x"]}"#);
    assert_eq!(
        filter,
        SubscriptionFilter {
            tools_list_changed: true,
            ..Default::default()
        }
    );
    assert_eq!(filter.to_raw().as_str(), r#"{"toolsListChanged":true}"#);
    assert_eq!(
        ListenParams::default().to_raw().as_str(),
        r#"{"notifications":{}}"#
    );
}

fn client(json: &str) -> ClientCapabilities {
    ClientCapabilities::from_raw(&raw(json)).unwrap()
}

/// ELIC-02: `{}` means form. Any other mode must be declared.
#[test]
fn elicitation_modes_are_what_is_declared() {
    for (declared, form, url) in [
        (r#"{"elicitation":{}}"#, true, false),
        (r#"{"elicitation":{"form":{}}}"#, true, false),
        (r#"{"elicitation":{"url":{}}}"#, false, true),
        (
            r#"{"elicitation":{"form":{"applyDefaults":true},"url":{}}}"#,
            true,
            true,
        ),
        (r#"{"elicitation":{"vendor":{}}}"#, true, false),
        (r#"{"elicitation":null}"#, false, false),
        ("{}", false, false),
    ] {
        let client = client(declared);
        assert_eq!(
            ClientCapability::ElicitationForm.declared_in(&client),
            form,
            "{declared}"
        );
        assert_eq!(
            ClientCapability::ElicitationUrl.declared_in(&client),
            url,
            "{declared}"
        );
    }
}

/// Plexus does not relay tasks, so each side is not told that the other supports them.
#[test]
fn the_tasks_extension_is_left_out_on_both_sides() {
    let tasks = r#""io.modelcontextprotocol/tasks":{}"#;
    for (declared, kept) in [
        (
            format!(r#"{{"roots":{{}},"extensions":{{{tasks},"a/b":{{}}}}}}"#),
            r#"{"roots":{},"extensions":{"a/b":{}}}"#,
        ),
        (
            format!(r#"{{"extensions":{{{tasks}}}}}"#),
            r#"{"extensions":{}}"#,
        ),
    ] {
        assert_eq!(client(&declared).raw().as_str(), kept);
        let server = ServerCapabilities::from_raw(&raw(&declared)).unwrap();
        let shown = server.to_raw(Revision::V2026_07_28.features());
        assert!(!shown.as_str().contains("tasks"), "{shown:?}");
        assert_eq!(
            shown.as_str().contains("a/b"),
            kept.contains("a/b"),
            "{shown:?}"
        );
    }
}

#[test]
fn client_capabilities_are_read_and_kept_as_given() {
    let declared = r#"{"roots":{"listChanged":true}, "sampling":{"tools":{}},"extensions":{"a/b":{}},"experimental":{"x":{}},"tasks":{"list":{}}}"#;
    let capabilities = client(declared);
    assert!(capabilities.roots && capabilities.roots_list_changed);
    assert_eq!(
        capabilities.sampling,
        Some(SamplingCapability {
            tools: true,
            context: false
        })
    );
    assert_eq!(capabilities.elicitation, None);
    assert_eq!(capabilities.extensions, Some(raw(r#"{"a/b":{}}"#)));
    assert_eq!(capabilities.experimental, Some(raw(r#"{"x":{}}"#)));
    assert_eq!(capabilities.raw().as_str(), declared);
    assert_eq!(Raw::encode(&capabilities).unwrap().as_str(), declared);
    assert_eq!(read::<ClientCapabilities>("{}"), ClientCapabilities::none());

    let wrong = |json| {
        ClientCapabilities::from_raw(&raw(json))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(wrong("[]"), "client capabilities must be an object");
    assert_eq!(
        wrong(r#"{"sampling":true}"#),
        r#"client capability "sampling" must be an object"#
    );
}

/// META26-05: `data.requiredCapabilities` of `-32021` has the capabilities to declare.
#[test]
fn required_capabilities_satisfy_their_own_check() {
    for (capability, required) in [
        (ClientCapability::Roots, r#"{"roots":{}}"#),
        (ClientCapability::Sampling, r#"{"sampling":{}}"#),
        (
            ClientCapability::SamplingTools,
            r#"{"sampling":{"tools":{}}}"#,
        ),
        (
            ClientCapability::SamplingContext,
            r#"{"sampling":{"context":{}}}"#,
        ),
        (ClientCapability::ElicitationForm, r#"{"elicitation":{}}"#),
        (
            ClientCapability::ElicitationUrl,
            r#"{"elicitation":{"url":{}}}"#,
        ),
    ] {
        assert_eq!(capability.required().as_str(), required);
        assert!(capability.declared_in(&client(required)));
        assert!(!capability.declared_in(&ClientCapabilities::none()));
    }
}

/// S004-21, S004-27, COMP-01: the flag for completion exists from 2025-03-26.
#[test]
fn server_capabilities_have_the_members_of_the_revision() {
    let server = ServerCapabilities {
        tools: Some(ListCapability { list_changed: true }),
        resources: Some(ResourcesCapability {
            subscribe: true,
            list_changed: false,
        }),
        prompts: Some(ListCapability::default()),
        completions: true,
        logging: true,
        extensions: None,
        experimental: None,
    };
    let in_words_of = |revision: Revision| server.to_raw(revision.features()).as_str().to_owned();
    assert_eq!(
        in_words_of(Revision::V2025_03_26),
        r#"{"logging":{},"completions":{},"prompts":{},"resources":{"subscribe":true},"tools":{"listChanged":true}}"#
    );
    assert!(!in_words_of(Revision::V2024_11_05).contains("completions"));
    assert_eq!(
        ServerCapabilities::default()
            .to_raw(Revision::V2026_07_28.features())
            .as_str(),
        "{}"
    );
}

/// A tool is written member by member as serde would write it.
#[test]
fn a_tool_is_written_as_it_is_serialised() {
    let bare = Tool::new("bare \"quoted\"");
    let full = Tool::new("full")
        .title("Full")
        .description("Line\nbreak")
        .input_schema(raw(r#"{"type":"object"}"#))
        .output_schema(raw(r#"{"type":"object","properties":{}}"#))
        .annotations(ToolAnnotations {
            read_only_hint: Some(true),
            ..ToolAnnotations::default()
        })
        .icon(Icon::new("https://example.com/icon.png"))
        .meta(raw(r#"{"a":1}"#));
    for tool in [bare, full] {
        let serialised = serde_json::to_string(&tool).unwrap();
        assert_eq!(tool.to_raw().as_str(), serialised);
    }
}
