//! Resources and templates.

use plexus_mcp_core::{
    Builder, Context, Fault, Resource, ResourceContents, ResourceTemplate, Variables,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Caller, builder};

#[derive(Deserialize)]
struct Page {
    number: u32,
}

fn library() -> Builder {
    builder()
        .resource(
            Resource::new("book://pages/7", "seven"),
            async |uri: String, _: Context| ResourceContents::text(uri, "the resource itself"),
        )
        .template(
            ResourceTemplate::new("book://pages/{number}", "page"),
            async |uri: String, Page { number }: Page, _: Context| {
                ResourceContents::text(uri, format!("page {number}"))
            },
        )
        .template(
            ResourceTemplate::new("book://{+path}", "anything"),
            async |uri: String, variables: Variables, _: Context| {
                let text = |text: String| ResourceContents::text(uri.clone(), text);
                match variables["path"].as_str() {
                    "missing" => Err(Fault::ResourceNotFound(uri)),
                    path => Ok(vec![text(path.to_owned()), text(format!("{variables:?}"))]),
                }
            },
        )
}

async fn read(uri: &str) -> Result<Value, Fault> {
    let caller = Caller::of(library());
    let result = caller.call("resources/read", json!({ "uri": uri })).await?;
    Ok(result["contents"].clone())
}

fn contents(uri: &str, texts: &[&str]) -> Value {
    texts
        .iter()
        .map(|text| json!({ "uri": uri, "text": text }))
        .collect()
}

#[tokio::test]
async fn a_resource_comes_before_templates_that_fit_it() {
    let uri = "book://pages/7";
    assert_eq!(read(uri).await, Ok(contents(uri, &["the resource itself"])));
}

/// The handler is given the URI as it was asked for, and the variables decoded.
#[tokio::test]
async fn templates_get_the_uri_and_its_variables() {
    let uri = "book://pages/8";
    assert_eq!(read(uri).await, Ok(contents(uri, &["page 8"])));
    let uri = "book://a%20b/c";
    let texts = ["a b/c", r#"{"path": "a b/c"}"#];
    assert_eq!(read(uri).await, Ok(contents(uri, &texts)));
}

/// RES-03, RES-04: no resource, no template that fits, variables that do not fit, or a handler that says so.
#[tokio::test]
async fn unknown_uris_are_resource_not_found() {
    for uri in ["", "film://pages/7", "book://pages/eight", "book://missing"] {
        let outcome = read(uri).await;
        assert_eq!(outcome, Err(Fault::ResourceNotFound(uri.to_owned())));
    }
}

#[tokio::test]
async fn a_uri_must_be_named() {
    let outcome = Caller::of(library())
        .call("resources/read", json!({}))
        .await;
    assert!(
        matches!(outcome, Err(Fault::InvalidParams(_))),
        "{outcome:?}"
    );
}
