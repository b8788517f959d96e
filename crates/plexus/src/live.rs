//! A status line with spinner and progress bar, at the end of a terminal. If standard error is not
//! a terminal, nothing is drawn.

use std::time::Duration;

use plexus_mcp_core::Progress;
use tokio::time::Instant;

use crate::output::{self, say, say_in_line};
use crate::printable::{Printable, TerminalControl, one_line};
use crate::terminal::{Canvas, Tone};

/// How often the line is redrawn.
pub(crate) const FRAME_INTERVAL: Duration = Duration::from_millis(120);
/// Nothing is drawn for work that takes less time than this.
const SPINNER_DELAY: Duration = Duration::from_millis(300);
const SPINNER: [&str; 4] = ["|", "/", "-", "\\"];
const BAR_WIDTH: usize = 20;

/// The status line.
#[derive(Debug)]
pub(crate) struct StatusLine {
    is_terminal: bool,
    is_drawn: bool,
    /// Standard output is the same terminal, and in the middle of a line.
    is_held: bool,
    frame: usize,
    since: Instant,
    text: String,
    progress: Option<Progress>,
}

impl StatusLine {
    /// A line with `text`.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self {
            is_terminal: output::errors_are_at_terminal(),
            is_drawn: false,
            is_held: false,
            frame: 0,
            since: Instant::now(),
            text: text.into(),
            progress: None,
        }
    }

    /// Waits for `work`, and shows the line meanwhile.
    pub(crate) async fn during<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => {
                    self.clear();
                    return done;
                }
                () = tokio::time::sleep(FRAME_INTERVAL) => self.draw(),
            }
        }
    }

    /// Updates the progress.
    pub(crate) fn progress(&mut self, progress: Progress) {
        self.progress = Some(progress);
        self.draw();
    }

    /// Prints a permanent line.
    pub(crate) fn note(&mut self, line: &str) {
        self.clear();
        say(line);
    }

    /// Clears the line for standard output, which either `ends_line` or continues later.
    pub(crate) fn yield_to_output(&mut self, ends_line: bool) {
        self.clear();
        self.is_held = !ends_line;
    }

    /// Clears the line.
    pub(crate) fn clear(&mut self) {
        if self.is_drawn {
            say_in_line(TerminalControl::ClearLine);
            self.is_drawn = false;
        }
    }

    /// Draws the line, unless it is too early or there is no terminal.
    pub(crate) fn draw(&mut self) {
        let is_early = self.since.elapsed() < SPINNER_DELAY;
        if !self.is_terminal || self.is_held || is_early {
            return;
        }
        self.frame = self.frame.wrapping_add(1);
        let canvas = Canvas::errors();
        // A line of full width would wrap.
        let line = canvas.fit(&self.line(), 1);
        let line = canvas.paint(Tone::Dim, &line);
        say_in_line(Printable::from(TerminalControl::ClearLine) + line);
        self.is_drawn = true;
    }

    fn line(&self) -> String {
        let Some(progress) = &self.progress else {
            let spinner = SPINNER.get(self.frame % SPINNER.len()).unwrap_or(&"");
            let seconds = self.since.elapsed().as_secs();
            return format!("{spinner} {} ({seconds} s)", self.text);
        };
        let message = progress.message.as_deref().unwrap_or(&self.text);
        let message = one_line(message);
        match progress.total {
            Some(total) if total > 0.0 && progress.progress.is_finite() => {
                let part = (progress.progress / total).clamp(0.0, 1.0);
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    clippy::cast_precision_loss,
                    reason = "a part of a short bar"
                )]
                let filled = (part * BAR_WIDTH as f64) as usize;
                let (filled, open) = ("#".repeat(filled), "-".repeat(BAR_WIDTH - filled));
                format!("[{filled}{open}] {}/{total} {message}", progress.progress)
            }
            _ => format!("{} {message}", progress.progress),
        }
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(progress: f64, total: Option<f64>, message: Option<&str>) -> String {
        let mut status_line = StatusLine::new("calling");
        status_line.progress = Some(Progress {
            progress,
            total,
            message: message.map(str::to_owned),
        });
        status_line.line()
    }

    #[tokio::test]
    async fn progress_is_a_bar_if_its_end_is_known() {
        assert_eq!(
            shown(1.0, Some(4.0), Some("re\u{1b}ading")),
            "[#####---------------] 1/4 re\\u001bading"
        );
        assert_eq!(shown(3.5, None, None), "3.5 calling");
        // Servers may report progress above the total, or a total of zero.
        assert!(shown(9.0, Some(4.0), None).starts_with("[####################] 9/4"));
        assert_eq!(shown(9.0, Some(0.0), None), "9 calling");
        assert_eq!(shown(f64::NAN, Some(2.0), None), "NaN calling");
    }
}
