//! JSON Schema validation of the arguments and results of tools (S000-37).
//!
//! Schemas are untrusted. A schema with remote references is refused and nothing is ever
//! fetched (JS-02, JS-03), and so is one whose size or depth, references followed, is beyond
//! [`MAX_SUBSCHEMAS`], [`MAX_UNFOLDED`] or [`MAX_DEPTH`]. Patterns may backtrack only so far.
//!
//! A schema is read by the dialect it declares, and as 2020-12 if it declares none (JS-01). The
//! dialects known are draft-04, draft-06, draft-07, 2019-09 and 2020-12.

use std::fmt;

use jsonschema::paths::LocationSegment;
use jsonschema::{Draft, PatternOptions, ValidationError};
use plexus_mcp_wire::Raw;
use serde_json::Value;

mod audit;
mod walk;

use audit::Size;
pub(crate) use walk::{SubschemaLocation, subschemas};

/// How many subschemas a schema may have.
pub const MAX_SUBSCHEMAS: usize = 10_000;

/// How many subschemas a schema may have when every reference is replaced by its target.
pub const MAX_UNFOLDED: u64 = 200_000;

/// How deep subschemas may nest, references followed.
pub const MAX_DEPTH: usize = 64;

/// The most violations in one error message; more would not help the reader.
const MAX_VIOLATIONS: usize = 10;

/// The most characters of one violation in a message; it may quote the whole instance.
const MAX_MESSAGE_CHARS: usize = 300;

/// The most work for listing the violations of an invalid instance; see `Size::ways_through`.
const MAX_EXPLANATION: u64 = 1_000_000;

/// The backtracking limit of a pattern. Beyond it, the text counts as not matching.
const MAX_BACKTRACKING: usize = 100_000;

/// A compiled schema.
#[derive(Debug, Clone)]
pub struct Validator {
    compiled: jsonschema::Validator,
    size: Size,
    /// The name of the instance in error messages.
    subject: &'static str,
}

impl Validator {
    /// Compiles a schema for any value, which violations call `value`.
    pub fn compile(schema: &Raw) -> Result<Self, InvalidSchema> {
        Self::compile_for(&decode(schema)?, "value")
    }

    /// Compiles the input schema of a tool: one of objects, as every revision demands (TOOL-10).
    pub fn compile_tool_input(schema: &Raw) -> Result<Self, InvalidSchema> {
        let schema = decode(schema)?;
        if schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err(InvalidSchema::NotOfObjects);
        }
        Self::compile_for(&schema, "arguments")
    }

    /// Compiles the schema of a form, whose violations are shown to the user who filled it in.
    pub(crate) fn compile_form(schema: &Raw) -> Result<Self, InvalidSchema> {
        Self::compile_for(&decode(schema)?, "answer")
    }

    /// Validates `instance`.
    pub fn validate(&self, instance: &Raw) -> Result<(), Violations> {
        let instance: Value = instance
            .decode()
            .map_err(|error: serde_json::Error| self.whole(&error.to_string()))?;
        // `is_valid` decides each part of the instance once. Listing the violations visits a part
        // once for each path through the schema that leads to it, and there may be too many paths.
        if self.compiled.is_valid(&instance) {
            return Ok(());
        }
        if self.size.ways_through(&instance) > MAX_EXPLANATION {
            let message = "does not match the schema, which is too complex to say where";
            return Err(self.whole(message));
        }
        let violations = self.compiled.iter_errors(&instance).take(MAX_VIOLATIONS);
        Err(Violations(
            violations.map(|error| self.violation(&error)).collect(),
        ))
    }

    fn compile_for(schema: &Value, subject: &'static str) -> Result<Self, InvalidSchema> {
        if !matches!(schema, Value::Object(_) | Value::Bool(_)) {
            return Err(InvalidSchema::NotASchema);
        }
        let size = audit::audit(schema)?;
        let compiled = jsonschema::options()
            .with_draft(dialect(schema)?)
            .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(MAX_BACKTRACKING))
            .offline()
            .build(schema)
            .map_err(|error| InvalidSchema::Rejected(shortened(&error.to_string())))?;
        Ok(Self {
            compiled,
            size,
            subject,
        })
    }

    /// A violation by the instance as a whole.
    fn whole(&self, message: &str) -> Violations {
        let violation = Violation {
            path: self.subject.to_owned(),
            message: message.to_owned(),
        };
        Violations(vec![violation])
    }

    fn violation(&self, error: &ValidationError<'_>) -> Violation {
        let mut path = String::from(self.subject);
        for segment in error.instance_path() {
            match segment {
                LocationSegment::Property(name) => path.extend([".", &*name]),
                LocationSegment::Index(index) => path.extend(["[", &index.to_string(), "]"]),
            }
        }
        Violation {
            path,
            message: shortened(&error.to_string()),
        }
    }
}

/// Why a schema is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSchema {
    /// It is not a valid schema.
    #[error("a schema must be a json object")]
    NotASchema,
    /// A tool takes an object, and its schema must say so.
    #[error("the input schema of a tool must have \"type\": \"object\"")]
    NotOfObjects,
    /// It declares a dialect that is not known.
    #[error("unknown json schema dialect {0:?}")]
    UnknownDialect(String),
    /// It refers to something outside of itself.
    #[error("the schema refers to {0:?}, which is not part of it")]
    ExternalReference(String),
    /// It nests deeper than [`MAX_DEPTH`].
    #[error("the schema nests deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// It is larger than [`MAX_SUBSCHEMAS`] or [`MAX_UNFOLDED`].
    #[error("the schema has too many subschemas")]
    TooLarge,
    /// It is not valid in its dialect.
    #[error("invalid json schema: {0}")]
    Rejected(String),
}

/// The violations of an instance, described so that a model can correct them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violations(Vec<Violation>);

impl Violations {
    /// The single violations; at least one.
    pub fn iter(&self) -> impl Iterator<Item = &Violation> {
        self.0.iter()
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, violation) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{violation}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Violations {}

/// One thing wrong with an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The path of the invalid value, for example `arguments.items[0].name`.
    pub path: String,
    /// The reason why the value is invalid.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// A raw value is JSON, so this fails only if it nests too deep or has a number beyond a double.
fn decode(schema: &Raw) -> Result<Value, InvalidSchema> {
    let unreadable = |error: serde_json::Error| InvalidSchema::Rejected(error.to_string());
    schema.decode().map_err(unreadable)
}

fn dialect(schema: &Value) -> Result<Draft, InvalidSchema> {
    let Some(declared) = schema.get("$schema") else {
        return Ok(Draft::Draft202012);
    };
    match Draft::default().detect(schema) {
        Draft::Unknown => {
            let name = declared
                .as_str()
                .map_or_else(|| declared.to_string(), str::to_owned);
            Err(InvalidSchema::UnknownDialect(name))
        }
        known => Ok(known),
    }
}

fn shortened(message: &str) -> String {
    match message.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => format!("{}…", message.get(..end).unwrap_or_default()),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests;
