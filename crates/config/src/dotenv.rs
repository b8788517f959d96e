//! Environment files (`.env`), which `dotenvy` parses.

use std::cell::Cell;
use std::io::Read;
use std::rc::Rc;

/// Takes the place of a `$` that `dotenvy` would expand; a Unicode noncharacter, which no text has.
const DOLLAR_PLACEHOLDER: char = '\u{ffff}';

/// The variables of an environment file, in order.
///
/// The syntax is that of `dotenvy`: a value with spaces, quotes or backslashes is quoted; in
/// single quotes it has no escapes, in double quotes the escapes `\n`, `\"`, `\\` and `\$`; quoted
/// values may have several lines. Variables are not expanded: a `$` is a `$`, as in passwords.
///
/// # Errors
/// The number, from 1, of the line that cannot be parsed. The error of `dotenvy` is dropped, since
/// it contains the line, which may hold a secret.
pub(super) fn parse(text: &str) -> Result<Vec<(String, String)>, usize> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = without_expansion(text);
    let line = Rc::new(Cell::new(0));
    let lines = Lines {
        rest: text.as_bytes(),
        line: Rc::clone(&line),
    };
    dotenvy::from_read_iter(lines)
        .map(|variable| {
            let (name, value) = variable.map_err(|_may_hold_a_secret| line.get())?;
            Ok((name, value.replace(DOLLAR_PLACEHOLDER, "$")))
        })
        .collect()
}

/// The text with a placeholder for each `$` that is not escaped, and with a line break at its end,
/// without which `dotenvy` refuses a last line that ends with a space.
fn without_expansion(text: &str) -> String {
    let mut is_escaped = false;
    let replaced = text.chars().map(|c| match c {
        '$' if !is_escaped => DOLLAR_PLACEHOLDER,
        _ => {
            is_escaped = c == '\\' && !is_escaped;
            c
        }
    });
    replaced.chain(['\n']).collect()
}

/// Gives a text line by line and counts the lines, so that an error can be located.
struct Lines<'a> {
    rest: &'a [u8],
    line: Rc<Cell<usize>>,
}

impl Read for Lines<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let end = self.rest.iter().position(|byte| *byte == b'\n');
        let end = end.map_or(self.rest.len(), |end| end + 1);
        let count = self.rest.get(..end).unwrap_or_default().read(buffer)?;
        if count == end && end > 0 {
            self.line.set(self.line.get() + 1);
        }
        self.rest = self.rest.get(count..).unwrap_or_default();
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_read() {
        let text = r#"
# A comment
PLAIN=value
export EXPORTED = 'spaced out'
  EMPTY =   # nothing
HASH=a#b # a comment
SINGLE='a "b" \n # c'
DOUBLE="a\nb \"c\" # d"
EQUALS=a=b==
LINES="a
b"
LAST=x "#;
        let variables = parse(text).unwrap();
        let expected = [
            ("PLAIN", "value"),
            ("EXPORTED", "spaced out"),
            ("EMPTY", ""),
            ("HASH", "a#b"),
            ("SINGLE", r#"a "b" \n # c"#),
            ("DOUBLE", "a\nb \"c\" # d"),
            ("EQUALS", "a=b=="),
            ("LINES", "a\nb"),
            ("LAST", "x"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(variables, expected);
        assert_eq!(
            parse("\u{feff}A=1\r\n"),
            Ok(vec![("A".to_owned(), "1".to_owned())])
        );
        assert_eq!(parse(""), Ok(Vec::new()));
    }

    /// A password must not change, and the environment of Plexus must not leak into a server.
    #[test]
    fn variables_are_not_expanded() {
        for (value, expected) in [
            ("pa$HOME", "pa$HOME"),
            ("${HOME}", "${HOME}"),
            ("\"$HOME\"", "$HOME"),
            (r#""\$HOME""#, "$HOME"),
            (r#""\\$HOME""#, r"\$HOME"),
            (r"'\$HOME'", r"\$HOME"),
            (r"'\\$HOME'", r"\\$HOME"),
        ] {
            let variables = parse(&format!("A={value}")).unwrap();
            assert_eq!(
                variables,
                [("A".to_owned(), expected.to_owned())],
                "{value}"
            );
        }
    }

    #[test]
    fn the_line_of_an_error_is_told() {
        for line in ["NAME", "a b=c", "1=2", "A='x' y", "=x", "A=b c", r"A=C:\x"] {
            assert_eq!(parse(&format!("OK=1\n\n{line}\nB=2\n")), Err(3), "{line}");
        }
        // A quote that is not closed is noticed at the end.
        for line in ["A='x", "A=\"x"] {
            assert!(parse(&format!("OK=1\n\n{line}\nB=2\n")).is_err(), "{line}");
        }
    }
}
