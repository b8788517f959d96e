//! Invalid input and database errors: each gives a clear error, and no partial write.

use std::time::Duration;

use plexus_mcp_builtins::arbor::{NewTreeNode, Payload};
use plexus_mcp_builtins::{Data, DataPaths};
use plexus_mcp_core::Fault;
use plexus_mcp_store::StoreError;
use plexus_mcp_store::rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::Client;

/// Unknown ids are errors, not empty results.
#[tokio::test]
async fn unknown_ids_are_errors() {
    let client = Client::new();
    let tree = client.plant().await;
    let other = client.plant().await;
    let foreign = client.grow(&other, None, "x").await;
    let of_none = json!({ "tree_id": "none" });
    for method in [
        "tree_get",
        "tree_get_skeleton",
        "tree_render",
        "context_list_leaves",
    ] {
        let said = client.failed(method, of_none.clone()).await;
        assert_eq!(said, "tree not found: none", "{method}");
    }
    for method in [
        "node_get",
        "node_get_children",
        "node_get_parent",
        "node_get_path",
        "context_get_path",
        "context_get_handles",
    ] {
        let of = |tree: &str, node: &str| json!({ "tree_id": tree, "node_id": node });
        let said = client.failed(method, of("none", "none")).await;
        assert_eq!(said, "tree not found: none", "{method}");
        // A node of another tree is not in this one.
        let said = client.failed(method, of(&tree, &foreign)).await;
        assert_eq!(
            said,
            format!("node {foreign} not found in tree {tree}"),
            "{method}"
        );
    }
    let graft = json!({ "tree_id": tree, "parent": foreign, "content": "x" });
    let said = client.failed("node_create_text", graft).await;
    assert_eq!(said, format!("node {foreign} not found in tree {tree}"));
    let whole = client.done("tree_get", json!({ "tree_id": tree })).await;
    assert_eq!(whole["nodes"].as_array().unwrap().len(), 1);
}

/// S000-37: arguments that violate the schema are refused, and change nothing.
#[tokio::test]
async fn arguments_out_of_range_are_refused() {
    let client = Client::new();
    let tree = client.plant().await;
    let of = |count: Value| json!({ "tree_id": tree, "owner_id": "ann", "count": count });
    for (method, arguments) in [
        ("tree_claim", of(json!(0))),
        ("tree_claim", of(json!(-1))),
        ("tree_claim", of(json!(1_000_001))),
        ("tree_release", of(json!("1"))),
        ("tree_claim", json!({ "tree_id": tree, "owner_id": "" })),
        ("tree_create", json!({ "metadata": "name" })),
        ("tree_create", json!({ "owner": "ann" })),
        ("node_create_text", json!({ "tree_id": tree })),
    ] {
        let fault = client.call(method, arguments).await.unwrap_err();
        assert!(matches!(fault, Fault::InvalidArguments(_)), "{fault}");
    }
    let handle = json!({ "tree_id": tree, "handle": "somewhere" });
    let said = client.failed("node_create_external", handle).await;
    assert!(said.contains("plugin@version::method"), "{said}");
    let metadata = json!({ "metadata": { "x": "y".repeat(70_000) } });
    let said = client.failed("tree_create", metadata).await;
    assert!(said.starts_with("the metadata has"), "{said}");
    let trees = client.done("tree_list", json!({})).await;
    assert_eq!(trees["tree_ids"], json!([tree]));
}

/// A claim that would overflow the reference count is an error.
#[tokio::test]
async fn references_do_not_overflow() {
    let client = Client::new();
    let tree = client.plant().await;
    assert!(client.trees.claim(&tree, "ann", u32::MAX - 1).await.is_ok());
    let error = client.trees.claim(&tree, "ann", 1).await.unwrap_err();
    assert!(error.to_string().contains("too many references"), "{error}");
    let summary = client.trees.summary(&tree).await.unwrap();
    assert_eq!(summary.ref_count, u64::from(u32::MAX));
}

/// A text of 10 MiB is stored unchanged. A larger text is refused, and so is a larger response.
#[tokio::test]
async fn much_content_is_kept_whole_or_refused() {
    let client = Client::new();
    let tree = client.plant().await;
    let text = |content: &str, parent: Option<&str>| NewTreeNode {
        tree_id: tree.clone(),
        parent: parent.map(str::to_owned),
        payload: Payload::Text(content.to_owned()),
        metadata: None,
    };
    let large = "ä".repeat(5 * 1024 * 1024);
    let node = client.trees.add(text(&large, None)).await.unwrap();
    let read = client.trees.path_nodes(&tree, &node.id).await.unwrap();
    assert!(read[1].content.as_ref() == Some(&large));

    let larger = large.clone() + "!";
    let error = client.trees.add(text(&larger, None)).await.unwrap_err();
    assert!(error.to_string().contains("10485761 bytes"), "{error}");
    let small = client.grow(&tree, Some(&node.id), "x").await;
    let of = json!({ "tree_id": tree, "node_id": small });
    for (method, arguments) in [
        ("tree_get", json!({ "tree_id": tree })),
        ("context_get_path", of.clone()),
    ] {
        let said = client.failed(method, arguments).await;
        assert!(said.contains("get its skeleton"), "{method}: {said}");
    }
    let path = client.done("node_get_path", of).await;
    assert_eq!(path["path"].as_array().unwrap().len(), 3);
    client.done("tree_render", json!({ "tree_id": tree })).await;
}

/// A tree with thousands of levels does not overflow the stack.
#[tokio::test]
async fn deep_trees_are_walked() {
    let client = Client::new();
    let tree = client.plant().await;
    let (id, root) = (tree.clone(), client.root(&tree).await);
    let deepest = client
        .store
        .write(move |db| {
            let mut parent = root;
            for number in 0..10_500 {
                let node = format!("node-{number}");
                db.execute(
                    "INSERT INTO arbor_nodes (id, tree_id, parent_id, content, created_at)
                     VALUES (?1, ?2, ?3, 'x', '2023-11-14T22:13:20.000Z')",
                    (&node, &id, &parent),
                )?;
                parent = node;
            }
            Ok::<_, StoreError>(parent)
        })
        .await
        .unwrap();
    let path = client.trees.path(&tree, deepest).await.unwrap();
    assert_eq!(path.len(), 10_501);
    let drawing = client.trees.render(&tree).await.unwrap();
    assert!(
        drawing.ends_with("\n(501 more nodes)\n"),
        "{}",
        drawing.len()
    );
    assert!(drawing.len() < 100_000);
}

/// A cycle in the file does not cause an endless loop.
#[tokio::test]
async fn circles_in_the_file_end() {
    let client = Client::new();
    let tree = client.plant().await;
    let a = client.grow(&tree, None, "a").await;
    let b = client.grow(&tree, Some(&a), "b").await;
    let (from, to) = (a.clone(), b.clone());
    client
        .store
        .write(move |db| {
            let statement = "UPDATE arbor_nodes SET parent_id = ?2 WHERE id = ?1";
            db.execute(statement, [&from, &to])?;
            Ok::<_, StoreError>(())
        })
        .await
        .unwrap();
    let path = client.trees.path(&tree, &b).await.unwrap();
    assert_eq!(path, [a, b]);
    client.trees.render(&tree).await.unwrap();
}

/// Concurrent writes of two processes all succeed, and no reference is lost.
#[tokio::test(flavor = "multi_thread")]
async fn two_processes_lose_nothing() {
    let client = Client::new();
    let other = client.another();
    let tree = client.plant().await;
    let work = async |client: &Client, owner: &'static str| {
        for number in 0..25 {
            client.grow(&tree, None, &format!("{owner} {number}")).await;
            client.trees.claim(&tree, "shared", 2).await.unwrap();
            client.trees.release(&tree, "shared", 1).await.unwrap();
        }
    };
    tokio::join!(work(&client, "here"), work(&other, "there"));
    let whole = client.trees.get(&tree).await.unwrap();
    assert_eq!(whole.nodes.len(), 51);
    assert_eq!(whole.tree.ref_count, 51);
    assert_eq!(whole, other.trees.get(&tree).await.unwrap());
}

/// A locked or a full database is reported, and no write is partial.
#[tokio::test]
async fn a_locked_or_full_database_is_reported() {
    let client = Client::new();
    let tree = client.plant().await;
    client
        .store
        .write(|db| {
            db.busy_timeout(Duration::ZERO)?;
            db.pragma_update(None, "max_page_count", 1)?;
            Ok::<_, StoreError>(())
        })
        .await
        .unwrap();
    let elsewhere = Connection::open(client.store.path()).unwrap();
    elsewhere.execute_batch("BEGIN IMMEDIATE").unwrap();
    let new = |content: &str| json!({ "tree_id": tree, "content": content });
    let said = client.failed("node_create_text", new("x")).await;
    assert!(said.contains("the database is busy"), "{said}");
    elsewhere.execute_batch("ROLLBACK").unwrap();

    let said = client
        .failed("node_create_text", new(&"x".repeat(1_000_000)))
        .await;
    assert!(said.contains("the disk is full"), "{said}");
    let said = client
        .failed(
            "tree_create",
            json!({ "metadata": { "x": "y".repeat(60_000) } }),
        )
        .await;
    assert!(said.contains("the disk is full"), "{said}");
    let whole = client.trees.get(&tree).await.unwrap();
    assert_eq!(whole.nodes.len(), 1);
    let trees = client.done("tree_list", json!({})).await;
    assert_eq!(trees["tree_ids"], json!([tree]));
}

/// A damaged file is reported when it is opened. A missing table makes a call fail with an error.
#[tokio::test]
async fn a_damaged_database_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plexus.db");
    std::fs::write(&path, "not a database, ".repeat(1000)).unwrap();
    let error = Data::open(&DataPaths::in_directory(folder.path())).unwrap_err();
    assert!(error.to_string().contains("is damaged"), "{error}");

    let client = Client::new();
    client
        .store
        .write(|db| {
            db.execute_batch("ALTER TABLE arbor_nodes RENAME TO lost")?;
            Ok::<_, StoreError>(())
        })
        .await
        .unwrap();
    let said = client.failed("tree_create", json!({})).await;
    assert_eq!(said, "the database refused a statement");
}

/// A call that is dropped while it waits for the write lock changes nothing.
#[tokio::test]
async fn a_call_that_waits_can_be_cancelled() {
    let client = Client::new();
    let (begun, has_begun) = tokio::sync::oneshot::channel();
    let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
    let turn = client.store.write(move |_| {
        begun.send(()).unwrap();
        may_go_on.recv().unwrap();
        Ok::<_, StoreError>(())
    });
    let waiting = async {
        has_begun.await.unwrap();
        let call = client.call("tree_create", json!({}));
        assert!(tokio::time::timeout(Duration::ZERO, call).await.is_err());
        go_on.send(()).unwrap();
    };
    let (turn, ()) = tokio::join!(turn, waiting);
    turn.unwrap();
    let trees = client.done("tree_list", json!({})).await;
    assert_eq!(trees["tree_ids"], json!([]));
}
