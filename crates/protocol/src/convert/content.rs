//! Content blocks of tool results and prompts.

use std::borrow::Cow;

use plexus_mcp_wire::{Object, Raw};

use super::edit::{edited, items};
use super::{resource_definition, strip_annotations};
use crate::Features;
use crate::messages::{ContentBlock, to_raw};

/// A block as the revision with `features` has it. `index` makes generated names unique.
pub(super) fn lowered(block: &Raw, index: usize, features: &Features) -> Raw {
    let replaced = match type_of(block).as_deref() {
        Some("resource_link") if !features.resource_links => as_text(block),
        Some("resource_link") => Some(resource_definition(block, features)),
        Some("audio") if !features.audio => {
            as_resource(block, index).map(|block| stripped(&block, features))
        }
        Some("text" | "image" | "audio" | "resource") => Some(stripped(block, features)),
        _ => None,
    };
    replaced.unwrap_or_else(|| block.clone())
}

/// Whether the revision with `features` has all that blocks have.
pub(super) fn is_complete(features: &Features) -> bool {
    let Features {
        audio,
        resource_links,
        titles,
        icons,
        last_modified,
        ..
    } = features;
    *audio && *resource_links && *titles && *icons && *last_modified
}

/// The type of the block.
pub(super) fn type_of(block: &Raw) -> Option<String> {
    string(&Object::parse(block).ok()?, "type")
}

/// A block without what the revision's blocks do not have.
pub(super) fn stripped(block: &Raw, features: &Features) -> Raw {
    edited(block, |block| {
        strip_annotations(block, features);
        if !features.titles {
            block.remove("_meta");
            block.map("resource", without_meta);
        }
    })
}

/// Resource contents without `_meta`.
pub(super) fn without_meta(contents: &Raw) -> Raw {
    edited(contents, |contents| {
        contents.remove("_meta");
    })
}

/// Content blocks with at least one text among them: `value`, if there was none (TOOL-08).
pub(super) fn with_text(content: Option<&Raw>, value: &Raw) -> Raw {
    let mut blocks = content.and_then(items).unwrap_or_default();
    if !blocks
        .iter()
        .any(|block| type_of(block).as_deref() == Some("text"))
    {
        blocks.push(ContentBlock::text(value.as_str()).to_raw());
    }
    to_raw(&blocks)
}

/// A link as text.
fn as_text(link: &Raw) -> Option<Raw> {
    let link = Object::parse(link).ok()?;
    let (name, uri) = (string(&link, "name")?, string(&link, "uri")?);
    Some(ContentBlock::text(format!("{name} <{uri}>")).to_raw())
}

/// A recording as an embedded resource, which the first revision has instead.
fn as_resource(audio: &Raw, index: usize) -> Option<Raw> {
    let mut block = Object::parse(audio).ok()?;
    let mut resource = Object::new();
    resource.set("uri", to_raw(&format!("urn:plexus:audio:{index}")));
    resource.set("mimeType", block.remove("mimeType")?);
    resource.set("blob", block.remove("data")?);
    block.set("type", to_raw("resource"));
    block.set("resource", resource.to_raw());
    Some(block.to_raw())
}

fn string(object: &Object, key: &str) -> Option<String> {
    object.text(key).map(Cow::into_owned)
}
