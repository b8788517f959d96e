//! Vectors of small integers: an eighth of the memory of doubles, and sums that are exact, so that
//! a ranking never depends on the order of additions.

/// The direction of a text, in components from -127 to 127.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Vector {
    components: Vec<i8>,
    length: f32,
}

impl Vector {
    /// The direction of `components`. What is not a number counts as zero.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the quotient is between -127 and 127"
    )]
    pub(super) fn of(components: &[f32]) -> Self {
        let finite = |&component: &f32| if component.is_finite() { component } else { 0.0 };
        let largest = components
            .iter()
            .map(finite)
            .fold(0.0, |largest: f32, component| largest.max(component.abs()));
        let scale = if largest > 0.0 { 127.0 / largest } else { 0.0 };
        let small = |component| (finite(component) * scale).round() as i8;
        Self::new(components.iter().map(small).collect())
    }

    /// What [`Vector::to_bytes`] wrote.
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        Self::new(bytes.iter().map(|byte| byte.cast_signed()).collect())
    }

    /// For the store.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let components = self.components.iter();
        components.map(|component| component.cast_unsigned()).collect()
    }

    /// The cosine of the angle between both; 0 if one of them has no direction.
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

/// Many vectors side by side, for comparing one with all of them.
#[derive(Debug, Default)]
pub(super) struct Vectors {
    dimensions: usize,
    components: Vec<i8>,
    lengths: Vec<f32>,
}

impl Vectors {
    pub(super) fn new(dimensions: usize) -> Self {
        Self {
            dimensions,
            ..Self::default()
        }
    }

    /// Appends a vector; none, or one of other dimensions, is similar to nothing.
    pub(super) fn push(&mut self, vector: Option<&Vector>) {
        let vector = vector.filter(|vector| vector.components.len() == self.dimensions);
        if let Some(vector) = vector {
            self.components.extend_from_slice(&vector.components);
        }
        self.components
            .resize((self.lengths.len() + 1) * self.dimensions, 0);
        self.lengths.push(vector.map_or(0.0, |vector| vector.length));
    }

    /// The cosine of each vector with `other`, in the order in which they were pushed.
    pub(super) fn cosines<'a>(&'a self, other: &'a Vector) -> impl Iterator<Item = f32> + 'a {
        let rows = self.components.chunks_exact(self.dimensions.max(1));
        rows.zip(&self.lengths).map(|(row, &length)| {
            if length == 0.0 {
                return 0.0;
            }
            quotient(dot(row, &other.components), length * other.length)
        })
    }

    /// The vector that was pushed as number `place`.
    pub(super) fn get(&self, place: usize) -> Option<Vector> {
        let row = self
            .components
            .chunks_exact(self.dimensions.max(1))
            .nth(place)?;
        Some(Vector::new(row.to_vec()))
    }
}

/// In blocks, which the compiler turns into vector instructions. A product fits an `i16`, the sum
/// over any vector that fits memory an `i32`, up to 133,000 components.
fn dot(a: &[i8], b: &[i8]) -> i32 {
    const BLOCK: usize = 64;
    let product = |(&a, &b): (&i8, &i8)| i32::from(i16::from(a) * i16::from(b));
    let (blocks_of_a, rest_of_a) = a.as_chunks::<BLOCK>();
    let (blocks_of_b, rest_of_b) = b.as_chunks::<BLOCK>();
    let blocks = blocks_of_a.iter().zip(blocks_of_b);
    let sum: i32 = blocks
        .map(|(a, b)| a.iter().zip(b).map(product).sum::<i32>())
        .sum();
    sum + rest_of_a.iter().zip(rest_of_b).map(product).sum::<i32>()
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

    /// An embedder may give anything.
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
        let cosines: Vec<f32> = vectors.cosines(&east).collect();
        assert_eq!(cosines, [0.0, 0.0, 1.0]);
        assert_eq!(vectors.get(2), Some(east));
        assert_eq!(vectors.get(3), None);
    }

    #[test]
    fn blocks_and_rest_add_up() {
        let a: Vec<i8> = (0..200).map(|n| i8::try_from(n % 127).unwrap()).collect();
        let expected: i32 = a.iter().map(|&n| i32::from(n) * i32::from(n)).sum();
        assert_eq!(dot(&a, &a), expected);
    }
}
