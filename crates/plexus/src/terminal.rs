//! Terminal output: width and colours.

use std::io::{self, IsTerminal};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::printable::{Printable, one_line, visible};
use crate::process_env::environment;

/// Output that is not a terminal is not cut.
const UNLIMITED_WIDTH: usize = usize::MAX;
/// Narrower terminals are treated as this wide.
const MIN_WIDTH: usize = 20;

/// An output: its width, and whether it has colours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Canvas {
    width: usize,
    height: usize,
    colours: bool,
}

/// The style of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Bold,
    Dim,
    Good,
    Warning,
    Bad,
}

/// A cell of a table.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    tone: Tone,
}

impl Canvas {
    /// Standard output.
    pub(crate) fn output() -> Self {
        let stdout = io::stdout();
        let size = terminal_size::terminal_size_of(&stdout);
        Self::new(stdout.is_terminal(), size)
    }

    /// Standard error.
    pub(crate) fn errors() -> Self {
        let stderr = io::stderr();
        let size = terminal_size::terminal_size_of(&stderr);
        Self::new(stderr.is_terminal(), size)
    }

    fn new(is_terminal: bool, size: Option<(terminal_size::Width, terminal_size::Height)>) -> Self {
        // https://no-color.org: any value that is not empty disables colours.
        let refused = environment("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dumb = environment("TERM").is_some_and(|term| term == "dumb");
        let width = match size {
            Some((width, _)) if is_terminal => usize::from(width.0).max(MIN_WIDTH),
            _ => UNLIMITED_WIDTH,
        };
        let height = match size {
            Some((_, height)) if is_terminal => usize::from(height.0),
            _ => usize::MAX,
        };
        Self {
            width,
            height,
            colours: is_terminal && !refused && !is_dumb,
        }
    }

    /// How many lines it shows at once.
    pub(crate) fn height(self) -> usize {
        self.height
    }

    /// The text in a style, if the output has colours.
    pub(crate) fn paint(self, tone: Tone, text: impl Into<Printable>) -> Printable {
        let text = text.into();
        let code = match tone {
            Tone::Bold => 1,
            Tone::Dim => 2,
            Tone::Good => 32,
            Tone::Warning => 33,
            Tone::Bad => 31,
            Tone::Plain => return text,
        };
        if self.colours {
            text.styled(code)
        } else {
            text
        }
    }

    /// The text, cut to fit into a line beside `taken` columns.
    pub(crate) fn fit(self, text: &str, taken: usize) -> String {
        fit(&one_line(text), self.width.saturating_sub(taken))
    }

    /// The text, wrapped between words. All lines but the first are indented by `indent` spaces,
    /// where the first begins.
    pub(crate) fn wrap(self, text: &str, indent: usize) -> String {
        // The width of what is printed counts.
        let text = visible(text);
        let mut wrapped = String::new();
        let mut column = indent;
        for (number, line) in text.split('\n').enumerate() {
            if number > 0 {
                wrapped.push('\n');
                wrapped.extend(std::iter::repeat_n(' ', indent));
                column = indent;
            }
            for (number, word) in line.split(' ').enumerate() {
                let width = word.width();
                if number > 0 && column + 1 + width > self.width {
                    wrapped.push('\n');
                    wrapped.extend(std::iter::repeat_n(' ', indent));
                    column = indent;
                } else if number > 0 {
                    wrapped.push(' ');
                    column += 1;
                }
                wrapped.push_str(word);
                column = column.saturating_add(width);
            }
        }
        wrapped
    }

    /// Aligned columns, two spaces apart, one line for each row. The last column takes the rest of
    /// the line.
    pub(crate) fn table(self, rows: &[Vec<Cell>]) -> Printable {
        let mut widths: Vec<usize> = Vec::new();
        for row in rows {
            for (column, cell) in row.iter().enumerate() {
                let width = cell.text.width();
                match widths.get_mut(column) {
                    Some(widest) => *widest = width.max(*widest),
                    None => widths.push(width),
                }
            }
        }
        rows.iter().map(|row| self.row(row, &widths)).collect()
    }

    fn row(self, row: &[Cell], widths: &[usize]) -> Printable {
        let mut line = Printable::default();
        let mut taken = 0;
        // Nothing is printed behind the last text.
        let last = row.iter().rposition(|cell| !cell.text.is_empty());
        let row = row.get(..=last.unwrap_or_default()).unwrap_or(row);
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            let is_last = column + 1 == row.len();
            let text = self.fit(&cell.text, taken);
            let padding = if is_last {
                0
            } else {
                width + 2 - cell.text.width()
            };
            taken += text.width() + padding;
            line = line + self.paint(cell.tone, text) + " ".repeat(padding);
        }
        line + "\n"
    }
}

impl Cell {
    /// A cell with `text` on one line.
    pub(crate) fn new(tone: Tone, text: impl AsRef<str>) -> Self {
        Self {
            text: one_line(text.as_ref()),
            tone,
        }
    }

    pub(crate) fn plain(text: impl AsRef<str>) -> Self {
        Self::new(Tone::Plain, text)
    }
}

/// The text, cut to `width` columns.
fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut taken = 1;
    let fits = |c: &char| {
        taken += c.width().unwrap_or(0);
        taken <= width
    };
    let mut cut: String = text.chars().take_while(fits).collect();
    if width > 0 {
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canvas(width: usize, colours: bool) -> Canvas {
        let height = usize::MAX;
        Canvas {
            width,
            height,
            colours,
        }
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(fit("short", 5), "short");
        assert_eq!(fit("longer", 5), "long…");
        // Each of these takes two columns.
        assert_eq!(fit("日本語", 5), "日本…");
        assert_eq!(fit("日本語", 4), "日…");
        assert_eq!(fit("text", 0), "");
    }

    #[test]
    fn lines_are_broken_between_words() {
        let canvas = canvas(14, false);
        assert_eq!(
            canvas.wrap("some words here\nend", 4),
            "some words\n    here\n    end"
        );
        assert_eq!(
            canvas.wrap("unbreakable-word x", 4),
            "unbreakable-word\n    x"
        );
        let endless = Canvas {
            width: UNLIMITED_WIDTH,
            ..canvas
        };
        assert_eq!(endless.wrap("some words here", 4), "some words here");
    }

    #[test]
    fn columns_are_aligned_and_the_last_is_cut() {
        let row =
            |first: &str, second: &str| vec![Cell::new(Tone::Good, first), Cell::plain(second)];
        let rows = [row("日本", "one"), row("x", "a long description")];
        assert_eq!(
            canvas(12, false).table(&rows).as_str(),
            "日本  one\nx     a lon…\n"
        );
        assert_eq!(
            canvas(12, true).table(&rows[..1]).as_str(),
            "\u{1b}[32m日本\u{1b}[0m  one\n"
        );
    }
}
