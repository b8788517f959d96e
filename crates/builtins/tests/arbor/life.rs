//! References to trees, and the states of a tree.

use serde_json::json;

use crate::support::{Client, DAY};

/// A tree is active until its last reference is released, then scheduled, and archived after 7
/// days. Each state has its own list.
#[tokio::test]
async fn a_tree_goes_from_active_to_archived() {
    let client = Client::new();
    let tree = client.plant().await;
    let other = client.plant().await;
    let lists = async || {
        let list = async |method| client.done(method, json!({})).await["tree_ids"].clone();
        (
            list("tree_list").await,
            list("tree_list_scheduled").await,
            list("tree_list_archived").await,
        )
    };
    assert_eq!(lists().await, (json!([other, tree]), json!([]), json!([])));

    let of_ann = |count| json!({ "tree_id": tree, "owner_id": "ann", "count": count });
    let claimed = client.done("tree_claim", of_ann(2)).await;
    assert_eq!(
        claimed,
        json!({ "tree_id": tree, "owner_id": "ann", "new_count": 3 })
    );
    let released = client.done("tree_release", of_ann(2)).await;
    assert_eq!(released["new_count"], 1);
    assert_eq!(lists().await, (json!([other, tree]), json!([]), json!([])));
    client.done("tree_release", of_ann(1)).await;
    assert_eq!(lists().await, (json!([other]), json!([tree]), json!([])));
    let got = client.done("tree_get", json!({ "tree_id": tree })).await;
    assert_eq!(got["tree"]["scheduled_at"], "2023-11-14T22:13:20.000Z");
    assert_eq!(got["tree"]["archived_at"], "2023-11-21T22:13:20.000Z");

    // It can be claimed until the end of the grace period. The next release starts a new one.
    client.pass(7 * DAY - 1);
    let of_ben = json!({ "tree_id": tree, "owner_id": "ben" });
    assert_eq!(
        client.done("tree_claim", of_ben.clone()).await["new_count"],
        1
    );
    assert_eq!(lists().await, (json!([other, tree]), json!([]), json!([])));
    client.done("tree_release", of_ben).await;
    client.pass(7 * DAY - 1);
    assert_eq!(lists().await, (json!([other]), json!([tree]), json!([])));
    client.pass(1);
    assert_eq!(lists().await, (json!([other]), json!([]), json!([tree])));
}

/// References are counted separately for each owner.
#[tokio::test]
async fn owners_are_counted_apart() {
    let client = Client::new();
    let tree = client.plant().await;
    let of = |owner: &str, count| json!({ "tree_id": tree, "owner_id": owner, "count": count });
    client.done("tree_claim", of("ben", 2)).await;
    client.done("tree_release", of("ann", 1)).await;
    let got = client.done("tree_get", json!({ "tree_id": tree })).await;
    assert_eq!(
        (&got["tree"]["state"], &got["tree"]["owners"]),
        (
            &json!("active"),
            &json!([{ "owner_id": "ben", "count": 2 }])
        )
    );
    assert_eq!(got["tree"]["ref_count"], 2);
    let said = client.failed("tree_release", of("ann", 1)).await;
    assert!(said.contains("\"ann\" holds 0 references"), "{said}");
    let said = client.failed("tree_release", of("ben", 3)).await;
    assert!(said.contains("holds 2 references"), "{said}");
    assert!(said.contains("cannot release 3"), "{said}");
    let got = client.done("tree_get", json!({ "tree_id": tree })).await;
    assert_eq!(got["tree"]["ref_count"], 2);
}

/// An archived tree is read-only. A released tree, which will be archived, must be claimed before
/// it can change.
#[tokio::test]
async fn released_and_archived_trees_cannot_be_changed() {
    let client = Client::new();
    let tree = client.plant().await;
    let node = client.grow(&tree, None, "kept").await;
    let of_ann = json!({ "tree_id": tree, "owner_id": "ann" });
    client.done("tree_release", of_ann.clone()).await;
    let new = json!({ "tree_id": tree, "content": "too late" });
    let said = client.failed("node_create_text", new.clone()).await;
    assert!(said.contains("claim it first"), "{said}");

    client.pass(7 * DAY);
    let metadata = json!({ "tree_id": tree, "metadata": {} });
    for (method, arguments) in [
        ("node_create_text", new),
        ("tree_claim", of_ann.clone()),
        ("tree_release", of_ann),
        ("tree_update_metadata", metadata),
    ] {
        let said = client.failed(method, arguments).await;
        assert!(
            said.contains("was archived at 2023-11-21T22:13:20.000Z"),
            "{method}: {said}"
        );
    }
    let of = json!({ "tree_id": tree, "node_id": node });
    assert_eq!(client.done("node_get", of).await["node"]["content"], "kept");
    let tree = client.done("tree_get", json!({ "tree_id": tree })).await;
    assert_eq!(tree["nodes"].as_array().unwrap().len(), 2);
}
