//! URI templates of resources: `notes://{folder}/{+path}`.

use std::collections::BTreeMap;

/// The values that a URI gives to a template's variables, percent-decoded.
pub type Variables = BTreeMap<String, String>;

/// A template that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("URI template {template:?}: {reason}")]
pub struct InvalidTemplate {
    template: String,
    reason: &'static str,
}

/// A URI template of RFC 6570 level 1, and `{+name}` of level 2, which also spans slashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UriTemplate {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Variable { name: String, spans_slashes: bool },
}

impl UriTemplate {
    /// Reads a template.
    ///
    /// # Errors
    /// Unbalanced braces, empty names, operators beyond level 2, or two adjacent variables, whose
    /// values could not be told apart in a URI.
    pub fn parse(template: &str) -> Result<Self, InvalidTemplate> {
        let invalid = |reason| InvalidTemplate {
            template: template.to_owned(),
            reason,
        };
        let mut parts = Vec::new();
        let mut rest = template;
        while let Some((literal, after)) = rest.split_once('{') {
            if literal.contains('}') {
                return Err(invalid("unbalanced braces"));
            }
            if !literal.is_empty() {
                parts.push(Part::Literal(literal.to_owned()));
            } else if matches!(parts.last(), Some(Part::Variable { .. })) {
                return Err(invalid("two variables side by side"));
            }
            let (expression, after) = after
                .split_once('}')
                .ok_or_else(|| invalid("unbalanced braces"))?;
            let (name, spans_slashes) = match expression.strip_prefix('+') {
                Some(name) => (name, true),
                None => (expression, false),
            };
            let is_name_char = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
            if name.is_empty() || !name.chars().all(is_name_char) {
                return Err(invalid("only {name} and {+name} are understood"));
            }
            parts.push(Part::Variable {
                name: name.to_owned(),
                spans_slashes,
            });
            rest = after;
        }
        if rest.contains('}') {
            return Err(invalid("unbalanced braces"));
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.to_owned()));
        }
        Ok(Self { parts })
    }

    /// The variables' values if `uri` fits the template.
    pub fn matches(&self, uri: &str) -> Option<Variables> {
        let mut variables = Variables::new();
        let mut rest = uri;
        let mut parts = self.parts.iter().peekable();
        while let Some(part) = parts.next() {
            match part {
                Part::Literal(literal) => rest = rest.strip_prefix(literal.as_str())?,
                Part::Variable {
                    name,
                    spans_slashes,
                } => {
                    let (value, after) = match parts.peek() {
                        // The last variable before a literal takes as little as possible, one that
                        // spans slashes as much as possible.
                        Some(Part::Literal(literal)) if *spans_slashes => {
                            rest.rsplit_once(literal.as_str())?
                        }
                        Some(Part::Literal(literal)) => rest.split_once(literal.as_str())?,
                        _ => (rest, ""),
                    };
                    if value.is_empty() || (!spans_slashes && value.contains('/')) {
                        return None;
                    }
                    variables.insert(name.clone(), percent_decode(value)?);
                    rest = rest.strip_prefix(value)?;
                    debug_assert!(rest.ends_with(after));
                }
            }
        }
        rest.is_empty().then_some(variables)
    }
}

/// `None` for a broken escape or bytes that are no UTF-8.
fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let high = char::from(bytes.next()?).to_digit(16)?;
            let low = char::from(bytes.next()?).to_digit(16)?;
            decoded.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            decoded.push(byte);
        }
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matching(template: &str, uri: &str) -> Option<Vec<(String, String)>> {
        UriTemplate::parse(template)
            .unwrap()
            .matches(uri)
            .map(|found| found.into_iter().collect())
    }

    #[expect(
        clippy::unnecessary_wraps,
        reason = "what it is compared with is wrapped"
    )]
    fn values(pairs: &[(&str, &str)]) -> Option<Vec<(String, String)>> {
        let owned = pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        Some(owned.collect())
    }

    #[test]
    fn variables_are_found() {
        let template = "test://template/{id}/data";
        assert_eq!(
            matching(template, "test://template/123/data"),
            values(&[("id", "123")])
        );
        assert_eq!(
            matching(template, "test://template/a%20b/data"),
            values(&[("id", "a b")])
        );
        assert_eq!(
            matching("file://{host}/{+path}", "file://h/a/b/c.txt"),
            values(&[("host", "h"), ("path", "a/b/c.txt")])
        );
        assert_eq!(
            matching("x://{+path}.md", "x://a.md/b.md"),
            values(&[("path", "a.md/b")])
        );
        assert_eq!(matching("plain://x", "plain://x"), values(&[]));
    }

    /// RES-07: a URI that does not fit the template does not match.
    #[test]
    fn other_uris_do_not_match() {
        let template = "test://template/{id}/data";
        for uri in [
            "test://template//data",
            "test://template/a/b/data",
            "test://template/1/data/x",
            "test://template/%zz/data",
            "test://template/%ff/data",
            "other://template/1/data",
            "",
        ] {
            assert_eq!(matching(template, uri), None, "{uri}");
        }
    }

    #[test]
    fn bad_templates_are_refused() {
        for template in [
            "a://{",
            "a://}",
            "a://{}",
            "a://{a}{b}",
            "a://{?q}",
            "a://{a*}",
        ] {
            assert!(UriTemplate::parse(template).is_err(), "{template}");
        }
    }
}
