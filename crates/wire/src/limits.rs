use crate::scan::after_string;

/// Limits of what a decoder accepts.
///
/// They are checked before anything is allocated for a message, so a hostile one costs one scan.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The longest message, in bytes.
    pub max_bytes: usize,
    /// How deep arrays and objects may nest; `{}` is one level.
    pub max_depth: usize,
    /// The most elements of a batch.
    pub max_batch: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_bytes: 1024 * 1024,
            max_depth: 128,
            max_batch: 100,
        }
    }
}

impl Limits {
    /// Whether arrays and objects nest deeper than allowed.
    ///
    /// `serde_json` captures a raw value iteratively and without a depth limit, but decoding the
    /// captured value recurses. The text need not be valid JSON.
    pub(crate) fn is_too_deep(&self, text: &[u8]) -> bool {
        let mut depth = 0_usize;
        let mut rest = text;
        while let Some((&byte, tail)) = rest.split_first() {
            rest = tail;
            match byte {
                b'"' => rest = after_string(rest),
                b'{' | b'[' => {
                    depth += 1;
                    if depth > self.max_depth {
                        return true;
                    }
                }
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::Limits;

    fn too_deep(text: &str, max_depth: usize) -> bool {
        let limits = Limits {
            max_depth,
            ..Limits::default()
        };
        limits.is_too_deep(text.as_bytes())
    }

    #[test]
    fn depth_counts_open_containers() {
        assert!(!too_deep("[{}]", 2));
        assert!(too_deep("[{}]", 1));
        assert!(!too_deep("[[],[],[]]", 2));
        assert!(!too_deep("1", 0));
    }

    #[test]
    fn brackets_inside_strings_do_not_count() {
        assert!(!too_deep(r#"["[[[[","\"[[[[","\\"]"#, 1));
        assert!(too_deep(r#"["\\",[]]"#, 1));
    }

    #[test]
    fn invalid_text_is_scanned_to_its_end() {
        assert!(!too_deep(r#"]]]]""#, 1));
        assert!(!too_deep(r#""\"#, 1));
        assert!(too_deep("]]][[", 1));
    }
}
