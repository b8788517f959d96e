use super::*;
use crate::Revision;

const V24: &Features = Revision::V2024_11_05.features();
const V03: &Features = Revision::V2025_03_26.features();
const V06: &Features = Revision::V2025_06_18.features();
const V11: &Features = Revision::V2025_11_25.features();
const V26: &Features = Revision::V2026_07_28.features();

fn raw(json: &str) -> Raw {
    Raw::parse(json.to_owned().into(), &plexus_mcp_wire::Limits::default()).unwrap()
}

fn lowered(convert: fn(&Raw, &Features) -> Raw, json: &str, features: &Features) -> String {
    convert(&raw(json), features).as_str().to_owned()
}

/// The lowered form of one content block of a tool result.
fn block(json: &str, features: &Features) -> String {
    let result = lowered(
        call_tool_result,
        &format!(r#"{{"content":[{json}]}}"#),
        features,
    );
    let inner = result
        .strip_prefix(r#"{"content":["#)
        .and_then(|rest| rest.strip_suffix("]}"));
    inner.unwrap().to_owned()
}

#[test]
fn unchanged_values_are_not_copied() {
    let functions: [fn(&Raw, &Features) -> Raw; 9] = [
        tool_definition,
        resource_definition,
        template_definition,
        prompt_definition,
        implementation,
        result,
        call_tool_result,
        get_prompt_result,
        read_resource_result,
    ];
    let plain = r#"{ "name" : "x", "inputSchema":{"type":"object"}, "vendor/x": [1.50,true],
        "content":[{"type":"text", "text":"a"}, {"type":"new"}], "messages":[{"content":{"type":"text","text":"a"}}],
        "contents":[{"uri":"x:y", "text":""}], "_meta": {"a":1.0}, "annotations":{"priority":1.0} }"#;
    for features in [V06, V11, V26] {
        for function in functions {
            let before = raw(plain);
            let after = function(&before, features);
            assert!(
                std::ptr::eq(before.as_bytes(), after.as_bytes()),
                "{after:?}"
            );
        }
    }
    // The newest form is not even looked at.
    let odd = raw(r#"{"content":[],"content":[]}"#);
    assert_eq!(call_tool_result(&odd, V26), odd);
}

#[test]
fn values_of_unexpected_shape_are_unchanged() {
    for odd in [
        "[]",
        "7",
        r#"{"content":7,"messages":{},"contents":"x","annotations":[],"arguments":[1],"inputSchema":true}"#,
    ] {
        for function in [
            tool_definition,
            prompt_definition,
            call_tool_result,
            get_prompt_result,
        ] {
            assert_eq!(function(&raw(odd), V11), raw(odd));
        }
    }
}

const TOOL: &str = r#"{"name":"t","title":"T","description":"d","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"icons":[{"src":"x:y"}],"_meta":{"a":1},"x":2}"#;

/// TRANSLATION §6.10. `_meta` is no loss: every revision's schema allows it, and extensions such as
/// MCP Apps have their settings there.
#[test]
fn tools_lose_what_each_revision_lacks() {
    assert_eq!(lowered(tool_definition, TOOL, V26), TOOL);
    assert_eq!(lowered(tool_definition, TOOL, V11), TOOL);
    assert_eq!(
        lowered(tool_definition, TOOL, V06),
        r#"{"name":"t","title":"T","description":"d","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"_meta":{"a":1},"x":2}"#
    );
    assert_eq!(
        lowered(tool_definition, TOOL, V03),
        r#"{"name":"t","description":"d","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"title":"T"},"_meta":{"a":1},"x":2}"#
    );
    assert_eq!(
        lowered(tool_definition, TOOL, V24),
        r#"{"name":"t","description":"d","inputSchema":{"type":"object"},"_meta":{"a":1},"x":2}"#
    );
}

#[test]
fn a_tools_title_moves_into_its_annotations_once() {
    let title = |json| lowered(tool_definition, json, V03);
    assert_eq!(
        title(r#"{"title":"T"}"#),
        r#"{"annotations":{"title":"T"}}"#
    );
    assert_eq!(
        title(r#"{"title":"T","annotations":{"title":"own"}}"#),
        r#"{"annotations":{"title":"own"}}"#
    );
}

#[test]
fn output_schemas_of_other_values_are_dropped() {
    for schema in [
        r#"{"type":"array"}"#,
        r#"{"anyOf":[]}"#,
        r#"{"type":["object","null"]}"#,
    ] {
        let tool = format!(r#"{{"outputSchema":{schema}}}"#);
        assert_eq!(lowered(tool_definition, &tool, V26), tool);
        assert_eq!(lowered(tool_definition, &tool, V11), "{}");
        assert_eq!(lowered(tool_definition, &tool, V06), "{}");
    }
}

#[test]
fn boolean_properties_become_objects() {
    let tool =
        r#"{"inputSchema":{"type":"object","properties":{"a":true,"b":false,"c":{"x":true}}}}"#;
    assert_eq!(lowered(tool_definition, tool, V26), tool);
    assert_eq!(
        lowered(tool_definition, tool, V11),
        r#"{"inputSchema":{"type":"object","properties":{"a":{},"b":{"not":{}},"c":{"x":true}}}}"#
    );
    for (property, object) in [("true", "{}"), ("false", r#"{"not":{}}"#)] {
        let tool = |property| format!(r#"{{"inputSchema":{{"properties":{{"a":{property}}}}}}}"#);
        assert_eq!(lowered(tool_definition, &tool(property), V11), tool(object));
    }
}

#[test]
fn resources_and_prompts_lose_what_each_revision_lacks() {
    let resource = r#"{"uri":"x:y","name":"n","title":"T","icons":[],"_meta":{},"annotations":{"priority":1,"lastModified":"2025"},"size":3}"#;
    for function in [resource_definition, template_definition] {
        assert_eq!(lowered(function, resource, V11), resource);
        assert_eq!(
            lowered(function, resource, V06),
            resource.replace(r#""icons":[],"#, "")
        );
        assert_eq!(
            lowered(function, resource, V03),
            r#"{"uri":"x:y","name":"n","_meta":{},"annotations":{"priority":1},"size":3}"#
        );
    }
    let prompt = r#"{"name":"n","title":"T","arguments":[{"name":"a","title":"A","required":true}],"icons":[],"_meta":{"a":1}}"#;
    assert_eq!(lowered(prompt_definition, prompt, V11), prompt);
    assert_eq!(
        lowered(prompt_definition, prompt, V24),
        r#"{"name":"n","arguments":[{"name":"a","required":true}],"_meta":{"a":1}}"#
    );
}

#[test]
fn implementations_lose_what_each_revision_lacks() {
    let own =
        r#"{"name":"n","title":"T","version":"1","description":"d","websiteUrl":"x:y","icons":[]}"#;
    assert_eq!(lowered(implementation, own, V11), own);
    assert_eq!(
        lowered(implementation, own, V06),
        r#"{"name":"n","title":"T","version":"1"}"#
    );
    assert_eq!(
        lowered(implementation, own, V24),
        r#"{"name":"n","version":"1"}"#
    );
}

#[test]
fn results_lose_what_belongs_to_the_stateless_era() {
    let full = r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"n","version":"1"}}}"#;
    assert_eq!(lowered(result, full, V26), full);
    for features in [V24, V03, V06, V11] {
        assert_eq!(lowered(result, full, features), r#"{"tools":[]}"#);
    }
    let own_meta = r#"{"resultType":"complete","contents":[],"_meta":{"io.modelcontextprotocol/serverInfo":1,"a":1}}"#;
    assert_eq!(
        lowered(read_resource_result, own_meta, V11),
        r#"{"contents":[],"_meta":{"a":1}}"#
    );
}

/// C41.
#[test]
fn content_becomes_what_each_revision_has() {
    let link = r#"{"type":"resource_link","uri":"x:y","name":"N","icons":[],"_meta":{}}"#;
    assert_eq!(block(link, V11), link);
    assert_eq!(
        block(link, V06),
        r#"{"type":"resource_link","uri":"x:y","name":"N","_meta":{}}"#
    );
    assert_eq!(block(link, V03), r#"{"type":"text","text":"N <x:y>"}"#);

    let audio =
        r#"{"type":"audio","data":"AAAA","mimeType":"audio/wav","annotations":{"priority":1}}"#;
    assert_eq!(block(audio, V03), audio);
    assert_eq!(
        block(audio, V24),
        r#"{"type":"resource","annotations":{"priority":1},"resource":{"uri":"urn:plexus:audio:0","mimeType":"audio/wav","blob":"AAAA"}}"#
    );

    let embedded = r#"{"type":"resource","resource":{"uri":"x:y","text":"t","_meta":{}},"_meta":{},"annotations":{"lastModified":"2025"}}"#;
    assert_eq!(block(embedded, V06), embedded);
    assert_eq!(
        block(embedded, V03),
        r#"{"type":"resource","resource":{"uri":"x:y","text":"t"},"annotations":{}}"#
    );
    let unknown = r#"{"type":"hologram","_meta":{}}"#;
    assert_eq!(block(unknown, V24), unknown);
}

/// TOOL-08, TRANSLATION §6.10 and §12.28: structured content that a revision lacks becomes text.
#[test]
fn structured_content_is_kept_or_becomes_text() {
    let object = r#"{"content":[],"structuredContent":{"a":1},"isError":false}"#;
    for features in [V06, V11, V26] {
        assert_eq!(lowered(call_tool_result, object, features), object);
    }
    for features in [V24, V03] {
        assert_eq!(
            lowered(call_tool_result, object, features),
            r#"{"content":[{"type":"text","text":"{\"a\":1}"}],"isError":false}"#
        );
    }
    for value in ["[1]", "null", "7"] {
        let other = format!(r#"{{"content":[{{"type":"image"}}],"structuredContent":{value}}}"#);
        assert_eq!(lowered(call_tool_result, &other, V26), other);
        for features in [V24, V03, V06, V11] {
            let told =
                format!(r#"{{"content":[{{"type":"image"}},{{"type":"text","text":"{value}"}}]}}"#);
            assert_eq!(lowered(call_tool_result, &other, features), told);
        }
    }
    let with_text = r#"{"content":[{"type":"text","text":"one"}],"structuredContent":1}"#;
    assert_eq!(
        lowered(call_tool_result, with_text, V11),
        r#"{"content":[{"type":"text","text":"one"}]}"#
    );
}

#[test]
fn prompt_messages_are_lowered() {
    let result = r#"{"resultType":"complete","messages":[{"role":"user","content":{"type":"text","text":"a","_meta":{}}},{"role":"user","content":{"type":"resource_link","uri":"x:y","name":"N"}}]}"#;
    assert_eq!(
        lowered(get_prompt_result, result, V03),
        r#"{"messages":[{"role":"user","content":{"type":"text","text":"a"}},{"role":"user","content":{"type":"text","text":"N <x:y>"}}]}"#
    );
}

#[test]
fn resource_contents_are_lowered() {
    let result =
        r#"{"resultType":"complete","contents":[{"uri":"x:y","text":"t","_meta":{}}],"ttlMs":0}"#;
    assert_eq!(
        lowered(read_resource_result, result, V06),
        r#"{"contents":[{"uri":"x:y","text":"t","_meta":{}}]}"#
    );
    assert_eq!(
        lowered(read_resource_result, result, V03),
        r#"{"contents":[{"uri":"x:y","text":"t"}]}"#
    );
}

fn elicited(json: &str, features: &Features) -> Result<String, Unrepresentable> {
    let lowered = elicitation(&raw(json), features, || "minted".to_owned())?;
    Ok(lowered.params.as_str().to_owned())
}

/// ELIC-06, ELIC-07, TRANSLATION §6.4. A client of a revision without elicitation that declared the
/// capability is asked like one of 2025-06-18.
#[test]
fn forms_are_lowered() {
    let plain = r#"{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{"n":{"type":"integer","default":1},"e":{"type":"string","enum":["a"]}}}}"#;
    for features in [V11, V26] {
        assert_eq!(elicited(plain, features).unwrap(), plain);
    }
    for features in [V24, V03, V06] {
        let expected = plain.replace(r#""mode":"form","#, "");
        assert_eq!(elicited(plain, features).unwrap(), expected);
    }
}

/// ELIC-07: `elicitationId` exists only in 2025-11-25.
#[test]
fn urls_carry_an_id_where_the_revision_has_one() {
    let url = r#"{"mode":"url","message":"m","url":"https://a.example"}"#;
    let with_id = |id| {
        format!(
            r#"{{"mode":"url","message":"m","url":"https://a.example","elicitationId":"{id}"}}"#
        )
    };
    assert_eq!(elicited(url, V26).unwrap(), url);
    assert_eq!(elicited(&with_id("own"), V26).unwrap(), url);
    assert_eq!(elicited(url, V11).unwrap(), with_id("minted"));
    assert_eq!(elicited(&with_id("own"), V11).unwrap(), with_id("own"));
    for features in [V24, V03, V06] {
        assert_eq!(
            elicited(url, features),
            Err(Unrepresentable::UrlElicitation)
        );
    }
}

fn sampled(json: &str, features: &Features) -> Result<String, Unrepresentable> {
    Ok(sampling_params(&raw(json), features)?.as_str().to_owned())
}

/// SAMP-02, TRANSLATION §6.4.
#[test]
fn sampling_is_put_in_older_words() {
    let plain =
        r#"{"messages":[{"role":"user","content":{"type":"text","text":"a"}}],"maxTokens":9}"#;
    for features in [V24, V03, V06, V11, V26] {
        assert_eq!(sampled(plain, features).unwrap(), plain);
    }
    let several = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","data":"","mimeType":"i/p","_meta":{}}],"_meta":{}}],"maxTokens":9,"toolChoice":{}}"#;
    assert_eq!(sampled(several, V11).unwrap(), several);
    assert_eq!(
        sampled(several, V06).unwrap(),
        r#"{"messages":[{"role":"user","content":{"type":"text","text":"a"}},{"role":"user","content":{"type":"image","data":"","mimeType":"i/p","_meta":{}}}],"maxTokens":9}"#
    );
    assert_eq!(
        sampled(several, V24).unwrap(),
        r#"{"messages":[{"role":"user","content":{"type":"text","text":"a"}},{"role":"user","content":{"type":"image","data":"","mimeType":"i/p"}}],"maxTokens":9}"#
    );
}

#[test]
fn sampling_that_cannot_be_put_in_older_words_is_refused() {
    let tools = r#"{"messages":[],"tools":[{"name":"t","inputSchema":{"type":"object"},"outputSchema":{"type":"array"}}]}"#;
    assert_eq!(sampled(tools, V26).unwrap(), tools);
    assert_eq!(
        sampled(tools, V11).unwrap(),
        tools.replace(r#","outputSchema":{"type":"array"}"#, "")
    );
    assert_eq!(sampled(tools, V06), Err(Unrepresentable::SamplingTools));

    let message =
        |block: &str| format!(r#"{{"messages":[{{"role":"user","content":[{block}]}}]}}"#);
    let tool_result =
        message(r#"{"type":"tool_result","toolUseId":"1","content":[],"structuredContent":[1]}"#);
    assert_eq!(sampled(&tool_result, V26).unwrap(), tool_result);
    assert_eq!(
        sampled(&tool_result, V11).unwrap(),
        tool_result.replace(r#","structuredContent":[1]"#, "")
    );
    let refused = |kind: &str| Err(Unrepresentable::SamplingContent(kind.to_owned()));
    assert_eq!(sampled(&tool_result, V06), refused("tool_result"));
    let audio = message(r#"{"type":"audio","data":"","mimeType":"a/w"}"#);
    assert!(sampled(&audio, V03).is_ok());
    assert_eq!(sampled(&audio, V24), refused("audio"));
}

/// A result with one text block and nothing else is the same in every revision.
#[test]
fn one_text_is_the_same_in_every_revision() {
    let texts = [
        r#"{"content":[{"type":"text","text":"a \"_meta\": {} \\"}]}"#,
        r#"{"content":[{"type":"text","text":""}],"isError":false}"#,
    ];
    for text in texts {
        let result = raw(text);
        for revision in Revision::ALL {
            let same = call_tool_result(&result, revision.features());
            assert_eq!(same.as_str(), text, "{revision}");
        }
    }
}
