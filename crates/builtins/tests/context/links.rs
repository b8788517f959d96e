//! Links, neighbours and traversal.

use plexus_mcp_builtins::context::{Forget, GraphError, Link};
use serde_json::json;

use crate::support::{Client, Fixture};

fn link(source: &str, relation: &str, target: &str, weight: f64) -> Link {
    let mut link = Link::new(source, target);
    relation.clone_into(&mut link.relation);
    link.weight = weight;
    link
}

/// a → b (1), a → c (0.5), b → d (0.8), c → d (0.4), d → a (1), and weak → a (0.2).
async fn diamond() -> (Fixture, [String; 5]) {
    let fixture = Fixture::new();
    let mut ids = Vec::new();
    for name in ["alpha", "bravo", "charlie", "delta", "echo"] {
        ids.push(fixture.put(name).await);
    }
    let ids: [String; 5] = ids.try_into().unwrap();
    let [a, b, c, d, weak] = &ids;
    for link in [
        link(a, "imports", b, 1.0),
        link(a, "calls", c, 0.5),
        link(b, "calls", d, 0.8),
        link(c, "calls", d, 0.4),
        link(d, "cites", a, 1.0),
        link(weak, "cites", a, 0.2),
    ] {
        fixture.graph.link(link, "test").await.unwrap();
    }
    (fixture, ids)
}

#[tokio::test]
async fn neighbours_are_one_link_away() {
    let (fixture, [a, b, c, d, weak]) = diamond().await;
    let client = Client::of(&fixture.graph);
    let neighbours = async |arguments| -> Vec<(String, String, String)> {
        let data = client.data("neighbours", arguments).await;
        let neighbours = data["neighbours"].as_array().unwrap();
        assert_eq!(data["count"], neighbours.len());
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        neighbours
            .iter()
            .map(|it| {
                (
                    text(&it["id"]),
                    text(&it["direction"]),
                    text(&it["relation"]),
                )
            })
            .collect()
    };
    let expected = |id: &String, direction: &str, relation: &str| {
        (id.clone(), direction.to_owned(), relation.to_owned())
    };
    // The strongest links first, then by id.
    let mut strongest = [expected(&b, "out", "imports"), expected(&d, "in", "cites")];
    strongest.sort();
    let all = neighbours(json!({"id": a})).await;
    assert_eq!(all[..2], strongest);
    assert_eq!(
        all[2..],
        [expected(&c, "out", "calls"), expected(&weak, "in", "cites")]
    );
    assert_eq!(
        neighbours(json!({"id": a, "direction": "out"})).await.len(),
        2
    );
    assert_eq!(
        neighbours(json!({"id": a, "relation": "calls"})).await,
        [expected(&c, "out", "calls")]
    );
    assert_eq!(neighbours(json!({"id": a, "limit": 1})).await.len(), 1);
}

/// Every link multiplies the score by 0.9 and by its weight, and the best path counts.
#[tokio::test]
async fn walks_lose_a_tenth_with_every_link() {
    let (fixture, [a, b, c, d, weak]) = diamond().await;
    let client = Client::of(&fixture.graph);
    let data = client.data("traverse", json!({"id": a})).await;
    let nodes = data["nodes"].as_array().unwrap();
    let ids: Vec<&str> = nodes
        .iter()
        .map(|node| node["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, [b.as_str(), d.as_str(), c.as_str()]);
    let score = |n: usize| nodes[n]["score"].as_f64().unwrap();
    assert!((score(0) - 0.9).abs() < 1e-9);
    assert!((score(1) - 0.9 * 0.9 * 0.8).abs() < 1e-9);
    assert!((score(2) - 0.9 * 0.5).abs() < 1e-9);
    assert_eq!(nodes[1]["path"], json!([a, b, d]));
    assert_eq!(nodes[1]["hops"], 2);

    let ids = async |arguments| -> Vec<String> {
        let data = client.data("traverse", arguments).await;
        let nodes = data["nodes"].as_array().unwrap().clone();
        nodes
            .iter()
            .map(|node| node["id"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        ids(json!({"id": a, "max_hops": 1})).await,
        [b.clone(), c.clone()]
    );
    assert_eq!(ids(json!({"id": a, "min_weight": 0.9})).await, [b]);
    assert_eq!(ids(json!({"id": a, "max_results": 1})).await.len(), 1);
    assert_eq!(
        ids(json!({"id": a, "relation": "calls"})).await,
        [c.clone(), d.clone()]
    );
    // A cycle is not followed twice, and the start is not a result.
    assert_eq!(ids(json!({"id": a, "max_hops": 5})).await.len(), 3);
    // A low `min_weight` includes the weak link.
    let inward = json!({"id": a, "direction": "in", "min_weight": 0.1, "max_hops": 1});
    assert_eq!(ids(inward).await, [d, weak]);
}

#[tokio::test]
async fn a_link_is_made_once_and_can_change_its_weight() {
    let fixture = Fixture::new();
    let (a, b) = (fixture.put("alpha").await, fixture.put("bravo").await);
    assert!(
        fixture
            .graph
            .link(Link::new(&a, &b), "test")
            .await
            .unwrap()
            .created
    );
    let weaker = link(&a, "relates_to", &b, 0.25);
    assert!(
        !fixture
            .graph
            .link(weaker.clone(), "test")
            .await
            .unwrap()
            .created
    );
    assert_eq!(fixture.graph.get(&b).await.unwrap().links, [weaker]);
    assert_eq!(fixture.graph.status().await.unwrap().links, 1);
}

#[tokio::test]
async fn links_are_taken_away_by_relation_or_all_at_once() {
    let fixture = Fixture::new();
    let client = Client::of(&fixture.graph);
    let (a, b) = (fixture.put("alpha").await, fixture.put("bravo").await);
    for relation in ["calls", "cites", "imports"] {
        let link = link(&a, relation, &b, 1.0);
        fixture.graph.link(link, "test").await.unwrap();
    }
    let removed = async |arguments| client.data("unlink", arguments).await["removed"].clone();
    let one = json!({"source": a, "target": b, "relation": "calls"});
    assert_eq!(removed(one.clone()).await, 1);
    assert_eq!(removed(one).await, 0);
    assert_eq!(removed(json!({"source": b, "target": a})).await, 0);
    assert_eq!(removed(json!({"source": a, "target": b})).await, 2);
    assert!(fixture.graph.get(&a).await.unwrap().links.is_empty());
}

#[tokio::test]
async fn a_link_needs_two_different_nodes_that_are_there() {
    let fixture = Fixture::new();
    let (a, b) = (fixture.put("alpha").await, fixture.put("bravo").await);
    let failure = async |link| fixture.graph.link(link, "test").await.unwrap_err();
    let error = failure(Link::new(&a, "ctx_unknown")).await;
    assert_eq!(error.to_string(), "context node not found: ctx_unknown");
    let error = failure(Link::new(&a, &a)).await;
    assert_eq!(
        error.to_string(),
        "a link must be between two different nodes"
    );
    for relation in ["", "Calls", "1st", "has space", &"x".repeat(65)] {
        let error = failure(link(&a, relation, &b, 1.0)).await;
        assert!(matches!(error, GraphError::Invalid { .. }), "{relation}");
    }
    for weight in [-0.1, 1.5, f64::NAN] {
        let error = failure(link(&a, "calls", &b, weight)).await;
        assert!(matches!(error, GraphError::Invalid { .. }), "{weight}");
    }
    fixture.graph.forget(Forget::new(&b), "test").await.unwrap();
    assert!(matches!(
        failure(Link::new(&a, &b)).await,
        GraphError::NotFound(_)
    ));
}

/// The links of a forgotten node are hidden, and are back when it is restored.
#[tokio::test]
async fn links_come_and_go_with_their_nodes() {
    let (fixture, [a, b, ..]) = diamond().await;
    fixture.graph.forget(Forget::new(&b), "test").await.unwrap();
    assert_eq!(fixture.graph.get(&a).await.unwrap().links.len(), 3);
    fixture.graph.restore(&b, "test").await.unwrap();
    assert_eq!(fixture.graph.get(&a).await.unwrap().links.len(), 4);
    let mut erase = Forget::new(&b);
    erase.soft_delete = false;
    fixture.graph.forget(erase, "test").await.unwrap();
    fixture.put("bravo").await;
    assert_eq!(fixture.graph.get(&a).await.unwrap().links.len(), 3);
}
