//! A tree as a drawing.

use std::collections::HashMap;

use super::error::ArborError;
use super::model::Node;
use super::tables;
use super::trees::Trees;

/// How many characters of a node are shown.
const EXCERPT: usize = 60;

/// How much of a text is read to make an excerpt of it.
const READ: usize = 4 * EXCERPT;

/// The most nodes that are drawn.
const MAX_DRAWN: u32 = 10_000;

/// The size of a drawing, in bytes, after which it is left unfinished.
const MAX_DRAWING: usize = 1024 * 1024;

impl Trees {
    /// Draws a tree in ASCII, one line for each node, with what its handles point to. Only
    /// branches are indented, so that a long conversation stays at the margin.
    ///
    /// # Errors
    /// There is no such tree.
    pub async fn render(&self, tree_id: impl Into<String>) -> Result<String, ArborError> {
        let id = tree_id.into();
        let now = self.now();
        let (tree, nodes, total) = self
            .read(move |db| {
                let tree = tables::tree(db, &id, now)?;
                let nodes = tables::beginnings(db, &id, READ, MAX_DRAWN)?;
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

    async fn label(&self, node: &Node) -> String {
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

/// One line, whatever the text would do to a terminal, cut between characters.
fn excerpt(text: &str) -> String {
    let start: String = text.chars().take(READ).collect();
    let words: Vec<&str> = start
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    let line = words.join(" ");
    let mut shown: String = line.chars().take(EXCERPT).collect();
    if shown.len() < line.len() || start.len() < text.len() {
        shown.push_str("...");
    }
    shown
}

/// The drawing, and how many nodes are on it. It goes down with a list of its own, since a tree may
/// be deeper than a stack.
fn draw(root: &str, head: &str, nodes: &[Node], labels: &HashMap<&str, String>) -> (String, u64) {
    let mut children: HashMap<&str, Vec<&str>> = HashMap::new();
    for node in nodes {
        if let Some(parent) = &node.parent {
            children.entry(parent).or_default().push(&node.id);
        }
    }
    let mut drawing = String::new();
    let mut drawn = 0;
    // What is still to be drawn: a node, and what stands before it and before what is below it.
    let mut open = vec![(root, String::new(), String::new())];
    while let Some((id, before, below)) = open.pop() {
        if drawing.len() > MAX_DRAWING {
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

    /// §3.4: a text used to be cut between bytes, which panics on UTF-8.
    #[test]
    fn excerpts_are_cut_between_characters() {
        let shown = excerpt(&"ä".repeat(57 * 4));
        assert_eq!(shown, "ä".repeat(EXCERPT) + "...");
        assert_eq!(excerpt(" a\n\u{1b}[31m\tb "), "a [31m b");
        assert_eq!(excerpt(&"x".repeat(EXCERPT)), "x".repeat(EXCERPT));
        let blank = " ".repeat(READ) + "x";
        assert_eq!(excerpt(&blank), "...");
    }
}
