//! Reads members one by one, and reports problems with their key.

use std::path::PathBuf;

use plexus_mcp_wire::{Kind, Raw};
use serde::Deserialize;

use super::{Reader, keys, kind_name};
use crate::problem::ConfigProblem;
use crate::text::{ExpandError, Text};

impl Reader<'_> {
    pub(super) fn path(&self, key: &str, written: String) -> Result<PathBuf, ConfigProblem> {
        let text = self.expanded(key, written)?;
        let path = self.without_tilde(text.expanded());
        Ok(self.context.base.join(path))
    }

    /// Expands `~/`, because no shell does.
    pub(super) fn without_tilde(&self, path: &str) -> String {
        let home = || (self.context.environment)("HOME");
        match path.strip_prefix("~/").zip(home()) {
            Some((rest, home)) => format!("{}/{rest}", home.trim_end_matches('/')),
            None => path.to_owned(),
        }
    }

    pub(super) fn expanded(&self, key: &str, written: String) -> Result<Text, ConfigProblem> {
        let lookup = |name: &str| match self.variables.get(name) {
            Some(value) => Some(value.clone()),
            None => (self.context.environment)(name),
        };
        Text::expand(written, &lookup).map_err(|error| {
            let problem = self.problem(key, error.to_string()).advice(error.advice());
            match error {
                ExpandError::Unset(_) => problem.of_environment(),
                ExpandError::Question(_) => problem,
            }
        })
    }

    pub(super) fn required(&mut self, key: &str) -> Result<String, ConfigProblem> {
        let value = self.optional(key, "a string")?;
        value.ok_or_else(|| self.problem(key, "it is missing"))
    }

    pub(super) fn optional<T: for<'de> Deserialize<'de>>(
        &mut self,
        key: &str,
        expected: &str,
    ) -> Result<Option<T>, ConfigProblem> {
        let raw = self.take(key);
        raw.map(|raw| self.decoded(key, &raw, expected)).transpose()
    }

    /// Whether there is a value under `key`. `null` counts as missing.
    pub(super) fn has(&self, key: &str) -> bool {
        let raw = self.fields.get(key);
        raw.is_some_and(|raw| raw.kind() != Kind::Null)
    }

    pub(super) fn take(&mut self, key: &str) -> Option<Raw> {
        debug_assert!(keys::is_known(key), "{key} is not in SERVER_KEYS");
        let raw = self.fields.remove(key)?;
        (raw.kind() != Kind::Null).then_some(raw)
    }

    pub(super) fn decoded<T: for<'de> Deserialize<'de>>(
        &self,
        key: &str,
        raw: &Raw,
        expected: &str,
    ) -> Result<T, ConfigProblem> {
        match raw.decode() {
            Ok(value) => Ok(value),
            Err(_) => Err(self.mismatch(key, expected, raw)),
        }
    }

    pub(super) fn mismatch(&self, key: &str, expected: &str, raw: &Raw) -> ConfigProblem {
        let found = kind_name(raw.kind());
        self.problem(key, format!("{expected} is expected, not {found}"))
    }

    pub(super) fn problem(
        &self,
        key: impl Into<Box<str>>,
        what: impl Into<Box<str>>,
    ) -> ConfigProblem {
        ConfigProblem::new(&self.context.source.file, what)
            .server(self.name)
            .key(key)
    }
}
