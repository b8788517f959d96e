//! Environment files: `NAME=value` lines.

use super::text::is_name;

/// The variables of an environment file, in order.
///
/// A value may be quoted: single quotes take it as it is, double quotes know `\n`, `\t`, `\"`, `\\`
/// and `\$`. Without quotes it ends at ` #`. `export` in front, empty lines and lines that begin
/// with `#` are accepted. Variables are not expanded.
///
/// # Errors
/// The line, from 1, that is something else.
pub(super) fn parse(text: &str) -> Result<Vec<(String, String)>, usize> {
    let lines = text.lines().map(str::trim).enumerate();
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(index, line)| variable(line).ok_or(index + 1))
        .collect()
}

fn variable(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim();
    let name = name.strip_prefix("export ").map_or(name, str::trim);
    if !is_name(name) {
        return None;
    }
    Some((name.to_owned(), unquoted(value.trim())?))
}

fn unquoted(value: &str) -> Option<String> {
    if let Some(rest) = value.strip_prefix('\'') {
        let (inner, behind) = rest.split_once('\'')?;
        return is_comment(behind).then(|| inner.to_owned());
    }
    if let Some(rest) = value.strip_prefix('"') {
        return unescaped(rest);
    }
    if value.starts_with('#') {
        return Some(String::new());
    }
    let end = value.find(" #").unwrap_or(value.len());
    value.get(..end).map(|value| value.trim_end().to_owned())
}

/// What stands before the closing quote.
fn unescaped(text: &str) -> Option<String> {
    let mut value = String::new();
    let mut chars = text.chars();
    loop {
        match chars.next()? {
            '"' => return is_comment(chars.as_str()).then_some(value),
            '\\' => match chars.next()? {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                c @ ('"' | '\\' | '$') => value.push(c),
                other => value.extend(['\\', other]),
            },
            c => value.push(c),
        }
    }
}

fn is_comment(behind: &str) -> bool {
    let behind = behind.trim();
    behind.is_empty() || behind.starts_with('#')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_variables() {
        let text = r#"
# a comment
PLAIN=value
export EXPORTED = spaced out   # comment
EMPTY=
HASH=a#b
SINGLE='a "b" \n # c'   # comment
DOUBLE="a\nb \"c\" # d"
EQUALS=a=b==
"#;
        let variables = parse(text).unwrap();
        let expected = [
            ("PLAIN", "value"),
            ("EXPORTED", "spaced out"),
            ("EMPTY", ""),
            ("HASH", "a#b"),
            ("SINGLE", r#"a "b" \n # c"#),
            ("DOUBLE", "a\nb \"c\" # d"),
            ("EQUALS", "a=b=="),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(variables, expected);
    }

    #[test]
    fn a_line_that_is_none_is_numbered() {
        for line in ["NAME", "a b=c", "1=2", "A='x", "A=\"x", "A='x' y", "=x"] {
            assert_eq!(parse(&format!("OK=1\n\n{line}\n")), Err(3), "{line}");
        }
    }
}
