//! Text blocks that a result gets in addition to its answer (C16).

/// The most text that is kept of each kind.
const MAX_KEPT_BYTES: usize = 64 * 1024;

/// Lines about tool uses, and errors from which the call recovered.
#[derive(Debug, Default)]
pub(super) struct Asides {
    pub(super) tools: Lines,
    pub(super) errors: Lines,
}

impl Asides {
    /// One block for each kind that is not empty: tools first, then errors.
    pub(super) fn into_blocks(self) -> Vec<String> {
        let blocks = [self.tools.into_text(), self.errors.into_text()];
        blocks.into_iter().flatten().collect()
    }
}

/// Lines of which the first are kept and the others counted, so that the memory of a long call is
/// bounded (C57).
#[derive(Debug, Default)]
pub(super) struct Lines {
    text: String,
    omitted: u64,
}

impl Lines {
    pub(super) fn add(&mut self, line: &str) {
        if self.omitted > 0 || self.text.len() + line.len() >= MAX_KEPT_BYTES {
            self.omitted += 1;
        } else {
            self.push(line);
        }
    }

    fn push(&mut self, line: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(line);
    }

    fn into_text(mut self) -> Option<String> {
        if self.omitted > 0 {
            self.push(&format!("[{} more omitted]", self.omitted));
        }
        (!self.text.is_empty()).then_some(self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C57: the kept text is bounded; further lines are counted, not kept.
    #[test]
    fn lines_without_end_are_counted() {
        let mut lines = Lines::default();
        for _ in 0..1_000_000 {
            lines.add("[Tool: search] {}");
        }
        assert!(lines.text.len() <= MAX_KEPT_BYTES);
        let kept = lines.text.lines().count();
        let text = lines.into_text().unwrap();
        let last = format!("[{} more omitted]", 1_000_000 - kept);
        assert_eq!(text.lines().last(), Some(last.as_str()));
        assert_eq!(Lines::default().into_text(), None);
    }
}
