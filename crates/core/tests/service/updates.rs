//! Resources that are watched.

use futures_util::FutureExt;
use plexus_mcp_core::{Fault, Service, Updates};

use crate::catalogue::{with_resource, with_template};
use crate::support::{Caller, builder};

fn caller() -> Caller {
    Caller::of(with_template(
        with_resource(builder(), "test://a"),
        "test://{id}/b",
    ))
}

async fn watch(caller: &Caller, uri: &str) -> Result<Updates, Fault> {
    caller.service.subscribe(caller.peer(), uri).await
}

/// Whether an update is there, without waiting for one.
fn updated(updates: &mut Updates) -> bool {
    updates.next().now_or_never().is_some()
}

/// RES-03, RES-04: what cannot be read cannot be watched.
#[tokio::test]
async fn only_existing_resources_can_be_subscribed_to() {
    let caller = caller();
    for uri in ["test://b", "", "test://a/c"] {
        let fault = watch(&caller, uri).await.unwrap_err();
        assert_eq!(fault, Fault::ResourceNotFound(uri.to_owned()));
    }
    for uri in ["test://a", "test://7/b"] {
        assert!(watch(&caller, uri).await.is_ok(), "{uri}");
    }
}

#[tokio::test]
async fn updates_reach_all_subscribers_of_the_resource_only() {
    let caller = caller();
    caller.service.resource_updated("test://a");
    let mut first = watch(&caller, "test://a").await.unwrap();
    let mut second = watch(&caller, "test://a").await.unwrap();
    let mut other = watch(&caller, "test://7/b").await.unwrap();
    assert!(
        !updated(&mut first),
        "an update before the subscription is not reported"
    );

    caller.service.resource_updated("test://a");
    assert!(updated(&mut first) && updated(&mut second));
    assert!(!updated(&mut first) && !updated(&mut other));

    caller.service.resource_updated("test://7/b");
    assert!(updated(&mut other) && !updated(&mut second));
}

#[tokio::test]
async fn unread_updates_are_coalesced() {
    let caller = caller();
    let mut updates = watch(&caller, "test://a").await.unwrap();
    for _ in 0..1000 {
        caller.service.resource_updated("test://a");
    }
    assert!(updated(&mut updates));
    assert!(!updated(&mut updates));
}

#[tokio::test]
async fn updates_end_with_their_service() {
    let caller = caller();
    let mut updates = watch(&caller, "test://a").await.unwrap();
    drop(caller);
    assert_eq!(updates.next().await, None);
}
