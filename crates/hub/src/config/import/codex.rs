//! Codex's TOML.

use std::path::Path;

use plexus_wire::Raw;

use crate::config::problem::{ConfigProblem, Position};

/// The file as JSON.
pub(super) fn parse(file: &Path, text: &str) -> Result<Raw, ConfigProblem> {
    let table: toml::Table = toml::from_str(text).map_err(|error| {
        let message = error.message().split_whitespace().collect::<Vec<_>>();
        let problem = ConfigProblem::new(file, format!("not TOML: {}", message.join(" ")));
        match error.span() {
            Some(span) => problem.at(Position::of_offset(text, span.start)),
            None => problem,
        }
    })?;
    Raw::encode(&table).map_err(|error| ConfigProblem::new(file, error.to_string()))
}
