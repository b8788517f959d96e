//! URIs of the pages of MCP Apps.
//!
//! Clients recognise a page by the scheme `ui://`, so the URI of a server's page keeps it and names
//! the server behind it: `ui://page` of the server `git` is shown as `ui://git/page`. A server need
//! not list its pages, and two servers may use the same URI, so each URI names its owner.

use plexus_mcp_core::Entry;
use plexus_mcp_wire::{Object, Raw};

const SCHEME: &str = "ui://";
/// The member of `_meta` that names the page of a tool, in the older form of the extension.
const FLAT_KEY: &str = "ui/resourceUri";
const KEY: &str = "ui";
const RESOURCE_URI: &str = "resourceUri";

/// The extension of MCP Apps. It has no methods, so any number of servers can have it.
pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/ui";

/// The shown form of a page's URI, for the server with this encoded name; `None` for other URIs.
pub(crate) fn shown_uri(server: &str, uri: &str) -> Option<String> {
    let page = uri.strip_prefix(SCHEME)?;
    Some(format!("{SCHEME}{server}/{page}"))
}

/// Whether the URI is that of a page.
pub(crate) fn is_page(uri: &str) -> bool {
    uri.starts_with(SCHEME)
}

/// The encoded name of the server in a shown URI, and the server's own URI.
pub(crate) fn split(uri: &str) -> Option<(&str, String)> {
    let (server, page) = uri.strip_prefix(SCHEME)?.split_once('/')?;
    Some((server, format!("{SCHEME}{page}")))
}

/// The tool with the shown URI of its page; `None` if it has no page.
pub(crate) fn shown_tool(server: &str, tool: &Entry) -> Option<Entry> {
    if !tool.definition.contains_text(SCHEME) {
        return None;
    }
    let mut definition = Object::parse(&tool.definition).ok()?;
    show_page(server, &mut definition)?;
    let mut shown = tool.clone();
    shown.definition = definition.to_raw();
    Some(shown)
}

/// The result of a tool call or of reading a resource, with the shown URIs of pages.
pub(crate) fn shown_result(server: &str, result: Raw) -> Raw {
    if !result.contains_text(SCHEME) {
        return result;
    }
    let Ok(mut shown) = Object::parse(&result) else {
        return result;
    };
    let mut is_changed = show_page(server, &mut shown).is_some();
    for list in ["content", "contents"] {
        if let Some(blocks) = shown
            .get(list)
            .and_then(|blocks| shown_blocks(server, blocks))
        {
            shown.set(list, blocks);
            is_changed = true;
        }
    }
    if is_changed { shown.to_raw() } else { result }
}

/// Content blocks with the shown URIs of links to pages and of embedded pages.
fn shown_blocks(server: &str, blocks: &Raw) -> Option<Raw> {
    let shown = blocks.elements()?.map(|block| {
        let Ok(mut shown) = Object::parse(&block) else {
            return block;
        };
        let is_link = show_uri(server, &mut shown, "uri").is_some();
        let embedded = shown.get("resource").and_then(|embedded| {
            let mut embedded = Object::parse(embedded).ok()?;
            show_uri(server, &mut embedded, "uri")?;
            Some(embedded.to_raw())
        });
        match embedded {
            Some(embedded) => {
                shown.set("resource", embedded);
                shown.to_raw()
            }
            None if is_link => shown.to_raw(),
            None => block,
        }
    });
    let shown: Vec<Raw> = shown.collect();
    Some(Raw::array(&shown))
}

/// Replaces the URI of the page that `_meta` names. `None` if it names none.
fn show_page(server: &str, object: &mut Object) -> Option<()> {
    let mut meta = Object::parse(object.get("_meta")?).ok()?;
    let flat = show_uri(server, &mut meta, FLAT_KEY);
    let nested = meta.get(KEY).and_then(|ui| {
        let mut ui = Object::parse(ui).ok()?;
        show_uri(server, &mut ui, RESOURCE_URI)?;
        Some(ui.to_raw())
    });
    if let Some(nested) = nested {
        meta.set(KEY, nested);
    } else {
        flat?;
    }
    object.set("_meta", meta.to_raw());
    Some(())
}

fn show_uri(server: &str, object: &mut Object, member: &'static str) -> Option<()> {
    let shown = shown_uri(server, &object.text(member)?)?;
    object.set(member, Raw::string(&shown));
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Raw {
        Raw::parse(text.to_owned().into(), &plexus_mcp_wire::Limits::default()).unwrap()
    }

    #[test]
    fn a_shown_uri_leads_back_to_its_owner() {
        for own in ["ui://page", "ui://a/b?c", "ui://"] {
            let shown = shown_uri("git%20", own).unwrap();
            assert_eq!(split(&shown), Some(("git%20", own.to_owned())), "{own}");
        }
        assert_eq!(shown_uri("git", "file:///page"), None);
        assert_eq!(split("ui://page"), None);
    }

    #[test]
    fn results_name_the_owner_of_each_page() {
        let cases = [
            (
                r#"{"content":[{"type":"resource_link","uri":"ui://p","name":"p"},{"type":"text","text":"ui://p"}]}"#,
                r#"{"content":[{"type":"resource_link","uri":"ui://s/p","name":"p"},{"type":"text","text":"ui://p"}]}"#,
            ),
            (
                r#"{"content":[{"type":"resource","resource":{"uri":"ui://p","text":"x"}}]}"#,
                r#"{"content":[{"type":"resource","resource":{"uri":"ui://s/p","text":"x"}}]}"#,
            ),
            (
                r#"{"contents":[{"uri":"ui://p","_meta":{"ui":{"csp":{}}}}]}"#,
                r#"{"contents":[{"uri":"ui://s/p","_meta":{"ui":{"csp":{}}}}]}"#,
            ),
            (
                r#"{"content":[],"_meta":{"ui":{"resourceUri":"ui://p"},"ui/resourceUri":"ui://p"}}"#,
                r#"{"content":[],"_meta":{"ui":{"resourceUri":"ui://s/p"},"ui/resourceUri":"ui://s/p"}}"#,
            ),
            (
                r#"{"content":[{"type":"text","text":"ui://p"}]}"#,
                r#"{"content":[{"type":"text","text":"ui://p"}]}"#,
            ),
        ];
        for (result, expected) in cases {
            assert_eq!(shown_result("s", raw(result)).as_str(), expected);
        }
    }
}
