//! Line plots with logarithmic axes, on which linear growth is a diagonal.

use std::fmt::Write as _;

use super::series::{Series, Step};

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 40.0;
const COLUMNS: usize = 2;

/// All series as one SVG document, a plot for each.
pub(super) fn draw(series: &[Series]) -> String {
    let plots: Vec<&Series> = series.iter().filter(|it| it.steps.len() > 1).collect();
    let mut body = String::new();
    for (number, series) in plots.iter().enumerate() {
        let column = float(number % COLUMNS);
        let row = float(number / COLUMNS);
        let (x, y) = (column * WIDTH, row * HEIGHT);
        push(
            &mut body,
            &format!(r#"<g transform="translate({x:.0} {y:.0})">"#),
        );
        plot(&mut body, series);
        push(&mut body, "</g>");
    }
    let width = float(COLUMNS) * WIDTH;
    let height = float(plots.len().div_ceil(COLUMNS)) * HEIGHT;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{body}</svg>\n"
    )
}

fn plot(body: &mut String, series: &Series) {
    let sizes = Axis::new(series.steps.iter().map(|step| f64::from(step.size.max(1))));
    let figures = Axis::new(series.steps.iter().map(|step| step.figure));
    let place = |step: &Step| {
        let x = LEFT + sizes.part(f64::from(step.size.max(1))) * (WIDTH - LEFT - RIGHT);
        let y = HEIGHT - BOTTOM - figures.part(step.figure) * (HEIGHT - TOP - BOTTOM);
        (x, y)
    };
    let title = format!("{} ({})", series.name, series.unit);
    text(body, LEFT, 22.0, "start", &title);
    for decade in figures.decades() {
        let (_, y) = place(&Step {
            size: 1,
            figure: decade,
        });
        let right = WIDTH - RIGHT;
        line(body, &format!("M{LEFT:.0} {y:.1}H{right:.0}"), "#e3e6ea", 1);
        text(body, LEFT - 6.0, y + 4.0, "end", &number(decade));
    }
    let bottom = HEIGHT - BOTTOM;
    line(
        body,
        &format!("M{LEFT:.0} {TOP:.0}V{bottom:.0}H{:.0}", WIDTH - RIGHT),
        "#8a8f98",
        1,
    );
    let mut path = String::new();
    for (at, step) in series.steps.iter().enumerate() {
        let (x, y) = place(step);
        let command = if at == 0 { 'M' } else { 'L' };
        // Writing to a string cannot fail.
        write!(path, "{command}{x:.1} {y:.1}").unwrap_or_default();
        push(
            body,
            &format!(r##"<circle cx="{x:.1}" cy="{y:.1}" r="3" fill="#1f6feb"/>"##),
        );
        text(
            body,
            x,
            HEIGHT - 22.0,
            "middle",
            &number(f64::from(step.size)),
        );
    }
    line(body, &path, "#1f6feb", 2);
    text(body, WIDTH / 2.0, HEIGHT - 6.0, "middle", series.size);
}

/// A logarithmic axis.
struct Axis {
    min: f64,
    max: f64,
}

impl Axis {
    /// An axis of whole decades around these values.
    fn new(values: impl Iterator<Item = f64> + Clone) -> Self {
        let logs = values.filter(|&value| value > 0.0).map(f64::log10);
        let min = logs.clone().fold(f64::INFINITY, f64::min).floor();
        let max = logs.fold(f64::NEG_INFINITY, f64::max).ceil();
        if min.is_finite() && min < max {
            Self { min, max }
        } else if min.is_finite() {
            Self {
                min,
                max: min + 1.0,
            }
        } else {
            Self { min: 0.0, max: 1.0 }
        }
    }

    /// How far along the axis a value is, from 0 to 1.
    fn part(&self, value: f64) -> f64 {
        if value <= 0.0 {
            return 0.0;
        }
        ((value.log10() - self.min) / (self.max - self.min)).clamp(0.0, 1.0)
    }

    fn decades(&self) -> Vec<f64> {
        let mut exponent = self.min;
        let mut decades = Vec::new();
        while exponent <= self.max {
            decades.push(10f64.powf(exponent));
            exponent += 1.0;
        }
        decades
    }
}

/// A number with as few characters as possible: 50k, 0.1.
fn number(value: f64) -> String {
    if value >= 1e6 {
        format!("{}M", value / 1e6)
    } else if value >= 1e3 {
        format!("{}k", value / 1e3)
    } else if value >= 1.0 {
        format!("{value:.0}")
    } else {
        format!("{}", (value * 1e6).round() / 1e6)
    }
}

fn line(body: &mut String, path: &str, colour: &str, width: u32) {
    push(
        body,
        &format!(r#"<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>"#),
    );
}

fn text(body: &mut String, x: f64, y: f64, anchor: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    push(
        body,
        &format!(
            r##"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" fill="#1b1f24">{text}</text>"##
        ),
    );
}

fn push(body: &mut String, element: &str) {
    // Writing to a string cannot fail.
    writeln!(body, "{element}").unwrap_or_default();
}

#[expect(clippy::cast_precision_loss, reason = "there are few plots")]
fn float(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::super::series::Cost;
    use super::*;

    #[test]
    fn linear_growth_is_a_diagonal() {
        let mut series = Series::new("Time & more", "tools", "µs", Cost::Whole, 0.0);
        for size in [10, 100, 1000] {
            series.add(size, f64::from(size));
        }
        let svg = draw(&[series]);
        assert!(svg.contains("M70.0 220.0L235.0 130.0L400.0 40.0"), "{svg}");
        assert!(svg.contains("Time &amp; more (µs)"), "{svg}");
    }

    #[test]
    fn numbers_are_short() {
        let shown = [0.01, 1.0, 300.0, 50_000.0, 1e6].map(number);
        assert_eq!(shown, ["0.01", "1", "300", "50k", "1M"]);
    }
}
