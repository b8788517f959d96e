//! Values of environment variables and headers.

use plexus_mcp_wire::{Kind, Object, ObjectError, Raw};
use serde::Deserialize;

use super::Reader;
use crate::problem::ConfigProblem;
use crate::secret::{Secret, SecretSource, Value};

impl Reader<'_> {
    /// The members of the object under `key`.
    pub(super) fn values(&mut self, key: &str) -> Result<Vec<(String, Value)>, ConfigProblem> {
        let Some(raw) = self.take(key) else {
            return Ok(Vec::new());
        };
        let members = Object::parse(&raw).map_err(|error| match error {
            ObjectError::NotAnObject => self.mismatch(key, "an object", &raw),
            other => self.problem(key, other.to_string()),
        })?;
        // `null` removes a value in some clients, so it is skipped.
        let given = members.iter().filter(|(_, raw)| raw.kind() != Kind::Null);
        let values = given.map(|(name, raw)| {
            let value = self.value(&format!("{key}.{name}"), raw)?;
            Ok((name.to_owned(), value))
        });
        values.collect()
    }

    pub(super) fn value(&self, key: &str, raw: &Raw) -> Result<Value, ConfigProblem> {
        match raw.kind() {
            Kind::String => {
                let written = self.decoded(key, raw, "a string")?;
                let text = self.expanded(key, written)?;
                Ok(Value::Known(Secret::new(text.expanded())))
            }
            // Users write ports and switches without quotes.
            Kind::Number | Kind::Bool => Ok(Value::Known(Secret::new(raw.as_str()))),
            Kind::Object => self.reference(key, raw),
            Kind::Null | Kind::Array => {
                Err(self.mismatch(key, "a string or a reference to a secret", raw))
            }
        }
    }

    fn reference(&self, key: &str, raw: &Raw) -> Result<Value, ConfigProblem> {
        const EXPECTED: &str = r#"{"command": ["program", "argument"]} or {"keyring": {"service": "…", "account": "…"}}"#;
        let unknown = || {
            self.problem(key, "not a reference to a secret")
                .advice(format!("write {EXPECTED}"))
        };
        let Ok(reference) = raw.decode::<Reference>() else {
            return Err(unknown());
        };
        let expand = |text: String| {
            let text = self.expanded(key, text)?;
            Ok(text.expanded().to_owned())
        };
        let source = match (reference.command, reference.keyring) {
            (Some(words), None) => {
                let words: Vec<_> = words.into_iter().map(expand).collect::<Result<_, _>>()?;
                let Some((command, args)) = words.split_first() else {
                    return Err(unknown());
                };
                SecretSource::Command {
                    command: self.without_tilde(command),
                    args: args.to_vec(),
                }
            }
            (None, Some(keyring)) => SecretSource::Keyring {
                service: expand(keyring.service)?,
                account: expand(keyring.account)?,
            },
            _ => return Err(unknown()),
        };
        Ok(Value::Fetched {
            prefix: reference.prefix,
            source,
        })
    }
}

/// A reference to a stored secret, in place of a value.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reference {
    command: Option<Vec<String>>,
    keyring: Option<Keyring>,
    #[serde(default)]
    prefix: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keyring {
    service: String,
    account: String,
}
