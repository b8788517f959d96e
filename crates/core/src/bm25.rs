//! BM25, the usual ranking function of full-text search, and the splitting of text into words.
//!
//! The hub ranks tools with it, and the built-in memory ranks stored texts.

/// `k1` of BM25: how soon further occurrences of a word stop to raise the score.
const TERM_SATURATION: f32 = 1.2;
/// `b` of BM25: how much the score of a long document is reduced, from 0 (not at all) to 1.
const LENGTH_NORMALISATION: f32 = 0.75;

/// BM25 over a collection of documents.
///
/// The score of a document is the sum of [`Bm25::term_score`] over the words of the query.
#[derive(Debug, Clone, Copy)]
pub struct Bm25 {
    documents: f32,
    /// `k1 · b / average length`.
    length_factor: f32,
}

impl Bm25 {
    /// A collection of so many documents, which have `total_length` words together.
    pub fn new(documents: usize, total_length: u64) -> Self {
        let documents = float(documents);
        let average_length = (float_u64(total_length) / documents.max(1.0)).max(1.0);
        Self {
            documents,
            length_factor: TERM_SATURATION * LENGTH_NORMALISATION / average_length,
        }
    }

    /// The weight of a word that `containing` documents have: its inverse document frequency, times
    /// the constant factor of the formula.
    pub fn term_weight(&self, containing: usize) -> f32 {
        let containing = float(containing);
        let idf = (1.0 + (self.documents - containing + 0.5) / (containing + 0.5)).ln();
        idf * (TERM_SATURATION + 1.0)
    }

    /// The score of one word for a document of `length` words in which it occurs `frequency` times.
    /// `weight` is its [`Bm25::term_weight`].
    pub fn term_score(&self, weight: f32, frequency: f32, length: u32) -> f32 {
        let normalisation =
            TERM_SATURATION * (1.0 - LENGTH_NORMALISATION) + self.length_factor * float_u32(length);
        weight * frequency / (frequency + normalisation)
    }
}

/// The words of a text as they are written: runs of letters and digits.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
}

/// The parts of a word in camel case: `create` and `Issue` of `createIssue`. Any other word is its
/// own only part.
pub fn camel_case_parts(word: &str) -> impl Iterator<Item = &str> {
    let mut after_lowercase = false;
    let mut starts = word.char_indices().filter_map(move |(at, c)| {
        let starts_part = c.is_uppercase() && after_lowercase;
        after_lowercase = c.is_lowercase();
        starts_part.then_some(at)
    });
    let mut next_start = Some(0);
    std::iter::from_fn(move || {
        let start = next_start.take()?;
        next_start = starts.next();
        word.get(start..next_start.unwrap_or(word.len()))
    })
}

#[expect(clippy::cast_precision_loss, reason = "a score needs no more bits")]
fn float(count: usize) -> f32 {
    count as f32
}

#[expect(clippy::cast_precision_loss, reason = "a score needs no more bits")]
fn float_u32(count: u32) -> f32 {
    count as f32
}

#[expect(clippy::cast_precision_loss, reason = "a score needs no more bits")]
fn float_u64(count: u64) -> f32 {
    count as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_words_frequent_words_and_short_documents_score_higher() {
        let bm25 = Bm25::new(10, 100);
        let (rare, common) = (bm25.term_weight(1), bm25.term_weight(9));
        assert!(rare > common && common > 0.0);
        assert!(bm25.term_score(rare, 2.0, 10) > bm25.term_score(rare, 1.0, 10));
        assert!(bm25.term_score(rare, 1.0, 5) > bm25.term_score(rare, 1.0, 50));
    }

    #[test]
    fn an_empty_collection_has_finite_scores() {
        let bm25 = Bm25::new(0, 0);
        assert!(bm25.term_score(bm25.term_weight(0), 1.0, 1).is_finite());
    }

    #[test]
    fn words_are_runs_of_letters_and_digits() {
        let words: Vec<_> = words(" OAuth2 refresh-tokens: Größe, schema_v3!").collect();
        assert_eq!(
            words,
            ["OAuth2", "refresh", "tokens", "Größe", "schema", "v3"]
        );
    }

    #[test]
    fn camel_case_is_split_before_capitals_that_follow_small_letters() {
        let parts = |word| camel_case_parts(word).collect::<Vec<_>>();
        assert_eq!(parts("createIssue"), ["create", "Issue"]);
        assert_eq!(parts("parseÄnderungNow"), ["parse", "Änderung", "Now"]);
        assert_eq!(parts("HTTPServer"), ["HTTPServer"]);
        assert_eq!(parts("plain"), ["plain"]);
    }
}
