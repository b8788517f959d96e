//! A figure at growing sizes, and how fast it grows.

/// What a figure is the cost of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cost {
    /// Of everything, or of one operation among so many things: it may grow with the size.
    Whole,
    /// Of each of so many things: it may not grow.
    Each,
    /// A rate of each thing: it may not fall.
    Rate,
}

/// A figure at growing sizes.
#[derive(Debug, Clone)]
pub(super) struct Series {
    pub(super) name: &'static str,
    /// What there is so much of: "tools".
    pub(super) size: &'static str,
    /// The unit of the figure: "µs".
    pub(super) unit: &'static str,
    pub(super) cost: Cost,
    /// The noise floor: smaller figures are compared as if they were this large, so that noise does
    /// not look like growth.
    pub(super) noise: f64,
    pub(super) steps: Vec<Step>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) size: u32,
    pub(super) figure: f64,
}

/// The growth exponent above which the whole series is worse than linear. 1 is linear; the rest
/// allows for caches that are exceeded and for noise.
const MAX_EXPONENT: f64 = 1.2;

/// The same for one step, of which the noise is larger.
const MAX_STEP_EXPONENT: f64 = 1.6;

impl Series {
    pub(super) fn new(
        name: &'static str,
        size: &'static str,
        unit: &'static str,
        cost: Cost,
        noise: f64,
    ) -> Self {
        Self {
            name,
            size,
            unit,
            cost,
            noise,
            steps: Vec::new(),
        }
    }

    /// Adds a figure, and prints it.
    pub(super) fn add(&mut self, size: u32, figure: f64) {
        let Self {
            name,
            size: of,
            unit,
            ..
        } = self;
        let line = format!("{name}: {size} {of}: {figure:.2} {unit}");
        super::progress(&line);
        self.steps.push(Step { size, figure });
    }

    /// The figure at a size, if it was measured.
    pub(super) fn at(&self, size: u32) -> Option<f64> {
        let step = self.steps.iter().find(|step| step.size == size)?;
        Some(step.figure)
    }

    /// The growth exponent of the total cost between two steps: with exponent x, a hundred times the
    /// size costs 100^x as much. `None` if both figures are noise.
    pub(super) fn exponent(&self, from: Step, to: Step) -> Option<f64> {
        if (self.is_noise(from) && self.is_noise(to)) || from.size == 0 {
            return None;
        }
        // One figure may be noise: a cost that jumps out of the noise is a cliff as well.
        let growth = to.figure.max(self.noise) / from.figure.max(self.noise);
        let slope = growth.ln() / (f64::from(to.size) / f64::from(from.size)).ln();
        Some(match self.cost {
            Cost::Whole => slope,
            Cost::Each => 1.0 + slope,
            Cost::Rate => 1.0 - slope,
        })
    }

    /// A step with the exponent from the step before it.
    pub(super) fn steps(&self) -> impl Iterator<Item = (Step, Option<f64>)> {
        let before = std::iter::once(None).chain(self.steps.iter().map(Some));
        before.zip(&self.steps).map(|(before, &step)| {
            let exponent = before.and_then(|&before| self.exponent(before, step));
            (step, exponent)
        })
    }

    /// The exponent from the first figure that is no noise to the last figure.
    pub(super) fn overall(&self) -> Option<f64> {
        let first = self
            .steps
            .iter()
            .find(|&&step| step.size > 0 && !self.is_noise(step));
        let (first, last) = (first?, self.steps.last()?);
        (first.size < last.size).then(|| self.exponent(*first, *last))?
    }

    /// Why the series is worse than linear, if it is.
    pub(super) fn failure(&self) -> Option<String> {
        let name = self.name;
        if let Some(exponent) = self.overall().filter(|&exponent| exponent > MAX_EXPONENT) {
            return Some(format!("{name}: grows with exponent {exponent:.2}"));
        }
        let mut steps = self.steps();
        let (step, exponent) = steps.find_map(|(step, exponent)| {
            let exponent = exponent.filter(|&exponent| exponent > MAX_STEP_EXPONENT)?;
            Some((step, exponent))
        })?;
        let (size, of) = (step.size, self.size);
        Some(format!(
            "{name}: grows with exponent {exponent:.2} up to {size} {of}"
        ))
    }

    fn is_noise(&self, step: Step) -> bool {
        step.figure <= self.noise
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(cost: Cost, figures: &[(u32, f64)]) -> Series {
        let mut series = Series::new("lists", "tools", "µs", cost, 1.0);
        for &(size, figure) in figures {
            series.add(size, figure);
        }
        series
    }

    #[test]
    fn linear_growth_has_exponent_one() {
        let whole = series(Cost::Whole, &[(10, 20.0), (100, 200.0), (1000, 2000.0)]);
        assert!((whole.overall().unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(whole.failure(), None);
        let each = series(Cost::Each, &[(10, 20.0), (100, 20.0)]);
        assert!((each.overall().unwrap() - 1.0).abs() < 1e-9);
        let rate = series(Cost::Rate, &[(10, 20.0), (100, 20.0)]);
        assert!((rate.overall().unwrap() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn quadratic_growth_fails() {
        let whole = series(Cost::Whole, &[(10, 20.0), (100, 2000.0)]);
        assert_eq!(whole.failure().unwrap(), "lists: grows with exponent 2.00");
        assert!(
            series(Cost::Each, &[(10, 20.0), (100, 200.0)])
                .failure()
                .is_some()
        );
        assert!(
            series(Cost::Rate, &[(10, 20.0), (100, 2.0)])
                .failure()
                .is_some()
        );
    }

    #[test]
    fn a_cliff_at_the_end_fails() {
        let cliff = series(
            Cost::Whole,
            &[(1, 10.0), (10, 10.0), (100, 10.0), (1000, 10_000.0)],
        );
        assert!(cliff.overall().unwrap() < MAX_EXPONENT);
        assert!(cliff.failure().unwrap().ends_with("up to 1000 tools"));
    }

    #[test]
    fn a_cliff_out_of_the_noise_fails() {
        let cliff = series(Cost::Whole, &[(10, 0.2), (100, 0.3), (1000, 10_000.0)]);
        assert!(cliff.failure().unwrap().ends_with("up to 1000 tools"));
        let each = series(Cost::Each, &[(100, 0.3), (1000, 10.0)]);
        assert!(each.failure().unwrap().ends_with("up to 1000 tools"));
    }

    #[test]
    fn noise_does_not_fail() {
        let quiet = series(
            Cost::Whole,
            &[(1, 0.001), (10, 0.9), (100, 2.0), (1000, 20.0)],
        );
        assert_eq!(quiet.failure(), None);
        let exponents: Vec<_> = quiet.steps().map(|(_, exponent)| exponent).collect();
        assert_eq!(exponents[..2], [None, None]);
        // From the noise floor, 1, to 2, and not from 0.9.
        assert!((exponents[2].unwrap() - 2_f64.log10()).abs() < 1e-9);
        assert!((exponents[3].unwrap() - 1.0).abs() < 1e-9);
    }
}
