//! Output of commands: text for users, JSON for scripts.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use plexus_mcp_core::Raw;
use serde::Serialize;

use crate::printable::Printable;

/// Prints to standard output. A closed pipe is not an error.
pub(crate) fn print(text: impl Into<Printable>) -> io::Result<()> {
    print_while_read(text).map(drop)
}

/// Prints to standard output, and returns whether it is still open.
pub(crate) fn print_while_read(text: impl Into<Printable>) -> io::Result<bool> {
    write_while_read(text.into().as_str().as_bytes())
}

/// Writes text that is data, such as the result of a tool: as it is, or in its printable form at a
/// terminal. A closed pipe is not an error.
pub(crate) fn print_data(text: &str) -> io::Result<()> {
    if is_terminal() {
        print(text)
    } else {
        write_bytes(text.as_bytes())
    }
}

/// Writes bytes to standard output, which is not a terminal. A closed pipe is not an error.
pub(crate) fn write_bytes(bytes: &[u8]) -> io::Result<()> {
    write_while_read(bytes).map(drop)
}

/// Prints a line to standard error, which may be closed; that is not an error.
pub(crate) fn say(line: impl Into<Printable>) {
    say_in_line(line.into() + "\n");
}

/// Prints to standard error without a line break.
pub(crate) fn say_in_line(text: impl Into<Printable>) {
    let mut errors = io::stderr().lock();
    let printed = errors.write_all(text.into().as_str().as_bytes());
    drop(printed.and_then(|()| errors.flush()));
}

/// Whether standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether standard error is a terminal.
pub(crate) fn errors_are_at_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Whether the user can be asked: standard input and standard error are a terminal.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && errors_are_at_terminal()
}

/// Asks a question that is answered with y or n; no answer is no.
///
/// # Errors
/// Standard input cannot be read.
pub(crate) fn confirm(question: impl Into<Printable>) -> io::Result<bool> {
    let answer = answer(question.into() + " [y/N] ")?;
    Ok(matches!(answer.as_str(), "y" | "yes"))
}

/// Asks a question, and returns the line that the user types, in lower case.
///
/// # Errors
/// Standard input cannot be read.
pub(crate) fn answer(question: impl Into<Printable>) -> io::Result<String> {
    say_in_line(question);
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(answer.trim().to_lowercase())
}

fn write_while_read(bytes: &[u8]) -> io::Result<bool> {
    let mut output = io::stdout().lock();
    let written = output.write_all(bytes).and_then(|()| output.flush());
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether the reading end of standard output is open. A closed pipe is only noticed by writing,
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

/// Whether the reading end of standard output is open, as far as is known.
#[cfg(not(unix))]
pub(crate) fn is_read() -> bool {
    true
}

/// Waits until the reading end of standard output is closed.
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
    if text.is_empty() && is_terminal() {
        instead
    } else {
        text
    }
}

/// A call that was not made, because its user must agree and cannot be asked.
#[derive(Debug)]
pub(crate) struct ConsentNeeded(pub(crate) String);

impl ConsentNeeded {
    /// The exit code of a command that ends with this error.
    pub(crate) const EXIT_CODE: u8 = 3;
}

impl std::fmt::Display for ConsentNeeded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConsentNeeded {}

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
    use std::fs;
    use std::path::{Path, PathBuf};

    fn sources(folder: &Path) -> Vec<PathBuf> {
        let files = fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().path());
        let files = files.flat_map(|file| {
            if file.is_dir() {
                sources(&file)
            } else {
                vec![file]
            }
        });
        files.collect()
    }

    /// Other modules print through this one, so that no text reaches a terminal unchanged. Only the
    /// width of a terminal is asked for elsewhere.
    #[test]
    fn only_the_output_layer_writes() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        for file in sources(&folder) {
            let is_exempt = ["output.rs", "terminal.rs"]
                .iter()
                .any(|name| file.ends_with(name));
            let text = fs::read_to_string(&file).unwrap();
            for stream in ["io::stdout()", "io::stderr()"] {
                let is_written =
                    text.contains(stream) && !text.contains(&format!("tokio::{stream}"));
                assert!(!is_written || is_exempt, "{} uses {stream}", file.display());
            }
        }
    }
}
