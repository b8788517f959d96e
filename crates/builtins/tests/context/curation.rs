//! Forgetting, boosting, consolidating and merging nodes, and the audit trail.

use plexus_mcp_builtins::context::{AuditQuery, Boost, Forget, GraphError, Link, NewNode, Search};
use plexus_mcp_store::StoreError;
use serde_json::json;

use crate::support::{Client, DAY, Fixture, HOUR};

/// A forgotten node can be restored for exactly 30 days.
#[tokio::test]
async fn forgotten_nodes_can_be_restored_for_thirty_days() {
    let fixture = Fixture::new();
    let (early, late) = (fixture.put("early").await, fixture.put("late").await);
    for id in [&early, &late] {
        let forgotten = fixture.graph.forget(Forget::new(id), "test").await.unwrap();
        let until = forgotten.restorable_until.unwrap();
        assert_eq!(until, "2023-12-14T22:13:20.000Z");
    }
    fixture.pass(30 * DAY - 1);
    assert!(
        fixture
            .graph
            .restore(&early, "test")
            .await
            .unwrap()
            .restored
    );
    assert!(
        !fixture
            .graph
            .restore(&early, "test")
            .await
            .unwrap()
            .restored
    );
    fixture.pass(1);
    let error = fixture.graph.restore(&late, "test").await.unwrap_err();
    assert_eq!(error.to_string(), format!("context node not found: {late}"));
    assert_eq!(
        fixture.graph.get(&early).await.unwrap().node.content,
        "early"
    );
    // The next write deletes the expired node.
    fixture.put("later").await;
    let left = fixture
        .store()
        .read(|db| {
            let count = "SELECT count(*) FROM context_nodes";
            Ok::<i64, StoreError>(db.query_row(count, [], |row| row.get(0))?)
        })
        .await;
    assert_eq!(left.unwrap(), 2);
}

#[tokio::test]
async fn erased_nodes_cannot_be_restored() {
    let fixture = Fixture::new();
    let id = fixture
        .put_node(NewNode::new("the secret").key("secret"))
        .await;
    let mut erase = Forget::new(&id);
    erase.soft_delete = false;
    erase.reason = Some("it should not have been stored".to_owned());
    let erased = fixture.graph.forget(erase.clone(), "test").await.unwrap();
    assert_eq!(erased.restorable_until, None);
    for error in [
        fixture.graph.restore(&id, "test").await.unwrap_err(),
        fixture.graph.forget(erase, "test").await.unwrap_err(),
        fixture
            .graph
            .forget(Forget::new(&id), "test")
            .await
            .unwrap_err(),
    ] {
        assert!(matches!(error, GraphError::NotFound(_)));
    }
    let left: i64 = fixture
        .store()
        .read(|db| {
            let count =
                "SELECT count(*) FROM context_nodes WHERE content || coalesce(key, '') <> ''";
            Ok::<_, StoreError>(db.query_row(count, [], |row| row.get(0))?)
        })
        .await
        .unwrap();
    assert_eq!(left, 0);
    // The key is free for something else.
    fixture
        .put_node(NewNode::new("no secret").key("secret"))
        .await;
    let node = fixture
        .graph
        .retrieve("default", "secret")
        .await
        .unwrap()
        .node;
    assert_eq!(node.content, "no secret");
}

/// Importance is clamped, and the result has the old and the new value.
#[tokio::test]
async fn importance_stays_between_nothing_and_everything() {
    let fixture = Fixture::new();
    let id = fixture.put("tokens rotate").await;
    for (delta, old, new) in [(0.75, 0.5, 1.0), (-0.25, 1.0, 0.75), (-1.0, 0.75, 0.0)] {
        let boost = Boost {
            id: id.clone(),
            delta,
        };
        let boosted = fixture.graph.boost(boost, "test").await.unwrap();
        assert_eq!((boosted.old_importance, boosted.new_importance), (old, new));
    }
    for delta in [1.1, f64::NAN] {
        let boost = Boost {
            id: id.clone(),
            delta,
        };
        assert!(fixture.graph.boost(boost, "test").await.is_err());
    }
}

/// Consolidation proposes pairs of similar nodes, and changes nothing.
#[tokio::test]
async fn consolidation_only_proposes() {
    let fixture = Fixture::new();
    let client = Client::of(&fixture.graph);
    let a = fixture
        .put("Refresh tokens rotate on every single use")
        .await;
    fixture.pass(2 * HOUR);
    let b = fixture
        .put("refresh tokens ROTATE on every single use!")
        .await;
    let c = fixture
        .put("Refresh token rotates on every single usage")
        .await;
    fixture.put("The cafeteria closes early on fridays").await;
    let elsewhere = NewNode::new("Refresh tokens rotate on every single use").namespace("other");
    fixture.put_node(elsewhere).await;
    let before = fixture.graph.status().await.unwrap();

    let pairs = async |arguments| -> Vec<Vec<String>> {
        let data = client.data("consolidate", arguments).await;
        let proposals = data["proposals"].as_array().unwrap().clone();
        let ids = |proposal: &serde_json::Value| {
            let ids = proposal["ids"].as_array().unwrap().clone();
            ids.iter()
                .map(|id| id.as_str().unwrap().to_owned())
                .collect()
        };
        proposals.iter().map(ids).collect()
    };
    let pair = |a: &String, b: &String| {
        let mut pair = vec![a.clone(), b.clone()];
        pair.sort();
        pair
    };
    assert_eq!(pairs(json!({})).await, [pair(&a, &b)]);
    assert_eq!(pairs(json!({"strategy": "semantic"})).await, [pair(&a, &b)]);
    assert!(pairs(json!({"strategy": "temporal"})).await.is_empty());
    let loose = json!({"strategy": "temporal", "min_similarity": 0.6});
    assert_eq!(pairs(loose).await, [pair(&b, &c)]);
    let loose = json!({"strategy": "semantic", "min_similarity": 0.6, "max": 2});
    assert_eq!(pairs(loose).await.len(), 2);
    assert!(pairs(json!({"namespace": "other"})).await.is_empty());
    assert_eq!(fixture.graph.status().await.unwrap(), before);
}

/// The result of a merge has a hash, with which the merge can be undone for 30 days.
#[tokio::test]
async fn a_merge_can_be_undone() {
    let fixture = Fixture::new();
    let client = Client::of(&fixture.graph);
    let a = fixture.put("Tokens rotate.\nTokens expire.").await;
    let b = fixture.put("Tokens expire.\nTokens are opaque.").await;
    let other = fixture.put("Gateway").await;
    fixture
        .graph
        .link(Link::new(&other, &a), "test")
        .await
        .unwrap();
    fixture
        .graph
        .link(Link::new(&b, &other), "test")
        .await
        .unwrap();

    let arguments = json!({
        "source_ids": [a, b],
        "target_name": "tokens",
        "rationale": "they say the same",
    });
    let merged = client.data("merge", arguments.clone()).await;
    let id = merged["id"].as_str().unwrap();
    let node = fixture.graph.retrieve("default", "tokens").await.unwrap();
    assert_eq!(node.node.id, id);
    assert_eq!(
        node.node.content,
        "Tokens rotate.\nTokens expire.\nTokens are opaque."
    );
    assert_eq!(node.links, [Link::new(id, &other), Link::new(&other, id)]);
    assert_eq!(
        fixture.find("expire").await,
        [node.node.content.as_str(), "Gateway"]
    );
    assert!(fixture.graph.get(&a).await.is_err());

    fixture.pass(29 * DAY);
    let undo = json!({"reversal_hash": merged["reversal_hash"]});
    let undone = client.data("unmerge", undo.clone()).await;
    assert_eq!(undone, json!({"restored": [a, b], "forgotten": id}));
    assert_eq!(fixture.graph.get(&a).await.unwrap().links.len(), 1);
    assert!(fixture.graph.get(id).await.is_err());
    let failure = client.failure("unmerge", undo).await;
    assert!(
        failure.starts_with("Error: There is no merge to undo"),
        "{failure}"
    );

    let merged = client.data("merge", arguments).await;
    fixture.pass(30 * DAY);
    let late = json!({"reversal_hash": merged["reversal_hash"]});
    client.failure("unmerge", late).await;
}

#[tokio::test]
async fn strategies_decide_what_a_merge_keeps() {
    let merged = async |strategy: &str| {
        let fixture = Fixture::new();
        let client = Client::of(&fixture.graph);
        let mut ids = Vec::new();
        for (content, importance, tags) in [
            ("shared\nfirst", 0.2, ["auth", "old"]),
            ("second\nshared", 0.8, ["auth", "new"]),
        ] {
            let mut node = NewNode::new(content).namespace("project");
            node.importance = importance;
            node.tags = tags.map(str::to_owned).to_vec();
            ids.push(fixture.put_node(node).await);
        }
        let arguments = json!({
            "source_ids": ids, "target_name": "both", "strategy": strategy, "rationale": "why not",
        });
        client.data("merge", arguments).await;
        fixture
            .graph
            .retrieve("project", "both")
            .await
            .unwrap()
            .node
    };
    let union = merged("union").await;
    assert_eq!(union.content, "shared\nfirst\nsecond");
    assert_eq!((union.importance, union.tags.len()), (0.8, 3));
    let intersection = merged("intersection").await;
    assert_eq!(intersection.content, "shared");
    assert_eq!(
        (intersection.importance, intersection.tags),
        (0.2, vec!["auth".to_owned()])
    );
    let weighted = merged("weighted_average").await;
    assert_eq!(weighted.content, "second\nshared\nfirst");
    assert!((weighted.importance - 0.68).abs() < 1e-9);
}

/// A merge that fails changes nothing.
#[tokio::test]
async fn an_impossible_merge_changes_nothing() {
    let fixture = Fixture::new();
    let client = Client::of(&fixture.graph);
    let a = fixture.put("alpha").await;
    let b = fixture.put("bravo").await;
    let elsewhere = fixture
        .put_node(NewNode::new("charlie").namespace("other"))
        .await;
    fixture.put_node(NewNode::new("delta").key("taken")).await;
    let before = fixture.graph.status().await.unwrap();
    let failure = async |ids: &[&String], name: &str, strategy: &str| {
        let arguments = json!({
            "source_ids": ids, "target_name": name, "strategy": strategy, "rationale": "why not",
        });
        client.failure("merge", arguments).await
    };
    let unknown = "ctx_unknown".to_owned();
    assert_eq!(
        failure(&[&a, &unknown], "new", "union").await,
        "Error: Context node not found: ctx_unknown"
    );
    assert_eq!(
        failure(&[&a, &a], "new", "union").await,
        "Error: Source_ids must be 2 to 10 different nodes"
    );
    assert_eq!(
        failure(&[&a, &elsewhere], "new", "union").await,
        "Error: Source_ids must be nodes of one namespace"
    );
    assert_eq!(
        failure(&[&a, &b], "taken", "union").await,
        "Error: The key \"taken\" is taken"
    );
    assert_eq!(
        failure(&[&a, &b], "new", "intersection").await,
        "Error: The nodes have no line in common"
    );
    assert_eq!(fixture.graph.status().await.unwrap(), before);
}

/// Every change has an entry in the audit trail, which can be queried by node and by time.
#[tokio::test]
async fn every_change_is_on_the_trail() {
    let fixture = Fixture::new();
    let client = Client::of(&fixture.graph);
    let stored = client
        .data(
            "store",
            json!({"content": "tokens rotate", "rationale": "asked for"}),
        )
        .await;
    let id = stored["id"].as_str().unwrap();
    let other = fixture.put("other").await;
    client
        .data("link", json!({"source": id, "target": other}))
        .await;
    client
        .data("unlink", json!({"source": id, "target": other}))
        .await;
    client.data("boost", json!({"id": id, "delta": 0.1})).await;
    fixture.pass(2 * HOUR);
    client
        .data("forget", json!({"id": id, "reason": "outdated"}))
        .await;
    client.data("restore", json!({"id": id})).await;
    // Reads and failed changes have no entry.
    client.data("get", json!({"id": id})).await;
    client
        .failure("boost", json!({"id": "ctx_unknown", "delta": 0.1}))
        .await;

    let actions = async |arguments| -> Vec<String> {
        let data = client.data("audit", arguments).await;
        let entries = data["entries"].as_array().unwrap().clone();
        let action = |entry: &serde_json::Value| entry["action"].as_str().unwrap().to_owned();
        entries.iter().map(action).collect()
    };
    assert_eq!(
        actions(json!({"id": id})).await,
        ["restore", "forget", "boost", "unlink", "link", "store"]
    );
    assert_eq!(
        actions(json!({"last_hours": 1})).await,
        ["restore", "forget"]
    );
    assert_eq!(actions(json!({"action": "store"})).await.len(), 2);
    assert_eq!(actions(json!({"limit": 3})).await.len(), 3);
    assert!(actions(json!({"id": "ctx_unknown"})).await.is_empty());

    let trail = fixture.graph.audit(AuditQuery::default()).await.unwrap();
    let forgotten = &trail.entries[1];
    assert_eq!(forgotten.caller, "anonymous (claude-code)");
    assert_eq!(forgotten.reason.as_deref(), Some("outdated"));
    assert_eq!(forgotten.at, "2023-11-15T00:13:20.000Z");
    assert_eq!(
        trail.entries.last().unwrap().reason.as_deref(),
        Some("asked for")
    );
}

#[tokio::test]
async fn the_trail_can_only_grow() {
    let fixture = Fixture::new();
    fixture.put("tokens rotate").await;
    for statement in [
        "DELETE FROM context_audit",
        "UPDATE context_audit SET caller = 'nobody'",
    ] {
        let edited = fixture
            .store()
            .write(move |transaction| Ok::<_, StoreError>(transaction.execute(statement, [])?))
            .await;
        assert!(edited.is_err(), "{statement}");
    }
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

#[tokio::test]
async fn the_status_counts_what_is_there() {
    let fixture = Fixture::new();
    let client = Client::of(&fixture.graph);
    let a = fixture.put("alpha").await;
    let b = fixture.put("bravo").await;
    fixture
        .put_node(NewNode::new("charlie").namespace("project"))
        .await;
    fixture.graph.link(Link::new(&a, &b), "test").await.unwrap();
    let status = client.data("status", json!({})).await;
    assert_eq!(
        [
            &status["nodes"],
            &status["forgotten"],
            &status["links"],
            &status["without_vector"]
        ],
        [3, 0, 1, 0]
    );
    assert_eq!(
        status["namespaces"],
        json!([{"name": "default", "nodes": 2}, {"name": "project", "nodes": 1}])
    );
    fixture.graph.forget(Forget::new(&a), "test").await.unwrap();
    let status = client.data("status", json!({})).await;
    assert_eq!(
        [&status["nodes"], &status["forgotten"], &status["links"]],
        [2, 1, 0]
    );
    assert!(
        fixture
            .graph
            .search(Search::new("alpha"))
            .await
            .unwrap()
            .results
            .is_empty()
    );
}
