//! Tests of the tools as clients use them: the interface of the specification, and refused calls.

use plexus_mcp_core::{Fault, Section, Service};
use serde_json::{Value, json};

use crate::support::{Client, Fixture};

const METHODS: [&str; 16] = [
    "query",
    "store",
    "get",
    "search",
    "link",
    "unlink",
    "neighbours",
    "traverse",
    "forget",
    "restore",
    "boost",
    "consolidate",
    "merge",
    "unmerge",
    "audit",
    "status",
];

fn tools(client: &Client) -> Vec<Value> {
    let catalogue = client.service.catalogue();
    let catalogue = catalogue.borrow();
    let tools = catalogue.list(Section::Tools).entries().iter();
    tools
        .map(|tool| tool.definition.decode().unwrap())
        .collect()
}

/// S000-20: `query_context` has this description and this schema.
#[tokio::test]
async fn the_query_tool_is_the_documents() {
    let fixture = Fixture::new();
    let tools = tools(&Client::of(&fixture.graph));
    assert_eq!(tools[0]["name"], "context.query");
    assert_eq!(
        tools[0]["description"],
        "Query the context graph for relevant information"
    );
    assert_eq!(
        tools[0]["inputSchema"],
        json!({
            "type": "object",
            "properties": {"query": {"type": "string", "description": "The search query"}},
            "required": ["query"],
            "additionalProperties": false,
        })
    );
}

/// S000-21, S000-22, S000-49: the result has the text of the specification, and the hits as JSON.
#[tokio::test]
async fn a_query_tells_how_many_nodes_it_found() {
    let fixture = Fixture::new();
    let client = Client::of(&fixture.graph);
    for content in [
        "Authentication patterns: bearer tokens",
        "Patterns of authentication in gateways",
        "Authentication is done once",
        "The cafeteria closes early",
    ] {
        fixture.put(content).await;
    }
    let arguments = json!({"query": "authentication patterns"});
    let result = client.call("query", arguments.clone()).await.unwrap();
    assert_eq!(result["isError"], false);
    assert_eq!(result["content"][0]["type"], "text");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(
        text.starts_with("Found 3 relevant context nodes\n\n1. default/ctx_"),
        "{text}"
    );
    assert!(
        text.contains(": Authentication patterns: bearer tokens"),
        "{text}"
    );
    let found: Value =
        serde_json::from_str(result["content"][1]["text"].as_str().unwrap()).unwrap();
    assert_eq!(found["count"], 3);
    assert_eq!(found, client.data("search", arguments.clone()).await);
    assert_eq!(client.call("query", arguments).await.unwrap(), result);

    let result = client
        .call("query", json!({"query": "kubernetes"}))
        .await
        .unwrap();
    let text = &result["content"][0]["text"];
    assert_eq!(
        (text, &result["isError"]),
        (&json!("Found 0 relevant context nodes"), &json!(false))
    );
}

/// S000-23: a query without a meaningful word, or whose words most nodes have, is too broad.
#[tokio::test]
async fn a_query_can_be_too_broad() {
    let fixture = Fixture::new();
    let client = Client::of(&fixture.graph);
    let failure = "Error: Query too broad, please be more specific";
    for query in ["", "  ", "*", "what is it about?", "everything"] {
        assert_eq!(
            client.failure("query", json!({"query": query})).await,
            failure,
            "{query:?}"
        );
    }
    for n in 0..60 {
        fixture.put(&format!("token {n}")).await;
    }
    let query = |query: &str| json!({"query": query});
    for broad in ["token", "the token", "token unheard"] {
        assert_eq!(
            client.failure("query", query(broad)).await,
            failure,
            "{broad:?}"
        );
    }
    let result = client.call("query", query("token 42")).await.unwrap();
    assert_eq!(result["isError"], false);
    // `search` does not refuse a broad query.
    assert_eq!(client.data("search", query("token")).await["count"], 10);
}

/// S000-37, C10: arguments that violate the schema are refused, and change nothing.
#[tokio::test]
async fn arguments_are_checked() {
    let fixture = Fixture::new();
    let client = Client::of(&fixture.graph);
    let cases = [
        ("query", json!({})),
        ("query", json!({"query": 7})),
        ("query", json!({"query": "a", "limit": 3})),
        ("store", json!({"content": "a", "importance": 1.5})),
        ("store", json!({"content": "a", "importance": -0.1})),
        ("store", json!({"content": "a", "modality": "smell"})),
        ("store", json!({"content": "a", "namespace": ""})),
        ("store", json!({"content": "a", "key": ""})),
        ("store", json!({"content": "a", "tags": [""]})),
        ("store", json!({"content": "a", "rationale": ""})),
        (
            "store",
            json!({"content": "a", "rationale": "x".repeat(1025)}),
        ),
        ("store", json!({"content": null})),
        ("search", json!({"query": "a", "limit": 0})),
        ("search", json!({"query": "a", "limit": 101})),
        ("search", json!({"query": "a", "last_hours": 0})),
        ("link", json!({"source": "a"})),
        ("link", json!({"source": "a", "target": "b", "weight": 2})),
        (
            "link",
            json!({"source": "a", "target": "b", "relation": "Not A Name"}),
        ),
        ("traverse", json!({"id": "a", "max_hops": 0})),
        ("traverse", json!({"id": "a", "max_hops": 6})),
        ("traverse", json!({"id": "a", "direction": "up"})),
        ("boost", json!({"id": "a", "delta": 1.1})),
        (
            "merge",
            json!({"source_ids": ["a"], "target_name": "n", "rationale": "r"}),
        ),
        (
            "merge",
            json!({"source_ids": ["a", "b"], "target_name": "n"}),
        ),
        ("status", json!({"verbose": true})),
    ];
    for (method, arguments) in cases {
        let outcome = client.call(method, arguments.clone()).await;
        assert!(
            matches!(outcome, Err(Fault::InvalidArguments(_))),
            "{method} {arguments}: {outcome:?}"
        );
    }
    assert_eq!(fixture.graph.status().await.unwrap().revision, 0);
}

/// The error for an unknown id names the id. It is a failed result, not a protocol error.
#[tokio::test]
async fn unknown_ids_are_named() {
    let fixture = Fixture::new();
    let client = Client::of(&fixture.graph);
    let known = fixture.put("tokens rotate").await;
    let unknown = "ctx_unknown";
    for (method, arguments) in [
        ("get", json!({"id": unknown})),
        ("link", json!({"source": unknown, "target": known})),
        ("link", json!({"source": known, "target": unknown})),
        ("unlink", json!({"source": known, "target": unknown})),
        ("neighbours", json!({"id": unknown})),
        ("traverse", json!({"id": unknown})),
        ("forget", json!({"id": unknown})),
        ("forget", json!({"id": unknown, "soft_delete": false})),
        ("restore", json!({"id": unknown})),
        ("boost", json!({"id": unknown, "delta": 0})),
        (
            "merge",
            json!({"source_ids": [known, unknown], "target_name": "n", "rationale": "r"}),
        ),
    ] {
        let failure = client.failure(method, arguments).await;
        assert_eq!(
            failure, "Error: Context node not found: ctx_unknown",
            "{method}"
        );
    }
    let failure = client
        .failure("get", json!({"key": "k", "namespace": "n"}))
        .await;
    assert_eq!(failure, "Error: Context node not found: n/k");
}

/// Every tool has descriptions, schemas without additional properties, and annotations.
#[tokio::test]
async fn tools_are_closed_and_described() {
    let fixture = Fixture::new();
    let tools = tools(&Client::of(&fixture.graph));
    let names: Vec<&str> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, METHODS.map(|method| format!("context.{method}")));
    for tool in &tools {
        assert!(
            tool["description"].is_string() && tool["title"].is_string(),
            "{tool}"
        );
        assert!(tool["annotations"]["readOnlyHint"].is_boolean(), "{tool}");
        assert_eq!(tool["annotations"]["openWorldHint"], false, "{tool}");
        closed_and_described(&tool["inputSchema"]);
        closed_and_described(&tool["outputSchema"]);
    }
}

fn closed_and_described(schema: &Value) {
    if schema["type"] == "object" {
        assert_eq!(schema["additionalProperties"], false, "{schema}");
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        assert!(property["description"].is_string(), "{name}: {schema}");
    }
    for (_, definition) in schema["$defs"].as_object().into_iter().flatten() {
        closed_and_described(definition);
    }
}

/// C43, C44: the declared capabilities are tools without list changes, and resources.
#[tokio::test]
async fn resources_are_declared() {
    let fixture = Fixture::new();
    let client = Client::of(&fixture.graph);
    let catalogue = client.service.catalogue();
    let catalogue = catalogue.borrow();
    let declared = &catalogue.capabilities;
    assert!(declared.tools.is_some_and(|tools| !tools.list_changed));
    assert!(
        declared
            .resources
            .is_some_and(|resources| resources.subscribe)
    );
    assert!(declared.prompts.is_none());
    let templates = catalogue.list(Section::Templates);
    assert!(templates.get("context://node/{id}").is_some());
}
