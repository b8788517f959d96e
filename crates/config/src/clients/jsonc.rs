//! JSON with comments and trailing commas.

/// The same text as JSON: comments and trailing commas are replaced by spaces, so that all
/// positions stay the same.
pub(super) fn to_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // The position in `out` of a comma that may be a trailing one.
    let mut comma = None;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string_length(rest),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => comment_length(rest),
            _ => first.len_utf8(),
        };
        let (token, behind) = rest.split_at_checked(length).unwrap_or((rest, ""));
        rest = behind;
        if token.starts_with("//") || token.starts_with("/*") {
            blank(&mut out, token);
            continue;
        }
        if matches!(first, '}' | ']')
            && let Some(at) = comma
        {
            out.replace_range(at..=at, " ");
        }
        match first {
            ',' => comma = Some(out.len()),
            _ if first.is_whitespace() => {}
            _ => comma = None,
        }
        out.push_str(token);
    }
    out
}

/// The same text with comments replaced by spaces. It has no strings: it is from between two values.
pub(super) fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('/') {
        let (before, comment) = rest.split_at_checked(at).unwrap_or((rest, ""));
        let length = if comment.starts_with("//") {
            comment.find('\n').unwrap_or(comment.len())
        } else {
            comment_length(comment)
        };
        let (comment, behind) = comment.split_at_checked(length).unwrap_or((comment, ""));
        out.push_str(before);
        blank(&mut out, comment);
        rest = behind;
    }
    out.push_str(rest);
    out
}

/// Replaces a comment by spaces, and keeps its line breaks.
fn blank(out: &mut String, comment: &str) {
    let blanks = comment.bytes().map(|byte| match byte {
        b'\n' => '\n',
        _ => ' ',
    });
    out.extend(blanks);
}

/// The length of the comment at the start of `text`, or of all if it does not end. Its first two
/// characters do not end it, as in `/*/`.
fn comment_length(text: &str) -> usize {
    let inner = text.get(2..).unwrap_or_default();
    inner.find("*/").map_or(text.len(), |end| end + 4)
}

/// The length of the string at the start of `text`, or of all if it does not end.
pub(super) fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::to_json;

    #[test]
    fn comments_and_trailing_commas_are_blanked() {
        let cases = [
            ("{\"a\": 1, // é\n}", "{\"a\": 1       \n}"),
            ("[1, /* x\n */ ]", "[1      \n    ]"),
            (r#"{"a": "// no, \" /* "}"#, r#"{"a": "// no, \" /* "}"#),
            ("[1,,]", "[1, ]"),
            ("{\"a\": [1,],}", "{\"a\": [1 ] }"),
            ("[/*/ 1, */ 2]", "[          2]"),
            ("/* never ends", "             "),
            ("\"never ends", "\"never ends"),
        ];
        for (text, expected) in cases {
            assert_eq!(to_json(text), expected);
            assert_eq!(to_json(text).len(), text.len());
        }
    }
}
