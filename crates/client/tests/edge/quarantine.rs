//! Invalid entries are quarantined one by one, each with a reason.

use plexus_mcp_core::Section;
use plexus_testkit::server::{HttpServer, Offer, Reply, StdioServer, tool};
use serde_json::{Value, json};

use crate::support::{LEGACY, STATELESS, catalogue, connected, http, names, stdio, tools, value};

fn with_schema(name: &str, schema: &Value) -> Value {
    json!({"name": name, "inputSchema": schema})
}

fn annotated(name: &str, kind: &str, header: &Value) -> Value {
    let schema = json!({"type": "object",
        "properties": {"p": {"type": kind, "x-mcp-header": header}}});
    with_schema(name, &schema)
}

/// S004-K014, S004-K100, TRAP-26: the valid tools are listed, in order.
#[tokio::test]
async fn one_bad_tool_does_not_cost_the_others() {
    let bad = [
        with_schema("no_type", &json!({"type": "nonsense"})),
        with_schema(
            "bad_range",
            &json!({"type": "object", "properties": {"x": {"minimum": "a"}}}),
        ),
        with_schema(
            "bad_reference",
            &json!({"type": "object", "$ref": "#/nowhere"}),
        ),
        with_schema("no_object", &json!("anything")),
        json!({"name": "no_schema"}),
        json!({"description": "nameless", "inputSchema": {"type": "object"}}),
        json!({"name": 7, "inputSchema": {"type": "object"}}),
        json!("a tool"),
        json!(null),
    ];
    for revision in [LEGACY, STATELESS] {
        for bad in &bad {
            let offer = Offer::tools(revision, [tool("a"), bad.clone(), tool("b")]);
            let server = StdioServer::new(&offer).await;
            let upstream = connected(stdio(&server)).await;
            assert_eq!(tools(&upstream), ["a", "b"], "{bad}");
            let quarantined = upstream.report().unwrap().quarantined;
            assert_eq!(quarantined.len(), 1, "{bad}");
            assert_eq!(quarantined[0].section, Section::Tools);
            assert!(!quarantined[0].reason.is_empty());
            if let Some(name) = bad["name"].as_str() {
                assert_eq!(quarantined[0].name, name);
            } else {
                assert!(!quarantined[0].name.is_empty(), "{bad}");
            }
        }
    }
}

#[tokio::test]
async fn the_first_of_two_with_one_name_is_kept() {
    let second = json!({"name": "a", "title": "second", "inputSchema": {"type": "object"}});
    let mut offer = Offer::tools(LEGACY, [tool("a"), second, tool("b")])
        .declaring("resources", json!({}))
        .declaring("prompts", json!({}));
    offer.resources = vec![
        json!({"uri": "a://b", "name": "1"}),
        json!({"uri": "a://b", "name": "2"}),
    ];
    offer.prompts = vec![json!({"name": "p"}), json!({"name": "p"}), json!({})];
    let server = StdioServer::new(&offer).await;
    let upstream = connected(stdio(&server)).await;
    let catalogue = catalogue(&upstream);
    assert_eq!(names(&catalogue, Section::Tools), ["a", "b"]);
    let first = catalogue.list(Section::Tools).get("a").unwrap();
    assert_eq!(value(&first.definition).get("title"), None);
    assert_eq!(names(&catalogue, Section::Resources), ["a://b"]);
    assert_eq!(names(&catalogue, Section::Prompts), ["p"]);
    let quarantined = upstream.report().unwrap().quarantined;
    let apart: Vec<_> = quarantined
        .iter()
        .map(|entry| (entry.section, entry.name.as_str()))
        .collect();
    assert_eq!(
        apart,
        [
            (Section::Tools, "a"),
            (Section::Resources, "a://b"),
            (Section::Prompts, "p"),
            (Section::Prompts, "{}"),
        ]
    );
    assert!(quarantined[0].reason.contains("taken"));
}

/// HDR26-10, HDR26-22: a tool with an invalid header annotation is quarantined.
#[tokio::test]
async fn a_stateless_tool_with_a_bad_header_annotation_is_set_apart() {
    let twice = json!({"type": "object", "properties": {
        "p": {"type": "string", "x-mcp-header": "Same"},
        "q": {"type": "string", "x-mcp-header": "same"}}});
    let bad = [
        annotated("empty", "string", &json!("")),
        annotated("space", "string", &json!("a b")),
        annotated("colon", "string", &json!("a:b")),
        annotated("break", "string", &json!("a\r\nb")),
        annotated("unicode", "string", &json!("\u{fc}")),
        annotated("no_string", "string", &json!(7)),
        annotated("an_object", "object", &json!("Region")),
        annotated("an_array", "array", &json!("Region")),
        with_schema("twice", &twice),
    ];
    let good = annotated("good", "string", &json!("Region"));
    let all = bad.iter().cloned().chain([good]);
    let offer = Offer::tools(STATELESS, all);
    let server = HttpServer::start(move |request| request.reply_from(&offer)).await;
    let upstream = connected(http(&server)).await;
    assert_eq!(tools(&upstream), ["good"]);
    let quarantined = upstream.report().unwrap().quarantined;
    let apart: Vec<_> = quarantined
        .iter()
        .map(|entry| entry.name.as_str())
        .collect();
    let expected: Vec<_> = bad
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(apart, expected);
}

/// TRANSLATION §5.13: handshake-era servers do not know header annotations, so invalid ones are
/// removed, and the tool is listed.
#[tokio::test]
async fn header_annotations_of_an_old_server_are_removed() {
    let good = annotated("good", "string", &json!("Region"));
    let bad = annotated("bad", "object", &json!("a b"));
    let offer = Offer::tools(LEGACY, [good, bad]);
    let server = StdioServer::new(&offer).await;
    let upstream = connected(stdio(&server)).await;
    assert_eq!(tools(&upstream), ["good", "bad"]);
    for entry in catalogue(&upstream).list(Section::Tools).entries() {
        let text = entry.definition.as_str();
        assert!(!text.contains("x-mcp-header"), "{text}");
        assert!(text.contains(r#""properties":{"p":{"type""#), "{text}");
    }
}

/// S001-16, S004-K013: unknown members of listed entries are kept, byte by byte.
#[tokio::test]
async fn definitions_are_kept_as_they_are() {
    let definition = r#"{ "name":"a", "inputSchema":{"type":"object","x-odd":1.50,"$comment":"\u00e9"},"vendor/x":[ 12345678901234567890 ] ,"annotations":{"readOnlyHint":true,"mood":"good"}}"#;
    for revision in [LEGACY, STATELESS] {
        let offer = Offer::tools(revision, []);
        let server = HttpServer::start(move |request| match request.mcp() {
            "tools/list" => {
                let id = &request.body["id"];
                Reply::status(200).with_json(&format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{definition}]}}}}"#
                ))
            }
            _ => request.reply_from(&offer),
        })
        .await;
        let upstream = connected(http(&server)).await;
        let catalogue = catalogue(&upstream);
        let kept = catalogue.list(Section::Tools).get("a").unwrap();
        assert_eq!(kept.definition.as_str(), definition);
    }
}
