//! Trees as resources: lists, contents, updates, completions.

use plexus_mcp_core::{Fault, Section, Service};
use serde_json::{Value, json};

use crate::support::{Client, DAY, has_news, string};

/// S003-23, S003-24, S003-51: nodes are read by URI, with their role and content.
#[tokio::test]
async fn nodes_are_read_by_their_uris() {
    let client = Client::new();
    let tree = client.plant().await;
    let said = json!({
        "tree_id": tree,
        "content": "Grüße",
        "metadata": { "role": "assistant" },
    });
    let node = string(&client.done("node_create_text", said).await["node_id"]);
    let read = client
        .read(&format!("arbor://tree/{tree}/node/{node}"))
        .await
        .unwrap();
    assert_eq!(
        (&read["role"], &read["content"]),
        (&json!("assistant"), &json!("Grüße"))
    );
    let head = client.read(&format!("arbor://tree/{tree}/head")).await;
    assert_eq!(head.unwrap(), read);
    let root = client.read(&format!("arbor://tree/{tree}/node/root")).await;
    assert_eq!(root.unwrap()["children"], json!([node]));
    let whole = client.read(&format!("arbor://tree/{tree}")).await.unwrap();
    assert_eq!(whole["tree"]["head"], json!(node));
    let all = client.read("arbor://trees").await.unwrap();
    assert_eq!(all["tree_ids"], json!([tree]));
}

#[tokio::test]
async fn unknown_uris_are_resource_not_found() {
    let client = Client::new();
    let tree = client.plant().await;
    for uri in [
        "arbor://tree/none".to_owned(),
        "arbor://tree/none/head".to_owned(),
        "arbor://tree/none/node/root".to_owned(),
        format!("arbor://tree/{tree}/node/none"),
        format!("arbor://tree/{tree}/tail"),
        format!("arbor://tree/{tree}/node/a/b"),
    ] {
        let fault = client.read(&uri).await.unwrap_err();
        assert_eq!(fault, Fault::ResourceNotFound(uri));
    }
}

/// S003-24, C44: active trees are listed with their names. The list follows changes, and is the
/// same in a process that is started later.
#[tokio::test]
async fn active_trees_are_listed() {
    let client = Client::new();
    let mut catalogue = client.service.catalogue();
    let listed = |client: &Client| -> Vec<(String, Value)> {
        let resources = client.definitions(Section::Resources).into_iter();
        resources
            .filter(|resource| resource["uri"] != "arbor://trees")
            .map(|resource| (string(&resource["uri"]), resource["title"].clone()))
            .collect()
    };
    assert_eq!(listed(&client), []);
    let tree = client.plant().await;
    assert!(catalogue.has_changed().unwrap());
    catalogue.mark_unchanged();
    let uri = format!("arbor://tree/{tree}");
    assert_eq!(listed(&client), [(uri.clone(), Value::Null)]);

    // A new node does not change the list of resources.
    client.grow(&tree, None, "text").await;
    assert!(!catalogue.has_changed().unwrap());
    let named = json!({ "tree_id": tree, "metadata": { "name": "Plans" } });
    client.done("tree_update_metadata", named).await;
    assert_eq!(listed(&client), [(uri.clone(), json!("Plans"))]);
    assert_eq!(listed(&client.another()), listed(&client));
    let contents = client.read(&uri).await.unwrap();
    assert_eq!(contents["nodes"].as_array().unwrap().len(), 2);

    let release = json!({ "tree_id": tree, "owner_id": "ann" });
    client.done("tree_release", release).await;
    assert_eq!(listed(&client), []);
    // An archived tree is not listed, but it can be read.
    client.pass(8 * DAY);
    assert!(client.read(&uri).await.is_ok());
}

#[tokio::test]
async fn only_the_newest_hundred_are_listed() {
    let client = Client::new();
    let first = client.plant().await;
    for _ in 0..100 {
        client.trees.create("ann", None).await.unwrap();
    }
    let last = client.plant().await;
    let listed = client.definitions(Section::Resources);
    assert_eq!(listed.len(), 101);
    let has = |tree: &str| {
        let uri = format!("arbor://tree/{tree}");
        listed.iter().any(|resource| resource["uri"] == *uri)
    };
    assert!(has(&last) && !has(&first));
    let all = client.done("tree_list", json!({})).await;
    assert_eq!(all["tree_ids"].as_array().unwrap().len(), 102);
}

/// S003-54: subscribers of a tree, a node or a head are notified when it changes, and only then.
#[tokio::test]
async fn subscribers_are_notified_of_changes_to_their_resource_only() {
    let client = Client::new();
    let tree = client.plant().await;
    let a = client.grow(&tree, None, "a").await;
    let b = client.grow(&tree, Some(&a), "b").await;
    let mut of_list = client.watch("arbor://trees").await;
    let mut of_tree = client.watch(&format!("arbor://tree/{tree}")).await;
    let mut of_head = client.watch(&format!("arbor://tree/{tree}/head")).await;
    let mut of_a = client.watch(&format!("arbor://tree/{tree}/node/{a}")).await;
    let mut news = || {
        (
            has_news(&mut of_list),
            has_news(&mut of_tree),
            has_news(&mut of_head),
            has_news(&mut of_a),
        )
    };
    assert_eq!(news(), (false, false, false, false));
    client.grow(&tree, Some(&b), "c").await;
    assert_eq!(news(), (false, true, true, false), "the newest is the head");
    client.grow(&tree, Some(&a), "d").await;
    assert_eq!(news(), (false, true, true, true));
    client.trees.set_head(&tree, &b).await.unwrap();
    assert_eq!(news(), (false, false, false, false), "no notification");

    // After `set_head`, a new node does not move the head.
    client.grow(&tree, Some(&a), "e").await;
    assert_eq!(news(), (false, true, false, true));
    client.grow(&tree, Some(&b), "f").await;
    assert_eq!(
        news(),
        (false, true, true, false),
        "the head has a child more"
    );
    let ann = json!({ "tree_id": tree, "owner_id": "ann" });
    client.done("tree_claim", ann.clone()).await;
    assert_eq!(news(), (true, true, false, false));
    client.done("tree_release", ann).await;
    assert_eq!(news(), (true, true, false, false));

    // A call that fails or only reads sends no notification.
    client
        .failed(
            "tree_claim",
            json!({ "tree_id": "none", "owner_id": "ann" }),
        )
        .await;
    client.done("tree_get", json!({ "tree_id": tree })).await;
    assert_eq!(news(), (false, false, false, false));
}

/// COMP-03: completion proposes the ids that begin with the value.
#[tokio::test]
async fn ids_are_completed() {
    let client = Client::new();
    let tree = client.plant().await;
    let other = client.plant().await;
    let node = client.grow(&tree, None, "a").await;
    let complete = async |template: &str, name: &str, value: &str, known: Value| {
        let params = json!({
            "ref": { "type": "ref/resource", "uri": template },
            "argument": { "name": name, "value": value },
            "context": { "arguments": known },
        });
        let result = client.request("completion/complete", params).await.unwrap();
        result["completion"]["values"].clone()
    };
    let trees = [
        "arbor://tree/{tree_id}",
        "arbor://tree/{tree_id}/head",
        "arbor://tree/{tree_id}/node/{node_id}",
    ];
    for template in trees {
        let all = complete(template, "tree_id", "", json!({})).await;
        assert_eq!(all, json!([other, tree]), "{template}");
        assert_eq!(
            complete(template, "tree_id", &tree, json!({})).await,
            json!([tree])
        );
        assert_eq!(
            complete(template, "tree_id", "%", json!({})).await,
            json!([])
        );
    }
    let [.., of_node] = trees;
    let known = json!({ "tree_id": tree });
    let nodes = complete(of_node, "node_id", "", known.clone()).await;
    assert_eq!(nodes, json!([node, client.root(&tree).await]));
    assert_eq!(
        complete(of_node, "node_id", &node, known).await,
        json!([node])
    );
    assert_eq!(complete(of_node, "node_id", "", json!({})).await, json!([]));
}
