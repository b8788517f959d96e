//! Storing and reading nodes.

use plexus_mcp_builtins::context::{AuditQuery, GraphError, Modality, NewNode, NodeQuery};

use crate::support::{Fixture, HOUR};

/// S000-55: a node is found by its namespace and key.
#[tokio::test]
async fn a_memory_is_retrieved_by_namespace_and_key() {
    let fixture = Fixture::new();
    let namespace = "contextgraph/ghost-system";
    let node = NewNode::new("MCP is JSON-RPC")
        .namespace(namespace)
        .key("mcp-research");
    let stored = fixture.graph.store(node, "test").await.unwrap();
    assert!(stored.created);
    assert_eq!(stored.uri, format!("context://node/{}", stored.id));

    let found = fixture
        .graph
        .retrieve(namespace, "mcp-research")
        .await
        .unwrap();
    assert_eq!(found.node.id, stored.id);
    assert_eq!(found.node.content, "MCP is JSON-RPC");
    assert_eq!(found.node.key.as_deref(), Some("mcp-research"));

    for (namespace, key) in [("default", "mcp-research"), (namespace, "other")] {
        let error = fixture.graph.retrieve(namespace, key).await.unwrap_err();
        let expected = format!("context node not found: {namespace}/{key}");
        assert_eq!(error.to_string(), expected);
    }
}

/// A node stored under an existing key replaces the old one, and keeps its id.
#[tokio::test]
async fn a_key_is_written_anew() {
    let fixture = Fixture::new();
    let first = fixture
        .put_node(NewNode::new("expires in 5 minutes").key("token"))
        .await;
    fixture.pass(HOUR);
    let mut second = NewNode::new("expires in 10 minutes").key("token");
    second.modality = Modality::Code;
    second.importance = 0.9;
    second.tags = vec!["auth".to_owned()];
    second.rationale = Some("it was changed".to_owned());
    let stored = fixture.graph.store(second, "test").await.unwrap();
    assert!(!stored.created);
    assert_eq!(stored.id, first);

    let node = fixture.graph.get(&first).await.unwrap().node;
    assert_eq!(node.content, "expires in 10 minutes");
    assert_eq!(node.modality, Modality::Code);
    assert_eq!(node.tags, ["auth"]);
    assert_eq!(node.rationale.as_deref(), Some("it was changed"));
    assert_eq!(node.created_at, "2023-11-14T22:13:20.000Z");
    assert_eq!(node.updated_at, "2023-11-14T23:13:20.000Z");
    assert_eq!(fixture.find("minutes").await, ["expires in 10 minutes"]);
}

/// A text that is stored twice makes one node, with the same id in every graph.
#[tokio::test]
async fn the_same_text_is_remembered_once() {
    let fixture = Fixture::new();
    let other = Fixture::new();
    let first = fixture.put("tokens rotate").await;
    let again = fixture
        .graph
        .store(NewNode::new("tokens rotate"), "test")
        .await
        .unwrap();
    assert!(!again.created);
    assert_eq!(again.id, first);
    assert_eq!(other.put("tokens rotate").await, first);
    assert_eq!(fixture.graph.status().await.unwrap().nodes, 1);
}

/// An empty text is not an error.
#[tokio::test]
async fn an_empty_text_can_be_stored() {
    let fixture = Fixture::new();
    let id = fixture.put("").await;
    assert_eq!(fixture.graph.get(&id).await.unwrap().node.content, "");
    assert!(fixture.find("anything").await.is_empty());
}

/// Any text is returned unchanged: with control characters, quotes, or combining characters.
#[tokio::test]
async fn content_comes_back_as_it_was() {
    let fixture = Fixture::new();
    for content in [
        "\u{0}\n\r\"\\'; DROP TABLE context_nodes; --",
        "記憶🧠",
        "a\u{301}",
    ] {
        let id = fixture.put(content).await;
        assert_eq!(fixture.graph.get(&id).await.unwrap().node.content, content);
    }
}

/// Content of up to 10 MiB is stored. A larger node is refused, and changes nothing.
#[tokio::test]
async fn the_limit_of_content_is_ten_megabytes() {
    let fixture = Fixture::new();
    let content = "token ".repeat(10 * 1024 * 1024 / 6);
    let id = fixture.put(&content).await;
    assert_eq!(
        fixture.graph.get(&id).await.unwrap().node.content.len(),
        content.len()
    );
    let node = NewNode::new(format!("{content}and more"));
    let error = fixture.graph.store(node, "test").await.unwrap_err();
    assert_eq!(error.to_string(), "content must be at most 10 MiB");
    assert_eq!(fixture.graph.status().await.unwrap().nodes, 1);
    assert_eq!(
        fixture
            .graph
            .audit(AuditQuery::default())
            .await
            .unwrap()
            .count,
        1
    );
}

/// A query needs either an id or a key: none or both are an error.
#[tokio::test]
async fn an_ambiguous_question_is_refused() {
    let fixture = Fixture::new();
    let query = |id: Option<&str>, key: Option<&str>| {
        let mut query = NodeQuery::default();
        query.id = id.map(str::to_owned);
        query.key = key.map(str::to_owned);
        query
    };
    for query in [query(None, None), query(Some("ctx_1"), Some("token"))] {
        let error = fixture.graph.find(query).await.unwrap_err();
        assert!(matches!(error, GraphError::Invalid { .. }), "{error}");
    }
    let error = fixture
        .graph
        .find(query(Some("ctx_1"), None))
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "context node not found: ctx_1");
}
