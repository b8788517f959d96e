//! Items of `docs/checklist.md` that are about the six tools.

use std::sync::Arc;

use plexus_mcp_core::{Context, Fault, Implementation, LocalService, Resource, ResourceContents};
use plexus_mcp_hub::{Hub, MemberKind, MemberSpec, manage};
use serde_json::{Value, json};

use crate::support::Client;

/// A service with one resource.
fn shelf(name: &'static str) -> MemberSpec {
    let service = LocalService::builder(name, "1.0.0").resource(
        Resource::new(format!("{name}://readme.md"), "readme").mime_type("text/markdown"),
        async |uri: String, _: Context| ResourceContents::text(uri, "# Hello World"),
    );
    let service = Arc::new(service.build().unwrap());
    MemberSpec::new(name, MemberKind::Local(service), [1; 32])
}

async fn hub_of(members: impl IntoIterator<Item = MemberSpec>) -> Hub {
    let hub = Hub::new(Implementation::new("hub", "1.0.0"));
    let mut all = vec![manage::member(&hub).unwrap()];
    all.extend(members);
    hub.set_members(all).await;
    hub
}

/// S004-K090, S004-D13: without a server's name, the resources of all of them are listed, each with
/// its server.
#[tokio::test]
async fn resources_of_all_servers_are_listed() {
    let client = Client::of(&hub_of([shelf("one"), shelf("other")]).await);
    let listed = client.text("ListMcpResources", json!({})).await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let told: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|resource| (&resource["server"], &resource["uri"], &resource["name"]))
        .collect();
    let expected = [
        (&json!("one"), &json!("one://readme.md"), &json!("readme")),
        (
            &json!("other"),
            &json!("other://readme.md"),
            &json!("readme"),
        ),
    ];
    assert_eq!(told, expected);
}

/// S004-K091, S004-K094: without servers the list is empty, and reading fails.
#[tokio::test]
async fn without_servers_there_is_nothing() {
    let client = Client::of(&hub_of([]).await);
    assert_eq!(client.text("ListMcpResources", json!({})).await, "[]");
    let arguments = json!({"server": "test", "uri": "test://resource"});
    let said = client.failure("ReadMcpResource", arguments).await;
    assert!(said.contains("there is no server \"test\""), "{said}");
}

/// S004-K068: listing the resources of an unknown server is an error that names it.
#[tokio::test]
async fn resources_of_an_unknown_server_are_not_listed() {
    let client = Client::of(&hub_of([shelf("one")]).await);
    let said = client
        .failure("ListMcpResources", json!({"server": "missing"}))
        .await;
    assert!(said.contains("there is no server \"missing\""), "{said}");
    assert!(said.contains("\"one\""), "{said}");
}

/// S004-K092: reading returns the contents that the server gives.
#[tokio::test]
async fn a_resource_is_read() {
    let client = Client::of(&hub_of([shelf("one")]).await);
    let arguments = json!({"server": "one", "uri": "one://readme.md"});
    let read = client.structured("ReadMcpResource", arguments).await;
    assert_eq!(read["contents"][0]["text"], "# Hello World");
}

/// S004-K093: both arguments are required, and the missing one is named.
#[tokio::test]
async fn a_missing_argument_is_named() {
    let client = Client::of(&hub_of([shelf("one")]).await);
    for (arguments, missing) in [
        (json!({"uri": "one://readme.md"}), "server"),
        (json!({"server": "one"}), "uri"),
    ] {
        let said = match client.call("ReadMcpResource", arguments).await {
            Err(Fault::InvalidArguments(why)) => why,
            Ok(result) if result["isError"] == true => result.to_string(),
            other => panic!("{other:?}"),
        };
        assert!(said.contains(missing), "{said}");
    }
}
