//! Questions to the model.

use plexus_mcp_wire::{Kind, Object, Raw};

use super::content;
use super::edit::{Edit, edited, edited_items, items};
use super::{Unrepresentable, tool_definition};
use crate::messages::to_raw;
use crate::{Features, StructuredContent};

/// The params of `sampling/createMessage`.
///
/// In revisions where a message has one block, each further block becomes a message of its own,
/// with the same role.
pub fn sampling_params(params: &Raw, features: &Features) -> Result<Raw, Unrepresentable> {
    let mut outcome = Ok(());
    let lowered = edited(params, |params| outcome = lower(params, features));
    outcome.map(|()| lowered)
}

fn lower(params: &mut Edit, features: &Features) -> Result<(), Unrepresentable> {
    let has_tools = params
        .get("tools")
        .is_some_and(|tools| tools.kind() != Kind::Null);
    if has_tools && !features.sampling_tools {
        return Err(Unrepresentable::SamplingTools);
    }
    if !features.sampling_tools {
        params.remove("tools");
        params.remove("toolChoice");
    }
    params.map("tools", |tools| {
        edited_items(tools, |_, tool| tool_definition(tool, features))
    });

    let Some(messages) = params.get("messages").and_then(items) else {
        return Ok(());
    };
    for message in &messages {
        check_content(message, features)?;
    }
    if !features.sampling_tools {
        let split: Vec<Raw> = messages.iter().flat_map(split).collect();
        if split != messages {
            params.set("messages", to_raw(&split));
        }
    }
    params.map("messages", |messages| {
        edited_items(messages, |_, message| lowered_message(message, features))
    });
    Ok(())
}

fn lowered_message(message: &Raw, features: &Features) -> Raw {
    edited(message, |message| {
        if !features.sampling_tools {
            message.remove("_meta");
        }
        message.map("content", |content| match content.kind() {
            Kind::Array => edited_items(content, |_, block| lowered_block(block, features)),
            _ => lowered_block(content, features),
        });
    })
}

fn lowered_block(block: &Raw, features: &Features) -> Raw {
    let is_object_only = features.structured_content == StructuredContent::Object;
    let block = content::stripped(block, features);
    edited(&block, |block| {
        let value = block.get("structuredContent");
        if is_object_only && value.is_some_and(|value| value.kind() != Kind::Object) {
            block.remove("structuredContent");
        }
    })
}

fn check_content(message: &Raw, features: &Features) -> Result<(), Unrepresentable> {
    for block in blocks(message) {
        let Some(kind) = content::type_of(&block) else {
            continue;
        };
        let is_known = match kind.as_str() {
            "tool_use" | "tool_result" => features.sampling_tools,
            "audio" => features.audio,
            _ => true,
        };
        if !is_known {
            return Err(Unrepresentable::SamplingContent(kind));
        }
    }
    Ok(())
}

/// The blocks of a message's content, be it one or an array.
fn blocks(message: &Raw) -> Vec<Raw> {
    match content_of(message) {
        Some(content) => items(&content).unwrap_or_else(|| vec![content]),
        None => Vec::new(),
    }
}

/// One message for each block of an array.
fn split(message: &Raw) -> Vec<Raw> {
    match content_of(message).as_ref().and_then(items) {
        Some(blocks) => {
            let with = |block| edited(message, |message| message.set("content", block));
            blocks.into_iter().map(with).collect()
        }
        None => vec![message.clone()],
    }
}

fn content_of(message: &Raw) -> Option<Raw> {
    Object::parse(message).ok()?.remove("content")
}
