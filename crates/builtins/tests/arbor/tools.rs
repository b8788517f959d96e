//! Successful calls of every tool.

use plexus_mcp_builtins::{Data, DataPaths};
use plexus_mcp_core::Section;
use serde_json::{Value, json};

use crate::support::{Client, string};

const METHODS: [&str; 19] = [
    "tree_create",
    "tree_get",
    "tree_get_skeleton",
    "tree_list",
    "tree_update_metadata",
    "tree_claim",
    "tree_release",
    "tree_list_scheduled",
    "tree_list_archived",
    "tree_render",
    "node_create_text",
    "node_create_external",
    "node_get",
    "node_get_children",
    "node_get_parent",
    "node_get_path",
    "context_list_leaves",
    "context_get_path",
    "context_get_handles",
];

/// S003-04, S003-16: every method of Substrate is a tool, with its own parameters.
#[tokio::test]
async fn every_method_is_a_tool() {
    let client = Client::new();
    let tools = client.definitions(Section::Tools);
    let names: Vec<_> = tools.iter().map(|tool| string(&tool["name"])).collect();
    assert_eq!(names, METHODS.map(|method| format!("arbor.{method}")));
    let parameters = |method: &str| -> Vec<String> {
        let name = format!("arbor.{method}");
        let tool = tools.iter().find(|tool| tool["name"] == *name).unwrap();
        let schema = &tool["inputSchema"]["properties"];
        schema.as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(parameters("tree_create"), ["metadata", "owner_id"]);
    assert_eq!(parameters("tree_claim"), ["tree_id", "owner_id", "count"]);
    let text = ["tree_id", "parent", "content", "metadata"];
    assert_eq!(parameters("node_create_text"), text);
    let external = ["tree_id", "parent", "handle", "metadata"];
    assert_eq!(parameters("node_create_external"), external);
    assert_eq!(parameters("context_get_path"), ["tree_id", "node_id"]);
    assert!(parameters("tree_list").is_empty());
}

#[tokio::test]
async fn a_tree_begins_with_an_empty_root() {
    let client = Client::new();
    let arguments = json!({ "metadata": { "name": "plans", "size": 1.50 } });
    let id = client.done("tree_create", arguments).await["tree_id"].clone();
    let got = client.done("tree_get", json!({ "tree_id": id })).await;
    let tree = &got["tree"];
    assert_eq!(
        (&tree["id"], &tree["state"], &tree["ref_count"]),
        (&id, &json!("active"), &json!(1))
    );
    assert_eq!(
        tree["owners"],
        json!([{ "owner_id": "system", "count": 1 }])
    );
    assert_eq!(tree["metadata"]["name"], "plans");
    assert_eq!(tree["created_at"], "2023-11-14T22:13:20.000Z");
    assert_eq!(tree["head"], tree["root"]);
    let [root] = &got["nodes"].as_array().unwrap()[..] else {
        panic!("one node: {got}");
    };
    assert_eq!(
        (&root["id"], &root["content"], &root["children"]),
        (&tree["root"], &json!(""), &json!([]))
    );
    assert_eq!(root.get("parent"), None);
}

/// A tree with two branches, walked in every direction.
#[tokio::test]
async fn nodes_know_their_places() {
    let client = Client::new();
    let tree = client.plant().await;
    let root = client.root(&tree).await;
    let a = client.grow(&tree, None, "a").await;
    let b = client.grow(&tree, Some(&a), "b").await;
    let c = client.grow(&tree, Some(&a), "c").await;
    let d = client.grow(&tree, Some(&c), "d").await;
    let of = |node: &str| json!({ "tree_id": tree, "node_id": node });

    let children = client.done("node_get_children", of(&a)).await;
    assert_eq!(children["children"], json!([b, c]));
    let parent = client.done("node_get_parent", of(&b)).await;
    assert_eq!(parent["parent"], json!(a));
    let parent = client.done("node_get_parent", of(&root)).await;
    assert_eq!(parent["parent"], Value::Null);
    let path = client.done("node_get_path", of(&d)).await;
    assert_eq!(path["path"], json!([root, a, c, d]));
    let nodes = client.done("context_get_path", of(&d)).await;
    let nodes = nodes["nodes"].as_array().unwrap();
    let contents: Vec<_> = nodes.iter().map(|node| string(&node["content"])).collect();
    assert_eq!(contents, ["", "a", "c", "d"]);
    let leaves = client
        .done("context_list_leaves", json!({ "tree_id": tree }))
        .await;
    assert_eq!(leaves["leaves"], json!([b, d]));
    let node = client.done("node_get", of(&c)).await;
    assert_eq!(
        (&node["node"]["content"], &node["node"]["children"]),
        (&json!("c"), &json!([d]))
    );

    let skeleton = client
        .done("tree_get_skeleton", json!({ "tree_id": tree }))
        .await;
    let places = skeleton["nodes"].as_array().unwrap();
    let ids: Vec<_> = places.iter().map(|node| string(&node["id"])).collect();
    assert_eq!(ids, [&root, &a, &b, &c, &d].map(String::as_str));
    assert!(places.iter().all(|node| node.get("content").is_none()));
    assert_eq!(places[1]["children"], json!([ids[2], ids[3]]));
}

#[tokio::test]
async fn external_nodes_point_elsewhere() {
    let client = Client::new();
    let tree = client.plant().await;
    let external = json!({
        "tree_id": tree,
        "handle": "cone@1.0.0::chat:42:user",
        "metadata": { "role": "user" },
    });
    let outer = client.done("node_create_external", external).await;
    let outer = string(&outer["node_id"]);
    let inner = client.grow(&tree, Some(&outer), "text").await;
    let of = |node: &str| json!({ "tree_id": tree, "node_id": node });
    let node = client.done("node_get", of(&outer)).await["node"].clone();
    assert_eq!(
        (&node["handle"], &node["role"]),
        (&json!("cone@1.0.0::chat:42:user"), &json!("user"))
    );
    assert_eq!(node.get("content"), None);
    let handles = client.done("context_get_handles", of(&inner)).await;
    assert_eq!(handles["handles"], json!(["cone@1.0.0::chat:42:user"]));
    let skeleton = client
        .done("tree_get_skeleton", json!({ "tree_id": tree }))
        .await;
    assert_eq!(skeleton["nodes"][1]["external"], true);
}

/// Branches are drawn side by side, and the head is marked.
#[tokio::test]
async fn trees_are_drawn() {
    let client = Client::new();
    let tree = client.plant().await;
    let said = |parent: &Value, role: &str, content: &str| {
        json!({
            "tree_id": tree,
            "parent": parent,
            "content": content,
            "metadata": { "role": role },
        })
    };
    let question = client
        .done("node_create_text", said(&Value::Null, "user", "hello"))
        .await["node_id"]
        .clone();
    for answer in ["one", "two\nlines"] {
        let answer = client
            .done("node_create_text", said(&question, "assistant", answer))
            .await["node_id"]
            .clone();
        client.grow(&tree, answer.as_str(), "ähnlich").await;
    }
    let drawing = client.done("tree_render", json!({ "tree_id": tree })).await;
    let expected = "\
(empty)
user: hello
|-- assistant: one
|   ähnlich
`-- assistant: two lines
    ähnlich <- head
";
    assert_eq!(drawing["render"], expected);
}

/// Handles to other activations are shown with their targets.
#[tokio::test]
async fn handles_to_other_activations_are_resolved() {
    let folder = tempfile::tempdir().unwrap();
    let data = Data::open(&DataPaths::in_directory(folder.path())).unwrap();
    let new = plexus_mcp_builtins::task::NewTask {
        description: "Mow the lawn".to_owned(),
        parent_id: None,
        priority: 3,
        context: None,
    };
    let task = data.tasks.create(new).await.unwrap().id;
    let memory = plexus_mcp_builtins::context::NewNode::new("No releases on Fridays");
    let memory = data.context.store(memory, "test").await.unwrap().id;
    let tree = data.trees.create("ann", None).await.unwrap();
    let handles = [
        format!("task@1::task:{task}"),
        format!("context@1::node:{memory}"),
        format!("arbor@1::node:{}:{}", tree.id, tree.root),
        "task@1::task:none".to_owned(),
        "unknown@1::x".to_owned(),
    ];
    let mut parent = None;
    for handle in &handles {
        let new = plexus_mcp_builtins::arbor::NewTreeNode {
            tree_id: tree.id.clone(),
            parent,
            payload: plexus_mcp_builtins::arbor::Payload::External(handle.parse().unwrap()),
            metadata: None,
        };
        parent = Some(data.trees.add(new).await.unwrap().id);
    }
    let [task, memory, node, missing, unknown] = &handles;
    let expected = format!(
        "(empty)\n[{task}] pending: Mow the lawn\n[{memory}] No releases on Fridays\n[{node}] \n\
         [{missing}]\n[{unknown}] <- head\n"
    );
    assert_eq!(data.trees.render(&tree.id).await.unwrap(), expected);
}
