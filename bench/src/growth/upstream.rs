//! A small MCP server over stdio with many tools, which the gateways start.

use std::io::{BufRead as _, Write as _};

use serde_json::{Value, json};

/// The tools on a page of the list.
const PAGE_TOOLS: usize = 1_000;

/// The words of the descriptions.
const VERBS: [&str; 8] = [
    "Creates",
    "Deletes",
    "Lists",
    "Updates",
    "Exports",
    "Archives",
    "Validates",
    "Schedules",
];
const THINGS: [&str; 12] = [
    "invoice", "customer", "shipment", "report", "calendar", "document", "ticket", "account",
    "payment", "branch", "metric", "recipe",
];

/// The name of a tool.
pub(super) fn tool_name(number: u32) -> String {
    format!("tool_{number:05}")
}

/// Answers requests on standard input until it ends.
pub(crate) fn serve(tools: u32) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        let Some(id) = request.get("id") else {
            continue;
        };
        let text = |pointer| request.pointer(pointer).and_then(Value::as_str);
        let answer = match text("/method").unwrap_or_default() {
            "initialize" => Some(json!({
                "protocolVersion": text("/params/protocolVersion"),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "growth", "version": "1"},
            })),
            "ping" => Some(json!({})),
            "tools/list" => Some(page(tools, text("/params/cursor"))),
            "tools/call" => Some(json!({
                "content": [{"type": "text", "text": text("/params/arguments/message")}],
            })),
            _ => None,
        };
        let answer = match answer {
            Some(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            None => json!({
                "jsonrpc": "2.0",
                "id": id,
                "error": {"code": -32601, "message": "no such method"},
            }),
        };
        writeln!(output, "{answer}")?;
        output.flush()?;
    }
    Ok(())
}

fn page(tools: u32, cursor: Option<&str>) -> Value {
    let first = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    let page: Vec<Value> = (first..tools).take(PAGE_TOOLS).map(tool).collect();
    let next = first.saturating_add(u32::try_from(page.len()).unwrap_or(u32::MAX));
    if next < tools {
        json!({"tools": page, "nextCursor": next.to_string()})
    } else {
        json!({"tools": page})
    }
}

fn tool(number: u32) -> Value {
    let pick = |words: &[&'static str], divisor: u32| {
        let at = usize::try_from(number / divisor).unwrap_or(0) % words.len().max(1);
        words.get(at).copied().unwrap_or_default()
    };
    let description = format!(
        "{} the {} of a {} in region {}, as number {number} of its kind.",
        pick(&VERBS, 1),
        pick(&THINGS, 8),
        pick(&THINGS, 96),
        number / 1_152,
    );
    json!({
        "name": tool_name(number),
        "description": description,
        // No two schemas are the same, so that none is compiled for many tools at once.
        "inputSchema": {
            "type": "object",
            "properties": {
                "message": {"type": "string", "description": "The text to repeat."},
                format!("option_{number}"): {"type": "integer", "minimum": 0},
            },
            "required": ["message"],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_every_tool_once() {
        let mut cursor = None;
        let mut names = Vec::new();
        loop {
            let page = page(2_500, cursor.as_deref());
            for tool in page["tools"].as_array().unwrap() {
                names.push(tool["name"].as_str().unwrap().to_owned());
            }
            cursor = page["nextCursor"].as_str().map(str::to_owned);
            if cursor.is_none() {
                break;
            }
        }
        let all: Vec<String> = (0..2_500).map(tool_name).collect();
        assert_eq!(names, all);
    }
}
