//! What commands print: texts for people, JSON for scripts.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use plexus_service::Raw;
use serde::Serialize;

/// Prints to standard output. Whoever closed the pipe has read enough.
pub(crate) fn print(text: &str) -> io::Result<()> {
    print_while_read(text).map(drop)
}

/// Prints to standard output, and says whether anybody still reads it.
pub(crate) fn print_while_read(text: &str) -> io::Result<bool> {
    let mut output = io::stdout().lock();
    let printed = output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush());
    match printed {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether anybody still reads standard output. A pipe whose reader has gone is only noticed by who
/// writes, or asks.
#[cfg(unix)]
pub(crate) fn is_read() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let output = io::stdout();
    let mut outputs = [PollFd::new(&output, PollFlags::empty())];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let [output] = match poll(&mut outputs, Some(&at_once)) {
        Ok(_) => outputs,
        Err(_) => return true,
    };
    !output.revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

/// Whether anybody still reads standard output, as far as is known.
#[cfg(not(unix))]
pub(crate) fn is_read() -> bool {
    true
}

/// Waits until nobody reads standard output any more.
pub(crate) async fn unread() {
    const PAUSE: Duration = Duration::from_millis(500);
    while is_read() {
        tokio::time::sleep(PAUSE).await;
    }
}

/// The value as one line of JSON.
pub(crate) fn as_json<T: Serialize + ?Sized>(value: &T) -> anyhow::Result<String> {
    Ok(Raw::encode(value)?.as_str().to_owned() + "\n")
}

/// What a person sees instead of nothing; scripts see nothing.
pub(crate) fn if_nothing<'a>(text: &'a str, instead: &'a str) -> &'a str {
    if text.is_empty() && io::stdout().is_terminal() {
        instead
    } else {
        text
    }
}

/// The text on one line, without anything that a terminal would obey.
pub(crate) fn printable(text: &str) -> String {
    let shown = |character: char| match character {
        '\n' | '\r' | '\t' => ' ',
        control if control.is_control() => char::REPLACEMENT_CHARACTER,
        other => other,
    };
    text.chars().map(shown).collect()
}

/// The text with its lines, without anything else that a terminal would obey. Where standard
/// output is no terminal, it stays as it is.
pub(crate) fn readable(text: &str) -> Cow<'_, str> {
    if io::stdout().is_terminal() {
        Cow::Owned(harmless(text))
    } else {
        Cow::Borrowed(text)
    }
}

/// The text with its lines, without anything else that a terminal would obey.
pub(crate) fn harmless(text: &str) -> String {
    let shown = |character: char| match character {
        '\n' | '\t' => character,
        control if control.is_control() => char::REPLACEMENT_CHARACTER,
        other => other,
    };
    text.replace("\r\n", "\n").chars().map(shown).collect()
}

/// What was asked for is not what can be asked for: wrong usage, though it took a server's answer
/// to find out.
#[derive(Debug)]
pub(crate) struct Misuse(pub(crate) String);

impl std::fmt::Display for Misuse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misuse {}

#[cfg(test)]
mod tests {
    use super::{harmless, printable};

    #[test]
    fn nobody_else_speaks_to_the_terminal() {
        assert_eq!(
            printable("a\u{1b}[2J\nb\u{9b}c \u{e9}"),
            "a\u{fffd}[2J b\u{fffd}c \u{e9}"
        );
        assert_eq!(harmless("a\r\n\tb\u{1b}"), "a\n\tb\u{fffd}");
    }
}
