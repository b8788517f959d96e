//! Several graphs on one file, other vectorizers, and subscriptions.

use std::num::NonZeroUsize;
use std::sync::Arc;

use plexus_mcp_builtins::context::{Forget, NewNode, Search, Trigrams, VectorizeError, Vectorizer};
use plexus_mcp_core::{Boxed, Fault};
use serde_json::json;

use crate::support::{Client, Fixture, contents, was_updated};

/// Changes of one process are visible to another.
#[tokio::test]
async fn graphs_on_one_file_see_each_others_changes() {
    let fixture = Fixture::new();
    let other = fixture.another();
    let find = async |query: &str| contents(&other.search(Search::new(query)).await.unwrap());
    assert!(find("tokens").await.is_empty());
    let id = fixture
        .put_node(NewNode::new("tokens rotate").key("tokens"))
        .await;
    assert_eq!(find("tokens").await, ["tokens rotate"]);
    fixture
        .put_node(NewNode::new("tokens expire").key("tokens"))
        .await;
    assert_eq!(find("tokens").await, ["tokens expire"]);
    other.forget(Forget::new(&id), "other").await.unwrap();
    assert!(fixture.find("tokens").await.is_empty());
    let mut erase = Forget::new(&id);
    erase.soft_delete = false;
    fixture.graph.forget(erase, "test").await.unwrap();
    assert!(other.restore(&id, "other").await.is_err());
}

/// Concurrent writers in two processes lose nothing.
#[tokio::test]
async fn many_writers_lose_nothing() {
    let fixture = Fixture::new();
    let other = fixture.another();
    let write = async |graph: &plexus_mcp_builtins::context::Graph, name: &str| {
        for n in 0..25 {
            let node = NewNode::new(format!("note {n} of {name}"));
            graph.store(node, name).await.unwrap();
        }
    };
    tokio::join!(
        write(&fixture.graph, "alpha"),
        write(&other, "bravo"),
        write(&fixture.graph, "charlie")
    );
    let mut search = Search::new("note");
    search.limit = 100;
    for graph in [&fixture.graph, &other] {
        assert_eq!(graph.search(search.clone()).await.unwrap().count, 75);
    }
    // Each change has its own revision.
    assert_eq!(fixture.graph.status().await.unwrap().revision, 75);
}

/// A node can be read as a resource, and its subscribers are notified of every kind of change.
#[tokio::test]
async fn subscribers_of_a_node_are_notified_of_every_change() {
    let fixture = Fixture::new();
    let client = Client::of(&fixture.graph);
    let arguments = json!({"content": "tokens rotate", "key": "tokens"});
    let uri = client.data("store", arguments.clone()).await["uri"].clone();
    let uri = uri.as_str().unwrap();
    let id = uri.strip_prefix("context://node/").unwrap();
    let other = fixture.put("other").await;
    client.data("status", json!({})).await;

    let mut updates = client.subscribe(uri).await;
    for (method, arguments) in [
        ("store", arguments),
        ("boost", json!({"id": id, "delta": 0.1})),
        ("link", json!({"source": other, "target": id})),
        ("unlink", json!({"source": other, "target": id})),
        ("forget", json!({"id": id})),
        ("restore", json!({"id": id})),
    ] {
        client.data(method, arguments).await;
        assert!(was_updated(&mut updates), "{method}");
    }
    // Changes of other nodes and reads send no notification.
    client
        .data("boost", json!({"id": other, "delta": 0.1}))
        .await;
    client.data("get", json!({"id": id})).await;
    assert!(!was_updated(&mut updates));
    // Subscribers are notified of another process's changes at the next call.
    fixture
        .another()
        .forget(Forget::new(id), "other")
        .await
        .unwrap();
    client.data("status", json!({})).await;
    assert!(was_updated(&mut updates));
}

/// A node is shown with its links, so it changes when a linked node is forgotten or restored.
#[tokio::test]
async fn subscribers_of_a_node_are_notified_when_its_links_change() {
    let fixture = Fixture::new();
    let client = Client::of(&fixture.graph);
    let (watched, other) = (fixture.put("watched").await, fixture.put("other").await);
    let link = json!({"source": watched, "target": other});
    client.data("link", link).await;
    let mut updates = client.subscribe(&format!("context://node/{watched}")).await;
    for (method, links) in [("forget", 0), ("restore", 1)] {
        client.data(method, json!({"id": other})).await;
        assert!(was_updated(&mut updates), "{method}");
        let node = client.data("get", json!({"id": watched})).await;
        assert_eq!(node["links"].as_array().unwrap().len(), links, "{method}");
    }
}

#[tokio::test]
async fn a_node_is_a_resource() {
    let fixture = Fixture::new();
    let client = Client::of(&fixture.graph);
    let id = fixture.put("tokens rotate").await;
    let uri = format!("context://node/{id}");
    let read = client.read(&uri).await.unwrap();
    let contents = &read["contents"][0];
    assert_eq!(contents["uri"], uri);
    assert_eq!(contents["mimeType"], "application/json");
    let node: serde_json::Value = serde_json::from_str(contents["text"].as_str().unwrap()).unwrap();
    assert_eq!(node, client.data("get", json!({"id": id})).await);
    assert_eq!(node["node"]["content"], "tokens rotate");

    let uri = "context://node/ctx_unknown";
    assert_eq!(
        client.read(uri).await.unwrap_err(),
        Fault::ResourceNotFound(uri.to_owned())
    );
}

/// A vectorizer with one component for cats and one for dogs.
#[derive(Debug)]
struct Animals {
    works: bool,
}

impl Vectorizer for Animals {
    fn name(&self) -> &'static str {
        "animals-1"
    }

    fn dimensions(&self) -> NonZeroUsize {
        NonZeroUsize::new(2).unwrap()
    }

    fn threshold(&self) -> f32 {
        0.9
    }

    fn vectorize(&self, texts: Vec<String>) -> Boxed<Result<Vec<Vec<f32>>, VectorizeError>> {
        let vector = |text: &String| {
            let any = |words: &[&str]| words.iter().any(|word| text.contains(word));
            vec![
                f32::from(u8::from(any(&["cat", "kitten"]))),
                f32::from(u8::from(any(&["dog", "puppy"]))),
            ]
        };
        let vectors = if self.works {
            Ok(texts.iter().map(vector).collect())
        } else {
            Err(VectorizeError::new("out of order"))
        };
        Box::pin(std::future::ready(vectors))
    }
}

/// With another vectorizer, the existing nodes are vectorized again.
#[tokio::test]
async fn another_vectorizer_finds_by_meaning() {
    let fixture = Fixture::new();
    fixture.put("a kitten sleeps").await;
    fixture.put("a puppy barks").await;
    assert!(fixture.find("cat").await.is_empty());

    let graph = fixture.another_with(Arc::new(Animals { works: true }));
    assert_eq!(graph.status().await.unwrap().without_vector, 2);
    let find = async |query: &str| contents(&graph.search(Search::new(query)).await.unwrap());
    assert_eq!(find("cat").await, ["a kitten sleeps"]);
    assert_eq!(find("dog").await, ["a puppy barks"]);
    let status = graph.status().await.unwrap();
    assert_eq!(
        (status.vectorizer.as_str(), status.without_vector),
        ("animals-1", 0)
    );
    // Vectors of one vectorizer are never compared with those of another.
    assert_eq!(fixture.find("kitten").await, ["a kitten sleeps"]);
}

/// If the vectorizer fails, search by words still works. The vectors are made by a later graph
/// whose vectorizer works.
#[tokio::test]
async fn without_a_vectorizer_words_are_left() {
    let fixture = Fixture::new();
    let graph = fixture.another_with(Arc::new(Animals { works: false }));
    graph
        .store(NewNode::new("a kitten sleeps"), "test")
        .await
        .unwrap();
    let find = async |query: &str| contents(&graph.search(Search::new(query)).await.unwrap());
    assert_eq!(find("kitten").await, ["a kitten sleeps"]);
    assert!(find("cat").await.is_empty());
    assert_eq!(graph.status().await.unwrap().without_vector, 1);
    let repaired = fixture.another_with(Arc::new(Animals { works: true }));
    let found = repaired.search(Search::new("cat")).await.unwrap();
    assert_eq!(contents(&found), ["a kitten sleeps"]);
}

/// A large text, which is vectorized on a blocking thread, gets the same vector each time.
#[tokio::test]
async fn large_texts_are_counted_on_a_blocking_thread() {
    let text = "token ".repeat(100_000);
    let vectors = Trigrams::default()
        .vectorize(vec![text.clone()])
        .await
        .unwrap();
    assert_eq!(
        vectors,
        Trigrams::default().vectorize(vec![text]).await.unwrap()
    );
    assert_eq!(vectors[0].len(), Trigrams::default().dimensions().get());
}
