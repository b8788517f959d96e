//! `${VAR}` and `${VAR:-default}`.

use std::fmt;

/// A string of a configuration file, with its variables expanded. Its displayed form is the written
/// one: `${TOKEN}`, not the token.
#[derive(Clone, PartialEq, Eq)]
pub struct Text {
    written: String,
    expanded: String,
}

/// Why a string cannot be expanded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ExpandError {
    #[error("the environment variable {0} is not set")]
    Unset(String),
    #[error("${{{0}}} is a question that only another client asks")]
    Question(String),
}

impl Text {
    /// A string without variables.
    pub fn literal(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            written: text.clone(),
            expanded: text,
        }
    }

    /// Expands `written` with the variables that `lookup` has.
    pub(super) fn expand(
        written: String,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ExpandError> {
        let expanded = expand(&written, lookup)?;
        Ok(Self { written, expanded })
    }

    /// The same written string, with another expanded one.
    pub(super) fn map_expanded(self, change: impl FnOnce(&str) -> String) -> Self {
        Self {
            expanded: change(&self.expanded),
            written: self.written,
        }
    }

    /// The string as the file has it.
    pub fn written(&self) -> &str {
        &self.written
    }

    /// The expanded string, which may be a secret.
    pub fn expanded(&self) -> &str {
        &self.expanded
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.written.fmt(f)
    }
}

impl ExpandError {
    pub(super) fn advice(&self) -> String {
        match self {
            Self::Unset(name) => format!("set it, or write ${{{name}:-default}}"),
            Self::Question(_) => "write ${NAME} for an environment variable".to_owned(),
        }
    }
}

/// Text that is not a variable stays as it is, because a shell may expand it: `${x%y}`.
fn expand(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, ExpandError> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        expanded.push_str(before);
        let Some((inside, behind)) = after.split_once('}') else {
            rest = rest.strip_prefix(before).unwrap_or_default();
            break;
        };
        let Some(value) = value(inside, lookup)? else {
            expanded.push_str("${");
            // The text inside the braces may contain another variable.
            rest = after;
            continue;
        };
        expanded.push_str(&value);
        rest = behind;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// The value of the text between the braces; `None` if that is not a variable.
fn value(
    inside: &str,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<String>, ExpandError> {
    if inside.starts_with("input:") {
        return Err(ExpandError::Question(inside.to_owned()));
    }
    // Cursor and VS Code write ${env:NAME}.
    let inside = inside.strip_prefix("env:").unwrap_or(inside);
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    if !is_name(name) {
        return Ok(None);
    }
    match (lookup(name), default) {
        // As in a shell, a default also stands in for an empty value.
        (Some(value), Some(default)) if value.is_empty() => Ok(Some(default.to_owned())),
        (Some(value), _) => Ok(Some(value)),
        (None, Some(default)) => Ok(Some(default.to_owned())),
        (None, None) => Err(ExpandError::Unset(name.to_owned())),
    }
}

/// Whether `name` can be the name of a variable in a shell.
pub(super) fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<String, ExpandError> {
        let lookup = |name: &str| match name {
            "USER" => Some("ada".to_owned()),
            "EMPTY" => Some(String::new()),
            "REFERENCE" => Some("${USER}".to_owned()),
            _ => None,
        };
        expand(text, &lookup)
    }

    /// C23
    #[test]
    fn variables_and_defaults_are_expanded() {
        let cases = [
            ("plain", "plain"),
            ("${USER}", "ada"),
            ("a ${USER} b ${USER}", "a ada b ada"),
            ("${env:USER}", "ada"),
            ("${NONE:-fallback}", "fallback"),
            ("${NONE:-}", ""),
            ("${USER:-fallback}", "ada"),
            ("${EMPTY}", ""),
            ("${EMPTY:-fallback}", "fallback"),
            ("${NONE:-https://x:1/?a=b}", "https://x:1/?a=b"),
        ];
        for (text, expected) in cases {
            assert_eq!(expanded(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn values_are_not_expanded_again() {
        assert_eq!(expanded("${REFERENCE}").unwrap(), "${USER}");
    }

    #[test]
    fn text_without_a_valid_variable_is_unchanged() {
        for text in [
            "$USER", "${", "a ${USER", "${x%y}", "${}", "${1}", "}", "$${",
        ] {
            assert_eq!(expanded(text).unwrap(), text);
        }
        assert_eq!(expanded("${x%${USER}}").unwrap(), "${x%ada}");
    }

    #[test]
    fn an_unset_variable_is_named() {
        assert_eq!(
            expanded("a ${NONE}"),
            Err(ExpandError::Unset("NONE".into()))
        );
        assert_eq!(
            expanded("${input:token}"),
            Err(ExpandError::Question("input:token".into()))
        );
    }

    #[test]
    fn debug_output_is_the_unexpanded_text() {
        let text = Text::expand("Bearer ${USER}".into(), &|_| Some("hunter2".into())).unwrap();
        assert_eq!(text.expanded(), "Bearer hunter2");
        assert_eq!(format!("{text:?}"), "\"Bearer ${USER}\"");
    }
}
