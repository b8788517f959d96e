//! `x-mcp-header`: the arguments of a tool that are mirrored in headers.

use std::fmt;

use plexus_mcp_wire::{Kind, Object, ObjectError, Raw};
use serde_json::Value;

use super::{BadHeaderValue, decode_value, encode_value};
use crate::schema::{SubschemaLocation, subschemas};

const ANNOTATION: &str = "x-mcp-header";
const PREFIX: &str = "Mcp-Param-";

/// The arguments of one tool that are mirrored in headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeaderParams(Vec<Param>);

/// Why a tool's `x-mcp-header` annotations, and with them the tool, are invalid (HDR26-10).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidHeaderAnnotation {
    /// The input schema cannot be read.
    #[error("the input schema is unreadable")]
    Schema,
    /// The annotation is not a string, is empty, or has characters that no header name can have.
    #[error("x-mcp-header of {property} is not a header name")]
    Name {
        /// The annotated property.
        property: String,
    },
    /// Two properties have the same header, upper and lower case aside.
    #[error("x-mcp-header {name:?} is used twice")]
    Duplicate {
        /// The header's name, without the prefix.
        name: String,
    },
    /// The property has another type than the three that have a text form.
    #[error("x-mcp-header of {property} is allowed on string, integer and boolean only")]
    Type {
        /// The annotated property.
        property: String,
    },
    /// The annotation is under a keyword other than `properties`, so that the argument it is about
    /// depends on the arguments.
    #[error("x-mcp-header under {keyword:?} does not name one argument")]
    Place {
        /// The keyword.
        keyword: String,
    },
}

/// A header whose value differs from the body (HDR26-07).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderMismatch {
    /// The body has the argument, the request lacks its header.
    #[error("missing header {header}")]
    Missing {
        /// The header.
        header: String,
    },
    /// The request has the header, the body lacks its argument.
    #[error("header {header} without a matching argument")]
    Unexpected {
        /// The header.
        header: String,
    },
    /// The header's value cannot be read.
    #[error("header {header} is malformed")]
    Malformed {
        /// The header.
        header: String,
        /// The reason.
        source: BadHeaderValue,
    },
    /// The values of the header and of its argument differ.
    #[error("header {header} does not match its argument")]
    Different {
        /// The header.
        header: String,
    },
    /// The arguments cannot be checked: an object has a duplicate key.
    #[error("the arguments cannot be compared with the headers that mirror them")]
    Arguments,
}

impl HeaderParams {
    /// Reads the annotations of an input schema. An error makes the whole tool invalid.
    pub fn from_input_schema(schema: &Raw) -> Result<Self, InvalidHeaderAnnotation> {
        if !Self::may_be_annotated(schema) {
            return Ok(Self::default());
        }
        let schema: Value = schema
            .decode()
            .ok()
            .ok_or(InvalidHeaderAnnotation::Schema)?;
        let mut found = Self::default();
        found.collect(&schema, &Path::default())?;
        Ok(found)
    }

    /// Whether a schema, or a definition with one, may have annotations: most have none, and need
    /// not be read to know that. A name that is written with escapes is found only by reading.
    pub fn may_be_annotated(schema: &Raw) -> bool {
        let text = schema.as_str();
        text.contains(ANNOTATION) || text.contains('\\')
    }

    /// Whether no argument is mirrored.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Compares a request's headers with its arguments (HDR26-13).
    ///
    /// `header` gives the value of a header by its name, whose case does not matter.
    pub fn check<'h>(
        &self,
        arguments: Option<&Raw>,
        header: impl Fn(&str) -> Option<&'h [u8]>,
    ) -> Result<(), HeaderMismatch> {
        for param in &self.0 {
            let argument = param
                .argument(arguments)
                .ok()
                .ok_or(HeaderMismatch::Arguments)?;
            param.check(argument.as_ref(), header(&param.header))?;
        }
        Ok(())
    }

    /// The headers of a request with these arguments (HDR26-12, HDR26-14): names and values.
    pub fn values(&self, arguments: Option<&Raw>) -> Vec<(String, String)> {
        let headers = self.0.iter().filter_map(|param| {
            let text = text_of(&param.argument(arguments).ok()??)?;
            Some((param.header.clone(), encode_value(&text).into_owned()))
        });
        headers.collect()
    }

    fn collect(&mut self, schema: &Value, path: &Path<'_>) -> Result<(), InvalidHeaderAnnotation> {
        if let Some(annotation) = schema.get(ANNOTATION) {
            self.add(annotation, schema, path)?;
        }
        for (place, subschema) in subschemas(schema) {
            match place {
                SubschemaLocation::Property(name) => {
                    self.collect(subschema, &path.property(name))?;
                }
                SubschemaLocation::Keyword(keyword) => refuse_annotations(subschema, keyword)?,
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        annotation: &Value,
        schema: &Value,
        path: &Path<'_>,
    ) -> Result<(), InvalidHeaderAnnotation> {
        let property = || path.to_string();
        let name = annotation.as_str().filter(|name| is_token(name));
        let name = name.ok_or_else(|| InvalidHeaderAnnotation::Name {
            property: property(),
        })?;
        if path.0.is_empty() {
            return Err(InvalidHeaderAnnotation::Place {
                keyword: ANNOTATION.to_owned(),
            });
        }
        let type_name = schema.get("type").and_then(Value::as_str);
        if !matches!(type_name, Some("string" | "integer" | "boolean")) {
            return Err(InvalidHeaderAnnotation::Type {
                property: property(),
            });
        }
        let header = format!("{PREFIX}{name}");
        if self
            .0
            .iter()
            .any(|param| param.header.eq_ignore_ascii_case(&header))
        {
            return Err(InvalidHeaderAnnotation::Duplicate {
                name: name.to_owned(),
            });
        }
        let path = path.0.iter().copied().map(Into::into).collect();
        self.0.push(Param { header, path });
        Ok(())
    }
}

/// One mirrored argument.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Param {
    /// The whole name of the header.
    header: String,
    /// The properties that lead to the argument.
    path: Box<[Box<str>]>,
}

impl Param {
    /// The argument, if it is there and not null.
    fn argument(&self, arguments: Option<&Raw>) -> Result<Option<Raw>, ObjectError> {
        let mut found = arguments.cloned();
        for name in &self.path {
            let Some(outer) = found.filter(|value| value.kind() == Kind::Object) else {
                return Ok(None);
            };
            found = Object::parse(&outer)?.remove(name);
        }
        Ok(found.filter(|value| value.kind() != Kind::Null))
    }

    fn check(&self, argument: Option<&Raw>, value: Option<&[u8]>) -> Result<(), HeaderMismatch> {
        let header = || self.header.clone();
        match (argument, value) {
            (None, None) => Ok(()),
            (Some(_), None) => Err(HeaderMismatch::Missing { header: header() }),
            (None, Some(_)) => Err(HeaderMismatch::Unexpected { header: header() }),
            (Some(argument), Some(value)) => {
                let value = decode_value(value).map_err(|source| HeaderMismatch::Malformed {
                    header: header(),
                    source,
                })?;
                let is_same = match argument.kind() {
                    Kind::Number => integer(&value)
                        .zip(integer(argument.as_str()))
                        .is_some_and(|(value, argument)| value == argument),
                    _ => text_of(argument).is_some_and(|argument| argument == value),
                };
                if is_same {
                    Ok(())
                } else {
                    Err(HeaderMismatch::Different { header: header() })
                }
            }
        }
    }
}

/// The properties that lead from the root to a subschema.
#[derive(Default)]
struct Path<'a>(Vec<&'a str>);

impl<'a> Path<'a> {
    fn property(&self, name: &'a str) -> Self {
        let mut path = self.0.clone();
        path.push(name);
        Self(path)
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [] => f.write_str("the root"),
            names => write!(f, "property {:?}", names.join(".")),
        }
    }
}

fn refuse_annotations(schema: &Value, keyword: &str) -> Result<(), InvalidHeaderAnnotation> {
    if schema.get(ANNOTATION).is_some() {
        return Err(InvalidHeaderAnnotation::Place {
            keyword: keyword.to_owned(),
        });
    }
    subschemas(schema).try_for_each(|(_, subschema)| refuse_annotations(subschema, keyword))
}

/// The text form of an argument that has one.
fn text_of(argument: &Raw) -> Option<String> {
    match argument.kind() {
        Kind::String => argument.decode().ok(),
        Kind::Bool => Some(argument.as_str().to_owned()),
        Kind::Number => integer(argument.as_str()).map(|integer| integer.to_string()),
        Kind::Null | Kind::Array | Kind::Object => None,
    }
}

/// The integer value of a JSON number in any notation: `42.0` is 42 (HDR26-08).
fn integer(text: &str) -> Option<i128> {
    /// Beyond this a double no longer names one integer, and annotated integers must not go.
    const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

    let number: serde_json::Number = serde_json::from_str(text).ok()?;
    number.as_i128().or_else(|| {
        let double = number.as_f64()?;
        #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
        (double.fract() == 0.0 && double.abs() <= MAX_SAFE_INTEGER).then_some(double as i128)
    })
}

/// Whether `name` can be part of a header name: a token of RFC 9110.
fn is_token(name: &str) -> bool {
    let is_token_byte =
        |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token_byte)
}

#[cfg(test)]
mod tests;
