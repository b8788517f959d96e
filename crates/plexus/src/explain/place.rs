//! Finds the line that defines a server.

use std::path::Path;

/// The line on which the definition of a server begins, if the file has one.
pub(super) fn line_of(file: &Path, server: &str) -> Option<usize> {
    let text = std::fs::read_to_string(file).ok()?;
    line_in(&text, server)
}

/// Scans the text for keys of the object under `mcpServers`. The text was valid JSON when it was
/// loaded; if it was changed since, nothing is found.
fn line_in(text: &str, server: &str) -> Option<usize> {
    let mut line = 1;
    let mut path: Vec<Option<String>> = Vec::new();
    let mut characters = text.chars().peekable();
    let mut last = None;
    while let Some(character) = characters.next() {
        match character {
            '\n' => line += 1,
            '"' => {
                let mut quoted = "\"".to_owned();
                while let Some(character) = characters.next() {
                    quoted.push(character);
                    match character {
                        '\\' => quoted.extend(characters.next()),
                        '"' => break,
                        _ => {}
                    }
                }
                last = serde_json::from_str::<String>(&quoted).ok();
            }
            ':' => {
                let is_server =
                    matches!(path.as_slice(), [None, Some(outer)] if outer == "mcpServers");
                if is_server && last.as_deref() == Some(server) {
                    return Some(line);
                }
            }
            '{' | '[' => path.push(last.take()),
            '}' | ']' => {
                path.pop();
                last = None;
            }
            ',' => last = None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::line_in;

    #[test]
    fn only_servers_count() {
        let text = r#"{
  "other": {"git": 1},
  "mcpServers": {
    "time": {"env": {"git": "x"}, "args": ["git", ":"]},
    "git":
      {"command": "\"git\": "}
  }
}"#;
        assert_eq!(line_in(text, "git"), Some(5));
        assert_eq!(line_in(text, "time"), Some(4));
        assert_eq!(line_in(text, "x"), None);
        assert_eq!(line_in("{\"mcpServers", "git"), None);
        assert_eq!(line_in(r#"{"mcpServers":{"a\u0062":{}}}"#, "ab"), Some(1));
    }
}
