//! White space in JSON. Strings and numbers keep their spelling.

use plexus_mcp_wire::Raw;

use super::LIMITS;

const INDENT: &str = "  ";

/// Formats JSON with every member on a line of its own, two spaces per level, and a line break at
/// the end.
pub(crate) fn indented(raw: &Raw) -> String {
    let mut out = String::with_capacity(raw.len() * 2);
    let mut depth = 0_usize;
    let mut tokens = Tokens(raw.as_str()).peekable();
    while let Some(token) = tokens.next() {
        match token {
            "{" | "[" => {
                out.push_str(token);
                if let Some(end) = tokens.next_if(|next| matches!(*next, "}" | "]")) {
                    out.push_str(end);
                } else {
                    depth += 1;
                    break_line(&mut out, depth);
                }
            }
            "}" | "]" => {
                depth = depth.saturating_sub(1);
                break_line(&mut out, depth);
                out.push_str(token);
            }
            "," => {
                out.push(',');
                break_line(&mut out, depth);
            }
            ":" => out.push_str(": "),
            other => out.push_str(other),
        }
    }
    out.push('\n');
    out
}

/// Removes all white space.
pub(crate) fn compact(raw: &Raw) -> String {
    Tokens(raw.as_str()).collect()
}

/// Maps the strings of a value; keys stay.
pub(crate) fn map_strings(raw: &Raw, map: &mut dyn FnMut(&str) -> String) -> Raw {
    let mut tokens = Tokens(raw.as_str()).peekable();
    let mut out = String::with_capacity(raw.len());
    while let Some(token) = tokens.next() {
        let is_key = tokens.peek() == Some(&":");
        match serde_json::from_str::<String>(token) {
            Ok(text) if !is_key => {
                let mapped = map(&text);
                let literal = (mapped != text).then(|| serde_json::to_string(&mapped).ok());
                out.push_str(literal.flatten().as_deref().unwrap_or(token));
            }
            _ => out.push_str(token),
        }
    }
    Raw::parse(out.into(), &LIMITS).unwrap_or_else(|_| raw.clone())
}

fn break_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n(INDENT, depth));
}

/// The tokens of a text that is known to be JSON.
struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.0.trim_ascii_start();
        let length = match text.bytes().next()? {
            b'"' => string_length(text),
            b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
            _ => text
                .find(|c: char| c.is_ascii_whitespace() || "{}[],:\"".contains(c))
                .unwrap_or(text.len()),
        };
        let (token, rest) = text.split_at_checked(length)?;
        self.0 = rest;
        Some(token)
    }
}

/// The length of the string that `text` begins with, quotes included.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    let inner = text.bytes().skip(1).take_while(|byte| {
        let is_end = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        !is_end
    });
    inner.count() + 2
}

#[cfg(test)]
mod tests {
    use plexus_mcp_wire::Limits;

    use super::*;

    fn raw(text: &str) -> Raw {
        Raw::parse(text.to_owned().into(), &Limits::default()).unwrap()
    }

    #[test]
    fn strings_change_and_keys_do_not() {
        let mapped = map_strings(
            &raw(r#"{"a": ["a", 1, "\u0062", {"a": "a"}]}"#),
            &mut |text| text.replace('a', "\"x"),
        );
        assert_eq!(mapped.as_str(), r#"{"a":["\"x",1,"\u0062",{"a":"\"x"}]}"#);
    }

    #[test]
    fn only_white_space_changes() {
        let text = r#" {"a" :[1.50, 1e400,{ }],"b":{"c\"\\":"{[,:é"},"d":[ ],"\u0065":true } "#;
        let laid_out = indented(&raw(text));
        let expected = r#"{
  "a": [
    1.50,
    1e400,
    {}
  ],
  "b": {
    "c\"\\": "{[,:é"
  },
  "d": [],
  "\u0065": true
}
"#;
        assert_eq!(laid_out, expected);
        assert_eq!(compact(&raw(text)), compact(&raw(&laid_out)));
        assert_eq!(indented(&raw(&laid_out)), laid_out);
    }
}
