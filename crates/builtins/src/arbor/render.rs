//! Draws a tree as text.

use std::collections::HashMap;

use super::error::ArborError;
use super::model::TreeNode;
use super::tables;
use super::trees::Trees;

/// The maximum number of characters shown of a node.
const EXCERPT_CHARS: usize = 60;

/// The number of characters that are read of a text to make an excerpt of it.
const EXCERPT_SOURCE_CHARS: usize = 4 * EXCERPT_CHARS;

/// The maximum number of nodes in a drawing.
const MAX_DRAWN_NODES: u32 = 10_000;

/// The maximum size of a drawing, in bytes. A larger drawing is left unfinished.
const MAX_DRAWING_BYTES: usize = 1024 * 1024;

impl Trees {
    /// Draws a tree in ASCII, one line for each node. Handles are shown with the text that they
    /// point to. Only branches are indented, so that a long conversation stays at the margin.
    ///
    /// # Errors
    /// There is no such tree.
    pub async fn render(&self, tree_id: impl Into<String>) -> Result<String, ArborError> {
        let id = tree_id.into();
        let now = self.now();
        let (tree, nodes, total) = self
            .read(move |db| {
                let tree = tables::tree(db, &id, now)?;
                let nodes = tables::beginnings(db, &id, EXCERPT_SOURCE_CHARS, MAX_DRAWN_NODES)?;
                Ok((tree, nodes, tables::size(db, &id)?))
            })
            .await?;
        let mut labels = HashMap::new();
        for node in &nodes {
            labels.insert(node.id.as_str(), self.label(node).await);
        }
        let (mut drawing, drawn) = draw(&tree.root, &tree.head, &nodes, &labels);
        if total > drawn {
            let more = total - drawn;
            drawing.extend(["(", &more.to_string(), " more nodes)\n"]);
        }
        Ok(drawing)
    }

    async fn label(&self, node: &TreeNode) -> String {
        let text = match (&node.content, &node.handle) {
            (Some(content), _) => excerpt(content),
            (None, Some(handle)) => match self.resolve(handle).await {
                Some(text) => format!("[{handle}] {}", excerpt(&text)),
                None => format!("[{handle}]"),
            },
            (None, None) => String::new(),
        };
        match &node.role {
            Some(role) => format!("{}: {text}", excerpt(role)),
            None if text.is_empty() => "(empty)".to_owned(),
            None => text,
        }
    }
}

/// The beginning of a text as one line without control characters, cut between characters.
fn excerpt(text: &str) -> String {
    let start: String = text.chars().take(EXCERPT_SOURCE_CHARS).collect();
    let words: Vec<&str> = start
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    let line = words.join(" ");
    let mut shown: String = line.chars().take(EXCERPT_CHARS).collect();
    if shown.len() < line.len() || start.len() < text.len() {
        shown.push_str("...");
    }
    shown
}

/// Returns the drawing, and the number of nodes on it. It uses a stack of its own instead of
/// recursion, since a tree may be deeper than the call stack allows.
fn draw(
    root: &str,
    head: &str,
    nodes: &[TreeNode],
    labels: &HashMap<&str, String>,
) -> (String, u64) {
    let mut children: HashMap<&str, Vec<&str>> = HashMap::new();
    for node in nodes {
        if let Some(parent) = &node.parent {
            children.entry(parent).or_default().push(&node.id);
        }
    }
    let mut drawing = String::new();
    let mut drawn = 0;
    // The nodes still to be drawn, each with the prefix of its line and the prefix of its children.
    let mut open = vec![(root, String::new(), String::new())];
    while let Some((id, before, below)) = open.pop() {
        if drawing.len() > MAX_DRAWING_BYTES {
            break;
        }
        let label = labels.get(id).map_or("", String::as_str);
        let mark = if id == head { " <- head" } else { "" };
        drawing.extend([before.as_str(), label, mark, "\n"]);
        drawn += 1;
        match children.get(id).map_or(&[][..], Vec::as_slice) {
            [] => {}
            [only] => open.push((only, below.clone(), below)),
            [earlier @ .., last] => {
                open.push((last, format!("{below}`-- "), format!("{below}    ")));
                for child in earlier.iter().rev() {
                    open.push((child, format!("{below}|-- "), format!("{below}|   ")));
                }
            }
        }
    }
    (drawing, drawn)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text is cut between characters, never within a UTF-8 character, which would panic.
    #[test]
    fn excerpts_are_cut_between_characters() {
        let shown = excerpt(&"ä".repeat(57 * 4));
        assert_eq!(shown, "ä".repeat(EXCERPT_CHARS) + "...");
        assert_eq!(excerpt(" a\n\u{1b}[31m\tb "), "a [31m b");
        assert_eq!(
            excerpt(&"x".repeat(EXCERPT_CHARS)),
            "x".repeat(EXCERPT_CHARS)
        );
        let blank = " ".repeat(EXCERPT_SOURCE_CHARS) + "x";
        assert_eq!(excerpt(&blank), "...");
    }
}
