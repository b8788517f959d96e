//! Output of commands: text for users, JSON for scripts.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use plexus_mcp_core::Raw;
use serde::Serialize;

/// Prints to standard output. A closed pipe is not an error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    print_while_read(text).map(drop)
}

/// Prints to standard output, and returns whether it is still open.
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

/// Whether the reader of standard output is still there. A closed pipe is only noticed by writing,
/// or by polling it.
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

/// Whether the reader of standard output is still there, as far as is known.
#[cfg(not(unix))]
pub(crate) fn is_read() -> bool {
    true
}

/// Waits until the reader of standard output has gone.
pub(crate) async fn unread() {
    const POLL_INTERVAL: Duration = Duration::from_millis(500);
    while is_read() {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// The value as one line of JSON.
pub(crate) fn as_json<T: Serialize + ?Sized>(value: &T) -> anyhow::Result<String> {
    Ok(Raw::encode(value)?.as_str().to_owned() + "\n")
}

/// `instead` on a terminal if the text is empty; scripts get empty output.
pub(crate) fn if_nothing<'a>(text: &'a str, instead: &'a str) -> &'a str {
    if text.is_empty() && io::stdout().is_terminal() {
        instead
    } else {
        text
    }
}

/// The text on one line, without terminal control characters.
pub(crate) fn printable(text: &str) -> String {
    let shown = |character: char| match character {
        '\n' | '\r' | '\t' => ' ',
        control if control.is_control() => char::REPLACEMENT_CHARACTER,
        other => other,
    };
    text.chars().map(shown).collect()
}

/// The text with its line breaks, without other terminal control characters. If standard output is
/// not a terminal, the text is unchanged.
pub(crate) fn readable(text: &str) -> Cow<'_, str> {
    if io::stdout().is_terminal() {
        Cow::Owned(harmless(text))
    } else {
        Cow::Borrowed(text)
    }
}

/// The text with its line breaks, without other terminal control characters.
pub(crate) fn harmless(text: &str) -> String {
    let shown = |character: char| match character {
        '\n' | '\t' => character,
        control if control.is_control() => char::REPLACEMENT_CHARACTER,
        other => other,
    };
    text.replace("\r\n", "\n").chars().map(shown).collect()
}

/// A usage error that is detected only after a server has answered, such as an unknown tool.
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
