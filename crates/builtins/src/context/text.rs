//! The words of stored texts and of queries, without stop words.

use plexus_mcp_core::bm25;

/// The maximum length of a word, in bytes. Longer words are cut: they are data rather than language.
const MAX_WORD_BYTES: usize = 64;

/// Stop words: so common that they do not distinguish texts. Sorted, for binary search.
const STOP_WORDS: &[&str] = &[
    "a",
    "about",
    "after",
    "all",
    "also",
    "am",
    "an",
    "and",
    "any",
    "are",
    "as",
    "at",
    "be",
    "been",
    "before",
    "but",
    "by",
    "can",
    "could",
    "did",
    "do",
    "does",
    "everything",
    "for",
    "from",
    "get",
    "had",
    "has",
    "have",
    "he",
    "her",
    "him",
    "his",
    "how",
    "i",
    "if",
    "in",
    "into",
    "is",
    "it",
    "its",
    "just",
    "me",
    "more",
    "my",
    "no",
    "not",
    "of",
    "on",
    "or",
    "our",
    "out",
    "she",
    "should",
    "so",
    "some",
    "something",
    "than",
    "that",
    "the",
    "their",
    "them",
    "then",
    "there",
    "these",
    "they",
    "thing",
    "things",
    "this",
    "those",
    "to",
    "too",
    "up",
    "us",
    "was",
    "we",
    "were",
    "what",
    "when",
    "where",
    "which",
    "who",
    "why",
    "will",
    "with",
    "would",
    "you",
    "your",
];

/// Calls `each` with every word of `text` that is not a stop word, in lower case and in order.
///
/// A word is a run of letters and digits. Names in camel case count as a whole and in parts, so
/// that `queryContext` is found by "query" as well.
pub(super) fn for_each_word(text: &str, mut each: impl FnMut(&str)) {
    let mut lowered = String::new();
    for word in bm25::words(text) {
        let parts = bm25::camel_case_parts(word);
        for part in parts.filter(|part| part.len() < word.len()) {
            lower(part, &mut lowered, &mut each);
        }
        lower(word, &mut lowered, &mut each);
    }
}

/// The distinct words of a query, sorted, so that scores do not depend on the order of the words:
/// floating-point addition is not associative.
pub(super) fn distinct_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for_each_word(text, |word| words.push(word.to_owned()));
    words.sort_unstable();
    words.dedup();
    words
}

fn lower(word: &str, lowered: &mut String, each: &mut impl FnMut(&str)) {
    lowered.clear();
    for c in word.chars().flat_map(char::to_lowercase) {
        if lowered.len() + c.len_utf8() > MAX_WORD_BYTES {
            break;
        }
        lowered.push(c);
    }
    if STOP_WORDS.binary_search(&lowered.as_str()).is_err() {
        each(lowered);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        for_each_word(text, |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn the_list_of_stop_words_can_be_searched() {
        assert!(STOP_WORDS.is_sorted());
    }

    #[test]
    fn words_are_runs_of_letters_and_digits_in_lower_case() {
        assert_eq!(
            words("OAuth2 refresh-tokens: Größe, schema_v3!"),
            ["oauth2", "refresh", "tokens", "größe", "schema", "v3"]
        );
        assert_eq!(words("記憶 と"), ["記憶", "と"]);
    }

    #[test]
    fn names_in_camel_case_count_whole_and_in_parts() {
        assert_eq!(
            words("queryContext HTTPServer parseÄnderung"),
            [
                "query",
                "context",
                "querycontext",
                "httpserver",
                "parse",
                "änderung",
                "parseänderung"
            ]
        );
    }

    /// S000-23: a query of stop words and punctuation has no words.
    #[test]
    fn common_words_and_punctuation_are_no_words() {
        for text in ["", "   ", "*", "what is the thing?", "…!?\u{0}"] {
            assert!(words(text).is_empty(), "{text:?}");
        }
    }

    #[test]
    fn endless_words_are_cut() {
        let word = "ä".repeat(1_000_000);
        assert_eq!(words(&word), ["ä".repeat(32)]);
    }

    #[test]
    fn a_querys_words_are_distinct_and_sorted() {
        assert_eq!(distinct_words("token auth Token AUTH"), ["auth", "token"]);
    }
}
