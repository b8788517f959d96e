//! Vectors quantised to 8-bit integers. They take an eighth of the memory of doubles. Their sums
//! are exact, so a ranking never depends on the order of additions.

/// A vector scaled to components from -127 to 127. Only its direction is meaningful.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Vector {
    components: Vec<i8>,
    length: f32,
}

impl Vector {
    /// Quantises `components`. A component that is not a number becomes zero.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the quotient is between -127 and 127"
    )]
    pub(super) fn of(components: &[f32]) -> Self {
        let finite = |&component: &f32| {
            if component.is_finite() {
                component
            } else {
                0.0
            }
        };
        let largest = components
            .iter()
            .map(finite)
            .fold(0.0, |largest: f32, component| largest.max(component.abs()));
        let scale = if largest > 0.0 { 127.0 / largest } else { 0.0 };
        let small = |component| (finite(component) * scale).round() as i8;
        Self::new(components.iter().map(small).collect())
    }

    /// Reads the bytes that [`Vector::to_bytes`] wrote.
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        Self::new(bytes.iter().map(|byte| byte.cast_signed()).collect())
    }

    /// The components as bytes, for the database.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let components = self.components.iter();
        components
            .map(|component| component.cast_unsigned())
            .collect()
    }

    /// The cosine similarity of two vectors; 0 if one of them is the zero vector.
    pub(super) fn cosine(&self, other: &Self) -> f32 {
        quotient(
            dot(&self.components, &other.components),
            self.length * other.length,
        )
    }

    fn new(components: Vec<i8>) -> Self {
        let length = to_float(dot(&components, &components)).sqrt();
        Self { components, length }
    }
}

/// Many vectors, to compare one vector with all of them.
///
/// They are stored by component: all first components side by side, then all second ones, and so
/// on. The vector of a query has few non-zero components, and only these columns are read.
#[derive(Debug)]
pub(super) struct Vectors {
    components: Vec<Vec<i8>>,
    lengths: Vec<f32>,
}

impl Vectors {
    pub(super) fn new(dimensions: usize) -> Self {
        Self {
            components: vec![Vec::new(); dimensions],
            lengths: Vec::new(),
        }
    }

    /// Appends a vector. `None`, or a vector of other dimensions, is stored as the zero vector.
    pub(super) fn push(&mut self, vector: Option<&Vector>) {
        let vector = vector.filter(|vector| vector.components.len() == self.components.len());
        let components = vector.map_or(&[][..], |vector| &vector.components);
        let padded = components.iter().copied().chain(std::iter::repeat(0));
        for (column, component) in self.components.iter_mut().zip(padded) {
            column.push(component);
        }
        self.lengths
            .push(vector.map_or(0.0, |vector| vector.length));
    }

    /// The cosine similarity of each vector with `other`, in the order in which they were pushed.
    pub(super) fn cosines(&self, other: &Vector) -> Vec<f32> {
        let factors: Vec<(&[i8], i16)> = self
            .components
            .iter()
            .zip(&other.components)
            .filter(|&(_, &factor)| factor != 0)
            .map(|(column, &factor)| (column.as_slice(), i16::from(factor)))
            .collect();
        let mut cosines = Vec::with_capacity(self.lengths.len());
        let mut dots = [0; BLOCK_SIZE];
        for (block, lengths) in self.lengths.chunks(BLOCK_SIZE).enumerate() {
            dots.fill(0);
            for &(column, factor) in &factors {
                let column = column.get(block * BLOCK_SIZE..).unwrap_or_default();
                add_products(&mut dots, column, factor);
            }
            let pairs = dots.iter().zip(lengths);
            cosines.extend(pairs.map(|(&dot, length)| quotient(dot, length * other.length)));
        }
        cosines
    }

    /// The vector in slot `slot`: the number of vectors that were pushed before it.
    pub(super) fn get(&self, slot: usize) -> Option<Vector> {
        let components = self
            .components
            .iter()
            .map(|column| column.get(slot).copied());
        Some(Vector::new(components.collect::<Option<_>>()?))
    }
}

/// The number of sums computed together, so few that they stay in the L1 cache.
const BLOCK_SIZE: usize = 4_096;

/// Adds a multiple of a part of a column. The loop is written so that the compiler vectorises it.
fn add_products(sums: &mut [i32; BLOCK_SIZE], column: &[i8], factor: i16) {
    for (sum, &component) in sums.iter_mut().zip(column) {
        *sum += i32::from(i16::from(component) * factor);
    }
}

/// The dot product. A product fits an `i16`; the sum fits an `i32` up to 133,000 components.
fn dot(a: &[i8], b: &[i8]) -> i32 {
    let pairs = a.iter().zip(b);
    pairs
        .map(|(&a, &b)| i32::from(i16::from(a) * i16::from(b)))
        .sum()
}

fn quotient(dot: i32, lengths: f32) -> f32 {
    if lengths > 0.0 {
        to_float(dot) / lengths
    } else {
        0.0
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a cosine does not need more than 24 bits"
)]
fn to_float(sum: i32) -> f32 {
    sum as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_direction_counts() {
        let vector = Vector::of(&[3.0, -4.0]);
        assert_eq!(vector, Vector::of(&[300.0, -400.0]));
        assert!((vector.cosine(&Vector::of(&[-3.0, 4.0])) + 1.0).abs() < 1e-6);
        assert!(vector.cosine(&Vector::of(&[4.0, 3.0])).abs() < 0.02);
    }

    #[test]
    fn bytes_bring_a_vector_back() {
        let vector = Vector::of(&[1.0, -0.5, 0.25, 0.0]);
        assert_eq!(Vector::from_bytes(&vector.to_bytes()), vector);
    }

    /// A vectorizer may return any number, even NaN.
    #[test]
    fn what_is_no_number_has_no_weight() {
        let vector = Vector::of(&[f32::NAN, f32::INFINITY, 1.0]);
        assert_eq!(vector, Vector::of(&[0.0, 0.0, 1.0]));
    }

    #[test]
    fn vectors_keep_their_places_whatever_is_pushed() {
        let east = Vector::of(&[1.0, 0.0]);
        let mut vectors = Vectors::new(2);
        vectors.push(None);
        vectors.push(Some(&Vector::of(&[1.0, 2.0, 3.0])));
        vectors.push(Some(&east));
        assert_eq!(vectors.cosines(&east), [0.0, 0.0, 1.0]);
        assert_eq!(vectors.get(2), Some(east));
        assert_eq!(vectors.get(3), None);
    }

    #[test]
    fn all_at_once_is_the_same_as_one_by_one() {
        let vector = |n: usize| {
            let component = |at: usize| f32::from(u8::try_from((n * 31 + at * 17) % 251).unwrap());
            Vector::of(&[0, 1, 2, 3, 4].map(|at| component(at) - 125.0))
        };
        let all: Vec<Vector> = (0..2 * BLOCK_SIZE + 7).map(vector).collect();
        let mut vectors = Vectors::new(5);
        for vector in &all {
            vectors.push(Some(vector));
        }
        let one = vector(3);
        let expected: Vec<f32> = all.iter().map(|vector| vector.cosine(&one)).collect();
        assert_eq!(vectors.cosines(&one), expected);
    }
}
