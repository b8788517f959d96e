//! Trigram similarity: texts as vectors of trigram counts, compared by cosine.

use std::fmt;
use std::future::ready;
use std::num::NonZeroUsize;

use plexus_mcp_core::Boxed;

use super::text::for_each_word;

/// Texts with more bytes than this are vectorized on a blocking thread, so as not to block the
/// async runtime.
const MAX_INLINE_BYTES: usize = 64 * 1024;

/// Makes vectors of texts. Similar texts get vectors with a high cosine similarity.
///
/// [`Trigrams`] is the default and needs no model. A provider of learned embeddings can implement
/// this trait, over HTTP or in process; pass it to [`Graph::open`](super::Graph::open). Vectors are
/// stored with the [`name`](Vectorizer::name) of their vectorizer, and made again if the graph is
/// opened with another vectorizer.
pub trait Vectorizer: fmt::Debug + Send + Sync + 'static {
    /// The name and version. Only vectors of the same name are compared.
    fn name(&self) -> &str;

    /// The number of components of each vector.
    fn dimensions(&self) -> NonZeroUsize;

    /// The cosine similarity below which two texts count as not similar.
    fn threshold(&self) -> f32;

    /// The vectors of `texts`, one for each, of any length. A text without words has the zero
    /// vector, which is similar to nothing.
    ///
    /// After a failure, texts are stored without a vector and get one when the graph is opened
    /// again; queries are answered by the other scorers.
    fn vectorize(&self, texts: Vec<String>) -> Boxed<Result<Vec<Vec<f32>>, VectorizeError>>;
}

/// A vectorizer failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot make vectors: {0}")]
pub struct VectorizeError(String);

impl VectorizeError {
    /// Makes an error with this reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// Counts the trigrams (groups of three letters) in the words of a text, hashed to a fixed number of
/// components. Texts are similar if their words are spelled alike, so typing errors and inflections
/// are tolerated. Meaning is not considered.
///
/// The same text has the same vector on every machine, without a model or a network.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Trigrams;

impl Trigrams {
    /// The number of components. It is small enough to compare a query with 100,000 nodes in a few
    /// milliseconds, and large enough that hash collisions alone do not reach the threshold.
    const DIMENSIONS: NonZeroUsize = NonZeroUsize::new(512).unwrap();

    fn vector(text: &str) -> Vec<f32> {
        let mut counts = vec![0.0_f32; Self::DIMENSIONS.get()];
        for_each_word(text, |word| {
            let mut trigram = ['\0', '\0', ' '];
            for c in word.chars().chain([' ']) {
                trigram = [trigram[1], trigram[2], c];
                if trigram[0] != '\0' {
                    count(&mut counts, trigram);
                }
            }
            // A word of one letter has no trigram: count it between spaces.
            if word.chars().nth(1).is_none() {
                count(&mut counts, [' ', trigram[1], ' ']);
            }
        });
        // The square root limits the weight of trigrams that occur often in one text.
        for count in &mut counts {
            *count = count.signum() * count.abs().sqrt();
        }
        counts
    }
}

impl Vectorizer for Trigrams {
    fn name(&self) -> &'static str {
        "trigrams-512-v1"
    }

    fn dimensions(&self) -> NonZeroUsize {
        Self::DIMENSIONS
    }

    fn threshold(&self) -> f32 {
        0.2
    }

    fn vectorize(&self, texts: Vec<String>) -> Boxed<Result<Vec<Vec<f32>>, VectorizeError>> {
        let is_large = texts.iter().map(String::len).sum::<usize>() > MAX_INLINE_BYTES;
        let vectors = move || texts.iter().map(|text| Self::vector(text)).collect();
        if is_large {
            Box::pin(async {
                let vectors = tokio::task::spawn_blocking(vectors).await;
                vectors.map_err(|error| VectorizeError::new(error.to_string()))
            })
        } else {
            Box::pin(ready(Ok(vectors())))
        }
    }
}

/// Feature hashing: the hash of a trigram selects the component and the sign, so that collisions
/// cancel out on average.
fn count(counts: &mut [f32], trigram: [char; 3]) {
    // FNV-1a, and a finaliser that mixes all bits.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for c in trigram {
        hash = (hash ^ u64::from(u32::from(c))).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^= hash >> 32;
    let components = counts.len() as u64;
    let component = usize::try_from((hash >> 1) % components).unwrap_or_default();
    if let Some(count) = counts.get_mut(component) {
        *count += if hash & 1 == 0 { 1.0 } else { -1.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::super::vector::Vector;
    use super::*;

    fn cosine(a: &str, b: &str) -> f32 {
        let vector = |text| Vector::of(&Trigrams::vector(text));
        vector(a).cosine(&vector(b))
    }

    /// The same input gives the same output.
    #[test]
    fn the_same_text_has_the_same_vector() {
        let text = "Refresh tokens rotate on every use";
        assert_eq!(Trigrams::vector(text), Trigrams::vector(text));
        assert!((cosine(text, text) - 1.0).abs() < 1e-6);
    }

    /// An empty text is not an error, and similar to nothing.
    #[test]
    fn an_empty_text_has_the_zero_vector() {
        assert!(Trigrams::vector("").iter().all(|&count| count == 0.0));
        assert!(cosine("", "anything").abs() < f32::EPSILON);
        assert!(cosine("", "").abs() < f32::EPSILON);
    }

    #[test]
    fn similar_spellings_have_a_high_cosine() {
        let threshold = Trigrams.threshold();
        assert!(cosine("authentication", "authenticate users") > threshold);
        assert!(cosine("databse migraton", "database migrations") > threshold);
        assert!(cosine("database migrations", "the weather in Paris") < threshold);
        assert!(cosine("x", "X y") > threshold);
    }
}
