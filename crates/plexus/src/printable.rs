//! Text that can be printed: the only type that the output layer accepts.

use std::borrow::Cow;
use std::ops::Add;

/// Text without characters that a terminal acts upon, that change the direction of other text, or
/// that are invisible. Converting other text into it makes those characters visible, so text of a
/// file, a server or a peer cannot reach a terminal unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Printable(String);

/// A sequence that Plexus itself sends to a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TerminalControl {
    /// Moves to the begin of the line, and clears the line.
    ClearLine,
    /// Moves to the first line, and clears the screen.
    ClearScreen,
}

impl Printable {
    /// The text in a style of ANSI terminals (SGR).
    pub(crate) fn styled(self, code: u8) -> Self {
        if self.0.is_empty() {
            return self;
        }
        Self(format!("\u{1b}[{code}m{}\u{1b}[0m", self.0))
    }

    /// The lines.
    pub(crate) fn lines(&self) -> impl Iterator<Item = Self> {
        self.0.lines().map(|line| Self(line.to_owned()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<TerminalControl> for Printable {
    fn from(control: TerminalControl) -> Self {
        Self(match control {
            TerminalControl::ClearLine => "\r\u{1b}[K".to_owned(),
            TerminalControl::ClearScreen => "\u{1b}[H\u{1b}[J".to_owned(),
        })
    }
}

impl From<&str> for Printable {
    fn from(text: &str) -> Self {
        Self(visible(text).into_owned())
    }
}

impl From<String> for Printable {
    fn from(text: String) -> Self {
        match visible(&text) {
            Cow::Borrowed(_) => Self(text),
            Cow::Owned(changed) => Self(changed),
        }
    }
}

impl From<&String> for Printable {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl<T: Into<Self>> Add<T> for Printable {
    type Output = Self;

    fn add(mut self, more: T) -> Self {
        self.0.push_str(&more.into().0);
        self
    }
}

impl<T: Into<Self>> Extend<T> for Printable {
    fn extend<I: IntoIterator<Item = T>>(&mut self, parts: I) {
        for part in parts {
            self.0.push_str(&part.into().0);
        }
    }
}

impl<T: Into<Self>> FromIterator<T> for Printable {
    fn from_iter<I: IntoIterator<Item = T>>(parts: I) -> Self {
        let mut text = Self::default();
        text.extend(parts);
        text
    }
}

/// The text with its line breaks and tabs, and other characters that cannot be seen as `\u001b`,
/// which is how JSON writes them.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    let is_kept = |character: char| matches!(character, '\n' | '\t') || !is_unseen(character);
    if text.chars().all(is_kept) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for character in text.replace("\r\n", "\n").chars() {
        push(&mut shown, character, is_kept(character));
    }
    Cow::Owned(shown)
}

/// The text on one line: line breaks and tabs are spaces, and other characters that cannot be seen
/// are shown as by [`visible`].
pub(crate) fn one_line(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\r' | '\t' => shown.push(' '),
            other => push(&mut shown, other, !is_unseen(other)),
        }
    }
    shown
}

fn push(shown: &mut String, character: char, is_kept: bool) {
    if is_kept {
        shown.push(character);
        return;
    }
    for unit in character.encode_utf16(&mut [0; 2]) {
        let escaped = format!("\\u{unit:04x}");
        shown.push_str(&escaped);
    }
}

/// Whether the character is a control character, changes the direction of text, or has no width
/// and no visible effect. Combining marks and the variation selectors of emoji are not meant.
fn is_unseen(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{2800}'
                | '\u{3164}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unseen_characters_are_made_visible() {
        assert_eq!(
            visible("a\r\n\tb\u{1b}[2J\u{9b}"),
            "a\n\tb\\u001b[2J\\u009b"
        );
        assert_eq!(visible("a\u{202e}b\u{200b}"), "a\\u202eb\\u200b");
        assert_eq!(visible("\u{e0041}"), "\\udb40\\udc41");
        assert_eq!(visible("alone\r"), "alone\\u000d");
        assert_eq!(one_line("a\u{1b}[2J\nb c \u{e9}"), "a\\u001b[2J b c \u{e9}");
    }

    /// Text of other scripts, combining marks and emoji are left alone.
    #[test]
    fn visible_characters_stay() {
        let text = "e\u{301} \u{5d0}\u{5d1} \u{65e5}\u{672c} \u{26a0}\u{fe0f}";
        assert!(matches!(visible(text), Cow::Borrowed(_)));
        assert_eq!(Printable::from(text).as_str(), text);
    }

    #[test]
    fn only_our_own_styles_have_escapes() {
        let text = Printable::from("x\u{1b}[31m").styled(1) + "\u{1b}";
        assert_eq!(text.as_str(), "\u{1b}[1mx\\u001b[31m\u{1b}[0m\\u001b");
    }
}
