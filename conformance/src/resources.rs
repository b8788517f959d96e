//! Resources and templates.

use plexus_mcp_core::{Builder, Context, Resource, ResourceContents, ResourceTemplate};
use serde::Deserialize;
use serde_json::json;

use crate::media;

/// The resource that clients subscribe to in tests.
pub(crate) const WATCHED: &str = "test://watched-resource";

const TEMPLATE: &str = "test://template/{id}/data";

pub(crate) fn add(builder: Builder) -> Builder {
    builder
        .resource(
            Resource::new("test://static-text", "static-text")
                .description("A text")
                .mime_type("text/plain"),
            async |uri: String, _: Context| {
                let text = "This is the content of the static text resource.";
                ResourceContents::text(uri, text).mime_type("text/plain")
            },
        )
        .resource(
            Resource::new("test://static-binary", "static-binary")
                .description("A picture")
                .mime_type(media::PICTURE_TYPE),
            async |uri: String, _: Context| {
                ResourceContents::blob(uri, media::PICTURE).mime_type(media::PICTURE_TYPE)
            },
        )
        .resource(
            Resource::new(WATCHED, "watched-resource")
                .description("Changes when test_touch_watched_resource is called")
                .mime_type("text/plain"),
            async |uri: String, _: Context| {
                ResourceContents::text(uri, "Watched resource content.").mime_type("text/plain")
            },
        )
        .template(
            ResourceTemplate::new(TEMPLATE, "template")
                .description("Data by id")
                .mime_type("application/json"),
            async |uri: String, Item { id }: Item, _: Context| {
                let data = json!({
                    "id": id,
                    "templateTest": true,
                    "data": format!("Data for ID: {id}"),
                });
                ResourceContents::text(uri, data.to_string()).mime_type("application/json")
            },
        )
        .complete_template(TEMPLATE, "id", async |typed: String, _| {
            let ids = ["123", "456", "789"].into_iter();
            ids.filter(move |id| id.starts_with(&typed))
        })
}

#[derive(Debug, Deserialize)]
struct Item {
    id: String,
}
