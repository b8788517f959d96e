//! The limit for stdio: writes every line that it reads.

use std::io::{self, Read, Write};

use memchr::memrchr;

/// Echoes standard input until it ends.
pub(crate) fn run() -> io::Result<()> {
    let mut input = io::stdin().lock();
    let mut output = io::stdout().lock();
    let mut lines = Vec::new();
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let read = input.read(&mut chunk)?;
        if read == 0 {
            return Ok(());
        }
        lines.extend_from_slice(chunk.get(..read).unwrap_or_default());
        if let Some(last) = memrchr(b'\n', &lines) {
            output.write_all(lines.get(..=last).unwrap_or_default())?;
            output.flush()?;
            lines.drain(..=last);
        }
    }
}
