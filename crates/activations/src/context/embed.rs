//! Texts as vectors.

use std::fmt;
use std::future::ready;
use std::num::NonZeroUsize;

use plexus_service::Boxed;

use super::text::for_each_word;

/// More bytes than this take long enough to get in the way of other tasks.
const LARGE: usize = 64 * 1024;

/// Turns texts into vectors that point in similar directions for similar texts.
///
/// [`Trigrams`] needs nothing and is the default. A provider of learned embeddings implements this
/// trait, over HTTP or in process, and is handed to [`Graph::open`](super::Graph::open):
/// everything else stays as it is. Vectors are kept with the [`name`](Embedder::name) of what made
/// them, and those of another embedder are made anew when the graph is opened.
pub trait Embedder: fmt::Debug + Send + Sync + 'static {
    /// What it is called, its version included: vectors are compared only with vectors of the same
    /// name.
    fn name(&self) -> &str;

    /// How many components each of its vectors has.
    fn dimensions(&self) -> NonZeroUsize;

    /// The cosine below which two texts have nothing in common.
    fn threshold(&self) -> f32;

    /// The vectors of `texts`, one for each, of any length. A text without meaning, such as an
    /// empty one, has the zero vector, which is similar to nothing.
    ///
    /// A failure costs nothing but this scorer: texts are stored without a vector, and embedded
    /// when the graph is opened again; queries are answered by the other scorers.
    fn embed(&self, texts: Vec<String>) -> Boxed<Result<Vec<Vec<f32>>, EmbedError>>;
}

/// Why there are no vectors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot embed: {0}")]
pub struct EmbedError(String);

impl EmbedError {
    /// For this reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// Counts the groups of three letters in the words of a text. Texts are similar if they are spelled
/// alike, so that slips of the pen and inflections are forgiven.
///
/// The same text has the same vector on every machine, without a model or a network.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Trigrams;

impl Trigrams {
    /// Few enough to compare a query with 100,000 nodes in a few milliseconds, enough that groups
    /// which share a component by accident stay below the threshold.
    const DIMENSIONS: NonZeroUsize = NonZeroUsize::new(512).unwrap();

    fn vector(text: &str) -> Vec<f32> {
        let mut counts = vec![0.0_f32; Self::DIMENSIONS.get()];
        for_each_word(text, |word| {
            let mut group = ['\0', '\0', ' '];
            for c in word.chars().chain([' ']) {
                group = [group[1], group[2], c];
                if group[0] != '\0' {
                    count(&mut counts, group);
                }
            }
            // A word of one letter makes no other group.
            if word.chars().nth(1).is_none() {
                count(&mut counts, [' ', group[1], ' ']);
            }
        });
        // A group that is everywhere in a text must not drown the others.
        for count in &mut counts {
            *count = count.signum() * count.abs().sqrt();
        }
        counts
    }
}

impl Embedder for Trigrams {
    fn name(&self) -> &'static str {
        "trigrams-512-v1"
    }

    fn dimensions(&self) -> NonZeroUsize {
        Self::DIMENSIONS
    }

    fn threshold(&self) -> f32 {
        0.2
    }

    fn embed(&self, texts: Vec<String>) -> Boxed<Result<Vec<Vec<f32>>, EmbedError>> {
        let is_large = texts.iter().map(String::len).sum::<usize>() > LARGE;
        let vectors = move || texts.iter().map(|text| Self::vector(text)).collect();
        if is_large {
            Box::pin(async {
                let vectors = tokio::task::spawn_blocking(vectors).await;
                vectors.map_err(|error| EmbedError::new(error.to_string()))
            })
        } else {
            Box::pin(ready(Ok(vectors())))
        }
    }
}

/// Adds a group where its hash says, with the sign that its hash says: groups that meet in one
/// component cancel out on average.
fn count(counts: &mut [f32], group: [char; 3]) {
    // FNV-1a, and a finish that spreads what it found over all bits.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for c in group {
        hash = (hash ^ u64::from(u32::from(c))).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^= hash >> 32;
    let places = counts.len() as u64;
    let place = usize::try_from((hash >> 1) % places).unwrap_or_default();
    if let Some(count) = counts.get_mut(place) {
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

    /// §3.1: the same input gives the same output.
    #[test]
    fn the_same_text_has_the_same_vector() {
        let text = "Refresh tokens rotate on every use";
        assert_eq!(Trigrams::vector(text), Trigrams::vector(text));
        assert!((cosine(text, text) - 1.0).abs() < 1e-6);
    }

    /// §3.1: an empty text is not an error, and similar to nothing.
    #[test]
    fn an_empty_text_has_the_zero_vector() {
        assert!(Trigrams::vector("").iter().all(|&count| count == 0.0));
        assert!(cosine("", "anything").abs() < f32::EPSILON);
        assert!(cosine("", "").abs() < f32::EPSILON);
    }

    #[test]
    fn what_is_spelled_alike_is_similar() {
        let threshold = Trigrams.threshold();
        assert!(cosine("authentication", "authenticate users") > threshold);
        assert!(cosine("databse migraton", "database migrations") > threshold);
        assert!(cosine("database migrations", "the weather in Paris") < threshold);
        assert!(cosine("x", "X y") > threshold);
    }
}
