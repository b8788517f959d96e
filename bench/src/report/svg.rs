//! Bar charts.

use std::fmt::Write as _;

use crate::servers::OURS;

/// A chart: for each group, a bar for each series.
#[derive(Debug, Clone)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) unit: &'static str,
    pub(crate) groups: Vec<Group>,
}

/// Bars side by side.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) bars: Vec<(String, f64)>,
}

const CHART_WIDTH: f64 = 880.0;
const NAME_WIDTH: f64 = 190.0;
const VALUE_WIDTH: f64 = 90.0;
const BAR_HEIGHT: f64 = 18.0;
const GROUP_GAP: f64 = 26.0;
const TOP_MARGIN: f64 = 44.0;

/// Bars of others are cut at this multiple of our longest bar.
const MAX_BAR_RATIO: f64 = 10.0;

/// The limit is grey, ours is blue, and all others have a lighter colour.
fn colour(subject: &str) -> &'static str {
    match subject {
        "limit" | "upstream alone" => "#8a8f98",
        name if is_ours(name) => "#1f6feb",
        _ => "#b9c7de",
    }
}

fn is_ours(subject: &str) -> bool {
    subject.starts_with(OURS)
}

impl Chart {
    /// The chart as an SVG document. The title says whether long bars are better or worse.
    pub(crate) fn draw(&self) -> String {
        let longest = |is_wanted: fn(&str) -> bool| {
            let bars = self.groups.iter().flat_map(|group| &group.bars);
            let wanted = bars.filter(|(name, _)| is_wanted(name));
            wanted.map(|(_, value)| *value).fold(0.0, f64::max)
        };
        let cut = match longest(is_ours) * MAX_BAR_RATIO {
            0.0 => f64::MAX,
            cut => cut,
        };
        let most = longest(|_| true).min(cut).max(f64::MIN_POSITIVE);
        let scale = (CHART_WIDTH - NAME_WIDTH - VALUE_WIDTH) / most;
        let mut body = String::new();
        let mut y = TOP_MARGIN;
        for group in &self.groups {
            y += GROUP_GAP;
            text(&mut body, 8.0, y - 7.0, "start", "bold", &group.name);
            for (name, value) in &group.bars {
                let middle = y + BAR_HEIGHT * 0.72;
                text(&mut body, NAME_WIDTH - 8.0, middle, "end", "normal", name);
                let is_cut = *value > cut;
                let length = (value.min(cut) * scale).max(1.0);
                let colour = colour(name);
                push(
                    &mut body,
                    format_args!(
                        r#"<rect x="{NAME_WIDTH}" y="{y:.1}" width="{length:.1}" height="{:.1}" fill="{colour}"/>"#,
                        BAR_HEIGHT - 3.0
                    ),
                );
                if is_cut {
                    // Two white strokes through the bar mark it as cut.
                    for x in [NAME_WIDTH + length - 24.0, NAME_WIDTH + length - 16.0] {
                        let path = format!("M{:.1} {:.1}l6 -{BAR_HEIGHT}", x, y + BAR_HEIGHT - 2.0);
                        push(
                            &mut body,
                            format_args!(
                                r##"<path d="{path}" stroke="#ffffff" stroke-width="3"/>"##
                            ),
                        );
                    }
                }
                let label = format!("{}{}", rounded(*value), self.unit);
                text(
                    &mut body,
                    NAME_WIDTH + length + 6.0,
                    middle,
                    "start",
                    "normal",
                    &label,
                );
                y += BAR_HEIGHT;
            }
        }
        let height = y + GROUP_GAP / 2.0;
        let mut title = String::new();
        text(&mut title, 8.0, 26.0, "start", "bold", &self.title);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{CHART_WIDTH}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {CHART_WIDTH} {height:.0}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{title}{body}</svg>\n"
        )
    }
}

/// A figure with its significant digits.
pub(crate) fn rounded(value: f64) -> String {
    match value.abs() {
        0.0..10.0 => format!("{value:.2}"),
        10.0..100.0 => format!("{value:.1}"),
        _ => grouped(value),
    }
}

/// A number with thousands separators.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        let left = digits.len() - at;
        if at > 0 && left.is_multiple_of(3) && digit.is_ascii_digit() {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, weight: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    push(
        out,
        format_args!(
            r##"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" font-weight="{weight}" fill="#1b1f24">{text}</text>"##
        ),
    );
}

fn push(out: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    writeln!(out, "{line}").unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_bar_fills_the_chart_and_others_are_in_proportion() {
        let bars = [("limit", 200.0), ("plexus", 100.0)];
        let chart = Chart {
            title: "Rates & more".to_owned(),
            unit: " req/s",
            groups: vec![Group {
                name: "c=1".to_owned(),
                bars: bars.map(|(name, value)| (name.to_owned(), value)).into(),
            }],
        };
        let svg = chart.draw();
        assert!(svg.contains(r#"width="600.0""#), "{svg}");
        assert!(svg.contains(r#"width="300.0""#), "{svg}");
        assert!(svg.contains("Rates &amp; more"), "{svg}");
        assert!(svg.contains("200 req/s"), "{svg}");
    }

    #[test]
    fn a_bar_that_would_leave_no_room_for_ours_is_cut() {
        let bars = [("plexus", 100.0), ("slow", 50_000.0)];
        let chart = Chart {
            title: String::new(),
            unit: " µs",
            groups: vec![Group {
                name: "c=1".to_owned(),
                bars: bars.map(|(name, value)| (name.to_owned(), value)).into(),
            }],
        };
        let svg = chart.draw();
        assert!(svg.contains(r#"width="60.0""#), "{svg}");
        assert!(svg.contains(r#"width="600.0""#), "{svg}");
        assert_eq!(svg.matches("<path").count(), 2, "{svg}");
        assert!(svg.contains("50,000 µs"), "{svg}");
    }

    #[test]
    fn figures_are_as_long_as_they_say_something() {
        let shown = [0.854, 12.34, 999.6, 98_765.4, 1_234_567.0].map(rounded);
        assert_eq!(shown, ["0.85", "12.3", "1,000", "98,765", "1,234,567"]);
    }
}
