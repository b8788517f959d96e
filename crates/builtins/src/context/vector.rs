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

    pub(super) fn components(&self) -> &[i8] {
        &self.components
    }

    /// The Euclidean length.
    pub(super) fn length(&self) -> f32 {
        self.length
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

/// Adds a multiple of one component of many vectors to their dot products. The loop is written so
/// that the compiler vectorises it.
pub(super) fn add_products(dots: &mut [i32], component_of_each: &[u8], factor: i8) {
    let factor = i16::from(factor);
    for (dot, component) in dots.iter_mut().zip(component_of_each) {
        *dot += i32::from(i16::from(component.cast_signed()) * factor);
    }
}

/// The dot product. A product fits an `i16`; the sum fits an `i32` up to 133,000 components.
fn dot(a: &[i8], b: &[i8]) -> i32 {
    let pairs = a.iter().zip(b);
    pairs
        .map(|(&a, &b)| i32::from(i16::from(a) * i16::from(b)))
        .sum()
}

/// The cosine of two vectors: their dot product divided by the product of their lengths.
pub(super) fn quotient(dot: i32, lengths: f32) -> f32 {
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
    fn nan_and_infinity_count_as_zero() {
        let vector = Vector::of(&[f32::NAN, f32::INFINITY, 1.0]);
        assert_eq!(vector, Vector::of(&[0.0, 0.0, 1.0]));
    }

    #[test]
    fn all_at_once_is_the_same_as_one_by_one() {
        let vector = |n: usize| {
            let component = |at: usize| f32::from(u8::try_from((n * 31 + at * 17) % 251).unwrap());
            Vector::of(&[0, 1, 2, 3, 4].map(|at| component(at) - 125.0))
        };
        let all: Vec<Vector> = (0..1_000).map(vector).collect();
        let one = vector(3);
        let mut dots = vec![0; all.len()];
        for (at, &factor) in one.components().iter().enumerate() {
            let column: Vec<u8> = all.iter().map(|it| it.to_bytes()[at]).collect();
            add_products(&mut dots, &column, factor);
        }
        for (dot, vector) in dots.into_iter().zip(&all) {
            let cosine = quotient(dot, vector.length() * one.length());
            assert_eq!(cosine.to_bits(), vector.cosine(&one).to_bits());
        }
    }
}
