//! Checks that every schema must pass: no remote references, and a bounded cost.

use std::collections::HashMap;

use serde_json::Value;

use super::walk::subschemas;
use super::{InvalidSchema, MAX_DEPTH, MAX_SUBSCHEMAS, MAX_UNFOLDED};

/// Checks a schema before it is compiled (JS-02, JS-03), and measures it.
pub(super) fn audit(schema: &Value) -> Result<Size, InvalidSchema> {
    let mut unfolding = Unfolding {
        sizes: HashMap::new(),
    };
    unfolding.measure(schema, schema, 0)
}

/// The size of a schema when every reference is replaced by its target.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    subschemas: u64,
    /// How many of them refer back to a schema that contains them.
    recursions: u64,
    depth: usize,
}

impl Size {
    const ONE: Self = Self {
        subschemas: 1,
        recursions: 0,
        depth: 1,
    };

    /// The most pairs of a subschema and a part of `instance` to visit, if each path to a part is
    /// followed.
    pub(super) fn ways_through(&self, instance: &Value) -> u64 {
        let (parts, depth) = extent(instance);
        let repeated = self.recursions.max(1).saturating_pow(depth);
        self.subschemas
            .saturating_mul(repeated)
            .saturating_mul(parts)
    }
}

/// A schema whose references are replaced by their targets.
///
/// Definitions of which each refers twice to the next make a short schema huge, and a long chain of
/// references makes a flat one deep.
struct Unfolding {
    /// By address; `None` while the schema is being measured.
    sizes: HashMap<*const Value, Option<Size>>,
}

impl Unfolding {
    /// `resource` is the base of local references.
    fn measure(
        &mut self,
        schema: &Value,
        resource: &Value,
        above: usize,
    ) -> Result<Size, InvalidSchema> {
        let address = std::ptr::from_ref(schema);
        let size = match self.sizes.get(&address) {
            Some(Some(known)) => *known,
            // A recursive schema is not unfolded: the depth of the instance bounds it.
            Some(None) => Size {
                recursions: 1,
                ..Size::ONE
            },
            None if above >= MAX_DEPTH => return Err(InvalidSchema::TooDeep),
            None if self.sizes.len() >= MAX_SUBSCHEMAS => return Err(InvalidSchema::TooLarge),
            None => {
                self.sizes.insert(address, None);
                let size = self.measure_parts(schema, resource, above)?;
                self.sizes.insert(address, Some(size));
                size
            }
        };
        if above + size.depth > MAX_DEPTH {
            return Err(InvalidSchema::TooDeep);
        }
        if size.subschemas > MAX_UNFOLDED {
            return Err(InvalidSchema::TooLarge);
        }
        Ok(size)
    }

    fn measure_parts(
        &mut self,
        schema: &Value,
        resource: &Value,
        above: usize,
    ) -> Result<Size, InvalidSchema> {
        let resource = if opens_resource(schema) {
            schema
        } else {
            resource
        };
        let mut whole = Size::ONE;
        let mut add = |part: Size| {
            whole.subschemas = whole.subschemas.saturating_add(part.subschemas);
            whole.recursions = whole.recursions.saturating_add(part.recursions);
            whole.depth = whole.depth.max(part.depth + 1);
        };
        for (_, part) in subschemas(schema) {
            add(self.measure(part, resource, above + 1)?);
        }
        for reference in references(schema) {
            let Some(fragment) = reference.strip_prefix('#') else {
                return Err(InvalidSchema::ExternalReference(reference.to_owned()));
            };
            // A reference that is not found here is reported when the schema is compiled.
            if let Some(target) = find(resource, fragment) {
                add(self.measure(target, resource, above + 1)?);
            }
        }
        Ok(whole)
    }
}

/// How many values there are in `instance`, and how deep they nest.
fn extent(instance: &Value) -> (u64, u32) {
    let sum = |(parts, depth): (u64, u32), part| {
        let (more, below) = extent(part);
        (parts + more, depth.max(below + 1))
    };
    match instance {
        Value::Array(items) => items.iter().fold((1, 1), sum),
        Value::Object(members) => members.values().fold((1, 1), sum),
        _ => (1, 0),
    }
}

fn references(schema: &Value) -> impl Iterator<Item = &str> {
    let keywords = ["$ref", "$dynamicRef", "$recursiveRef"];
    keywords
        .into_iter()
        .filter_map(|keyword| schema.get(keyword)?.as_str())
}

/// Whether local references inside `schema` are relative to it, and not to an enclosing schema.
fn opens_resource(schema: &Value) -> bool {
    schema
        .get("$id")
        .and_then(Value::as_str)
        .is_some_and(|id| !id.starts_with('#'))
}

/// The target of the fragment of a reference: a JSON pointer or an anchor.
fn find<'a>(resource: &'a Value, fragment: &str) -> Option<&'a Value> {
    let fragment = percent_decoded(fragment)?;
    if fragment.is_empty() || fragment.starts_with('/') {
        resource.pointer(&fragment)
    } else {
        find_anchor(resource, &fragment)
    }
}

fn find_anchor<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let is_named = |keyword: &str| schema.get(keyword).and_then(Value::as_str) == Some(name);
    let has_fragment_id = schema
        .get("$id")
        .and_then(Value::as_str)
        .and_then(|id| id.strip_prefix('#'));
    if is_named("$anchor") || is_named("$dynamicAnchor") || has_fragment_id == Some(name) {
        return Some(schema);
    }
    subschemas(schema).find_map(|(_, schema)| find_anchor(schema, name))
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let mut digit = || char::from(bytes.next()?).to_digit(16);
            let value = digit()? * 16 + digit()?;
            decoded.push(u8::try_from(value).ok()?);
        } else {
            decoded.push(byte);
        }
    }
    String::from_utf8(decoded).ok()
}
