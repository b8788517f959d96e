//! What people add to a report: the causes of missed criteria, and a second run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};

use super::Report;
use crate::acceptance::criteria;
use crate::results::Results;

/// Additions to a report.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// The causes of missed criteria, by their names.
    pub(super) causes: BTreeMap<String, String>,
    /// A second run.
    pub(super) second: Option<Report>,
}

impl Notes {
    /// Reads the files with the causes and with the second run.
    pub(crate) fn read(causes: Option<&Path>, second: Option<&Path>) -> anyhow::Result<Self> {
        let causes = match causes {
            Some(file) => fs::read_to_string(file)
                .map_err(anyhow::Error::from)
                .and_then(|text| read_causes(&text))
                .with_context(|| format!("no causes in {}", file.display()))?,
            None => BTreeMap::new(),
        };
        let second = second.map(Report::read).transpose()?;
        Ok(Self { causes, second })
    }
}

fn read_causes(text: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let causes: BTreeMap<String, String> = toml::from_str(text)?;
    let known = criteria(&Results::default());
    for name in causes.keys() {
        ensure!(
            known.iter().any(|criterion| &criterion.name == name),
            "there is no criterion '{name}'"
        );
    }
    Ok(causes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_of_known_criteria() {
        let causes = read_causes("start = \"It reads a large cache.\"\n").unwrap();
        assert_eq!(causes["start"], "It reads a large cache.");
        let failed = read_causes("begin = \"\"\n").unwrap_err().to_string();
        assert_eq!(failed, "there is no criterion 'begin'");
    }

    #[test]
    fn the_causes_of_the_project_can_be_read() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("causes.toml");
        Notes::read(Some(&file), None).unwrap();
    }
}
