//! Splits a command line that is one argument into words, as a shell does.

/// The words of `text`. Quotes and backslashes have the meaning of a POSIX shell; variables and
/// other expansions are not done. On Windows, a backslash is part of a path.
///
/// # Errors
/// A quote is not closed.
pub(crate) fn split(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        match character {
            space if space.is_whitespace() => words.extend(word.take()),
            '\'' => {
                let quoted = word.get_or_insert_default();
                loop {
                    match rest.next() {
                        Some('\'') => break,
                        Some(inside) => quoted.push(inside),
                        None => return Err(unclosed('\'')),
                    }
                }
            }
            '"' => {
                let quoted = word.get_or_insert_default();
                loop {
                    match rest.next() {
                        Some('"') => break,
                        Some('\\') if !cfg!(windows) => match rest.next() {
                            Some(escaped @ ('"' | '\\' | '$' | '`')) => quoted.push(escaped),
                            Some(other) => quoted.extend(['\\', other]),
                            None => return Err(unclosed('"')),
                        },
                        Some(inside) => quoted.push(inside),
                        None => return Err(unclosed('"')),
                    }
                }
            }
            '\\' if !cfg!(windows) => word.get_or_insert_default().extend(rest.next()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

fn unclosed(quote: char) -> String {
    format!("the quote {quote} is not closed")
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn words_are_split_as_in_a_shell() {
        for (text, words) in [
            ("", &[][..]),
            ("  npx -y\tserver \n", &["npx", "-y", "server"]),
            ("'a b'c \"d e\" ''", &["a bc", "d e", ""]),
            (r#""a'b" 'c"d'"#, &["a'b", "c\"d"]),
            ("$HOME `x`", &["$HOME", "`x`"]),
        ] {
            assert_eq!(split(text).unwrap(), words, "{text}");
        }
        for text in ["'a", "a \"b", "\"'"] {
            assert!(split(text).unwrap_err().contains("not closed"), "{text}");
        }
    }

    #[cfg(not(windows))]
    #[test]
    fn a_backslash_takes_the_next_character() {
        for (text, words) in [
            (r"a\ b \\ \'", &["a b", r"\", "'"][..]),
            (r#""a\"b\$\n" 'a\'"#, &["a\"b$\\n", r"a\"]),
        ] {
            assert_eq!(split(text).unwrap(), words, "{text}");
        }
        assert!(split(r#""a\"#).is_err());
    }
}
