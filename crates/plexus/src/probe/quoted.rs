//! What a server says, made fit to be shown in a terminal.

/// The text on one line, without anything that a terminal would obey.
pub(super) fn printable(text: &str) -> String {
    let shown = |character: char| match character {
        '\n' | '\r' | '\t' => ' ',
        control if control.is_control() => char::REPLACEMENT_CHARACTER,
        other => other,
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn a_server_cannot_speak_to_the_terminal() {
        assert_eq!(
            printable("a\u{1b}[2J\nb\u{9b}c \u{e9}"),
            "a\u{fffd}[2J b\u{fffd}c \u{e9}"
        );
    }
}
