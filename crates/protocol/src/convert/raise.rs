//! Questions of older servers in their newest form, and the answers in theirs.

use plexus_mcp_wire::{Kind, Object, Raw};

use super::Unrepresentable;
use super::content;
use super::edit::{edited, edited_items, items};
use crate::Features;
use crate::messages::to_raw;

/// The params of an older server's `elicitation/create`, without what belongs to the hop they came by
/// (TRANSLATION §5.4.3).
pub fn raised_elicitation(params: &Raw) -> Raw {
    edited(params, |params| {
        params.remove("_meta");
        params.remove("task");
        params.remove("elicitationId");
    })
}

/// The same for `sampling/createMessage`.
pub fn raised_sampling(params: &Raw) -> Raw {
    edited(params, |params| {
        params.remove("_meta");
        params.remove("task");
        params.map("tools", |tools| {
            edited_items(tools, |_, tool| {
                edited(tool, |tool| {
                    tool.remove("execution");
                })
            })
        });
    })
}

/// A sampling result in the form of the revision with `features`. If that allows one block only,
/// texts are joined (TRANSLATION §5.4.4).
///
/// # Errors
/// Several blocks that are not all text cannot be one.
pub fn sampling_result(result: &Raw, features: &Features) -> Result<Raw, Unrepresentable> {
    if features.sampling_tools {
        return Ok(result.clone());
    }
    let Some(blocks) = Object::parse(result)
        .ok()
        .and_then(|result| items(result.get("content")?))
    else {
        return Ok(result.clone());
    };
    let block = match blocks.as_slice() {
        [only] => only.clone(),
        several => joined(several)?,
    };
    Ok(edited(result, |result| result.set("content", block)))
}

fn joined(blocks: &[Raw]) -> Result<Raw, Unrepresentable> {
    let mut text = String::new();
    for block in blocks {
        let object = Object::parse(block).ok();
        let part = object
            .as_ref()
            .and_then(|block| block.get("text"))
            .filter(|text| text.kind() == Kind::String)
            .and_then(|text| text.decode::<String>().ok());
        let kind = content::type_of(block).unwrap_or_default();
        match part {
            Some(part) if kind == "text" => text.push_str(&part),
            _ => return Err(Unrepresentable::SamplingContent(kind)),
        }
    }
    let mut block = Object::new();
    block.set("type", to_raw(&"text"));
    block.set("text", to_raw(&text));
    Ok(block.to_raw())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Revision;

    fn raw(value: &Value) -> Raw {
        Raw::encode(value).unwrap()
    }

    fn value(raw: &Raw) -> Value {
        raw.decode().unwrap()
    }

    /// TRANSLATION §5.4.3
    #[test]
    fn questions_lose_what_belongs_to_their_hop_and_nothing_else() {
        let asked = raw(
            &json!({"message": "?", "mode": "url", "url": "https://a", "x": 1,
            "elicitationId": "e1", "task": {"ttl": 1}, "_meta": {"progressToken": 2}}),
        );
        let raised = json!({"message": "?", "mode": "url", "url": "https://a", "x": 1});
        assert_eq!(value(&raised_elicitation(&asked)), raised);

        let asked = raw(
            &json!({"messages": [], "maxTokens": 9, "task": {}, "_meta": {},
            "tools": [{"name": "a", "inputSchema": {}, "execution": {"taskSupport": "optional"}}]}),
        );
        let raised = json!({"messages": [], "maxTokens": 9,
            "tools": [{"name": "a", "inputSchema": {}}]});
        assert_eq!(value(&raised_sampling(&asked)), raised);
    }

    /// TRANSLATION §5.4.4
    #[test]
    fn answers_of_several_blocks_become_one_where_there_can_be_one_only() {
        let old = Revision::V2025_06_18.features();
        let of =
            |content: Value| raw(&json!({"role": "assistant", "model": "m", "content": content}));
        let text = |text: &str| json!({"type": "text", "text": text});
        let content =
            |result: &Raw| value(&sampling_result(result, old).unwrap())["content"].clone();

        assert_eq!(content(&of(text("a"))), text("a"));
        assert_eq!(content(&of(json!([text("a")]))), text("a"));
        assert_eq!(content(&of(json!([text("a"), text("b")]))), text("ab"));
        let mixed =
            of(json!([text("a"), {"type": "tool_use", "id": "1", "name": "n", "input": {}}]));
        sampling_result(&mixed, old).unwrap_err();
        let newest = Revision::V2025_11_25.features();
        assert_eq!(sampling_result(&mixed, newest).unwrap(), mixed);
    }
}
