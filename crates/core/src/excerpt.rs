//! The beginning and the end of a text of unbounded length.

/// Keeps the head and the newest tail of a text that is given piece by piece, in bounded memory
/// (C57). Up to its limit it keeps all of it.
///
/// ```
/// let mut excerpt = plexus_mcp_core::Excerpt::new(8);
/// for piece in ["head", "... and so on ...", "tail"] {
///     excerpt.push(piece);
/// }
/// assert_eq!(excerpt.into_string(), "head\n[17 bytes omitted]\ntail");
/// ```
#[derive(Debug, Clone)]
pub struct Excerpt {
    /// How many bytes each of head and tail may have.
    half: usize,
    head: String,
    /// The newest text: up to twice `half` bytes, so that it need not be shortened for every piece.
    tail: String,
    /// How many bytes were between the two.
    omitted: u64,
}

impl Excerpt {
    /// An empty text, of which `limit` bytes will be kept.
    pub const fn new(limit: usize) -> Self {
        Self {
            half: limit / 2,
            head: String::new(),
            tail: String::new(),
            omitted: 0,
        }
    }

    /// Appends a piece of the text.
    pub fn push(&mut self, text: &str) {
        let room = self.half - self.head.len();
        let fits = if self.tail.is_empty() && self.omitted == 0 {
            text.floor_char_boundary(room)
        } else {
            0
        };
        let (head, tail) = text.split_at(fits);
        self.head.push_str(head);
        // The part of a long piece that would be cut at once need not be copied.
        let end = tail.ceil_char_boundary(tail.len().saturating_sub(2 * self.half));
        let (skipped, tail) = tail.split_at(end);
        if !skipped.is_empty() {
            self.omit(self.tail.len() + skipped.len());
            self.tail.clear();
        }
        self.tail.push_str(tail);
        if self.tail.len() > 2 * self.half {
            self.cut();
        }
    }

    /// Whether nothing was added yet.
    pub fn is_empty(&self) -> bool {
        self.head.is_empty() && self.tail.is_empty() && self.omitted == 0
    }

    /// The kept text. If a part was left out, a line in its place says how many bytes.
    pub fn into_string(mut self) -> String {
        if self.omitted > 0 || self.tail.len() > self.half {
            self.cut();
        }
        let Self {
            head,
            tail,
            omitted,
            ..
        } = self;
        match omitted {
            0 => head + &tail,
            _ => format!("{head}\n[{omitted} bytes omitted]\n{tail}"),
        }
    }

    /// Shortens the tail to at most `half` bytes.
    fn cut(&mut self) {
        let start = self.tail.len().saturating_sub(self.half);
        let start = self.tail.ceil_char_boundary(start);
        self.tail.drain(..start);
        self.omit(start);
    }

    fn omit(&mut self, bytes: usize) {
        self.omitted += u64::try_from(bytes).unwrap_or(u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_within_the_limit_is_kept_whole() {
        for pieces in [&["ab", "cd", "ef"][..], &["abcdef"], &["a", "bcdef"]] {
            let mut excerpt = Excerpt::new(6);
            assert!(excerpt.is_empty());
            for piece in pieces {
                excerpt.push(piece);
            }
            assert!(!excerpt.is_empty());
            assert_eq!(excerpt.into_string(), "abcdef");
        }
    }

    /// S003-50, C57: head and tail survive, all that is left out is counted, memory stays bounded.
    #[test]
    fn however_it_is_cut_into_pieces() {
        let text: String = ('a'..='z').cycle().take(1000).collect();
        for size in 1..=1000 {
            let mut excerpt = Excerpt::new(20);
            for piece in text.as_bytes().chunks(size) {
                excerpt.push(std::str::from_utf8(piece).unwrap());
                assert!(excerpt.head.len() <= 10 && excerpt.tail.len() <= 20);
            }
            let (head, rest) = text.split_at(10);
            let (_, tail) = rest.split_at(980);
            let expected = format!("{head}\n[980 bytes omitted]\n{tail}");
            assert_eq!(excerpt.into_string(), expected, "pieces of {size}");
        }
    }

    /// C57: no character is cut in two.
    #[test]
    fn characters_stay_whole() {
        for limit in 2..40 {
            let mut excerpt = Excerpt::new(limit);
            for _ in 0..100 {
                excerpt.push("aä€😀");
            }
            let text = excerpt.into_string();
            assert!(text.contains(" bytes omitted]"), "{text}");
        }
    }
}
