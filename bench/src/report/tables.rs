//! The tables of the page.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::svg::rounded;
use crate::results::{Results, Row};

/// A table with a line for each point and a column for each subject.
pub(super) fn by_point(
    results: &Results,
    part: &str,
    cell: impl Fn(&Row) -> Option<String>,
) -> String {
    let columns = names(results, part, |row| &row.key.subject);
    let lines = names(results, part, |row| &row.key.point);
    table(&columns, &lines, |subject, point| {
        shown(results.row(part, point, subject), &cell)
    })
}

/// A table with a line for each subject and a column for each point.
pub(super) fn by_subject(
    results: &Results,
    part: &str,
    cell: impl Fn(&Row) -> Option<String>,
) -> String {
    let columns = names(results, part, |row| &row.key.point);
    let lines = names(results, part, |row| &row.key.subject);
    table(&columns, &lines, |point, subject| {
        shown(results.row(part, point, subject), &cell)
    })
}

/// The figure of a row that has one, with its unit.
pub(super) fn single(row: &Row) -> Option<String> {
    let (name, value) = row.figures.iter().next()?;
    let (_, unit) = name.rsplit_once('_').unwrap_or(("", name));
    let unit = match unit {
        "mib" => " MiB",
        "kib" => " KiB",
        "ms" => " ms",
        _ => "",
    };
    Some(format!("{}{unit}", rounded(*value)))
}

/// Adds a line to a page.
pub(super) fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    writeln!(out, "{text}").unwrap_or_default();
}

fn table(columns: &[&str], lines: &[&str], cell: impl Fn(&str, &str) -> String) -> String {
    let mut table = format!("| | {} |\n|---|", columns.join(" | "));
    table.push_str(&"---|".repeat(columns.len()));
    table.push('\n');
    for name in lines {
        let cells: Vec<_> = columns.iter().map(|column| cell(column, name)).collect();
        line(
            &mut table,
            format_args!("| {name} | {} |", cells.join(" | ")),
        );
    }
    table
}

fn shown(row: Option<&Row>, cell: impl Fn(&Row) -> Option<String>) -> String {
    match row {
        Some(row) if row.failure.is_some() => "failed".to_owned(),
        row => row.and_then(cell).unwrap_or_else(|| "–".to_owned()),
    }
}

/// The distinct names in the rows of a part, in order of their first occurrence.
fn names<'a>(results: &'a Results, part: &str, name: fn(&Row) -> &String) -> Vec<&'a str> {
    let mut seen = BTreeSet::new();
    let rows = results.rows.iter().filter(|row| row.key.part == part);
    rows.map(|row| name(row).as_str())
        .filter(|name| seen.insert(*name))
        .collect()
}
