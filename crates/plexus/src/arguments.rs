//! Tool arguments, written as `key=value` and converted by the tool's schema, or as one JSON object.

use plexus_mcp_core::{Limits, Raw};
use plexus_mcp_wire::{Kind, Object};
use serde_json::Value;

use crate::suggest::{alike, did_you_mean};

/// The depth to which references and alternatives of a schema are followed.
const MAX_DEPTH: usize = 8;

/// Converts the arguments `words` by the input schema of a tool. A JSON object, which must be the
/// only word, is taken as it is.
///
/// # Errors
/// The problem, in one line.
pub(crate) fn typed(words: &[String], schema: &Raw) -> Result<Raw, String> {
    match words {
        [word] if word.starts_with('{') => {
            return object(word).map_err(|wrong| format!("the argument {wrong}"));
        }
        words if words.iter().any(|word| word.starts_with('{')) => {
            return Err(
                "a JSON object stands for all arguments; write it alone, or key=value for each"
                    .to_owned(),
            );
        }
        _ => {}
    }
    let schema: Value = schema.decode().unwrap_or_default();
    let schema = Schema(&schema);
    let mut arguments = Object::new();
    for (key, given) in grouped(words)? {
        let value = match schema.property(key) {
            Property::Known(types) => types.read(key, &given)?,
            Property::Free => given.raw_or_text()?,
            Property::Unknown(known) => {
                let hint = did_you_mean(&alike(key, known.iter().copied()));
                let known = known.join(", ");
                return Err(format!(
                    "the tool has no argument {key:?}{hint} (it has: {known})"
                ));
            }
        };
        arguments.set(key.to_owned(), value);
    }
    let missing = schema.required().filter(|key| !arguments.contains(key));
    let missing: Vec<_> = missing.map(|key| schema.described(key)).collect();
    if missing.is_empty() {
        Ok(arguments.to_raw())
    } else {
        Err(format!("an argument is missing: {}", missing.join("; ")))
    }
}

/// The input schema of a tool's definition.
pub(crate) fn schema_of(definition: &Raw) -> Raw {
    let definition = Object::parse(definition).unwrap_or_default();
    let schema = definition.get("inputSchema").cloned();
    schema.unwrap_or_else(Raw::empty_object)
}

/// Parses all arguments of a tool, as one JSON object.
///
/// # Errors
/// What the text is instead.
pub(crate) fn object(text: &str) -> Result<Raw, String> {
    let given = Raw::parse(text.to_owned().into(), &Limits::default());
    let given = given.map_err(|error| format!("is not JSON: {error}"))?;
    if given.kind() == Kind::Object {
        Ok(given)
    } else {
        Err("must be an object, as in {\"key\": 1}".to_owned())
    }
}

/// The arguments of a tool, one in a line: name, type, and description.
pub(crate) fn described(schema: &Raw) -> Vec<String> {
    let value: Value = schema.decode().unwrap_or_default();
    let value = Schema(&value);
    // In the server's order.
    let schema = Object::parse(schema).unwrap_or_default();
    let properties = schema.get("properties").map(Object::parse);
    let properties = properties.and_then(Result::ok).unwrap_or_default();
    let names = properties.iter().map(|(name, _)| name);
    names.map(|name| value.described(name)).collect()
}

/// The values that were given for one key.
struct Given<'a> {
    key: &'a str,
    texts: Vec<&'a str>,
    json: Option<Raw>,
}

impl Given<'_> {
    fn raw_or_text(&self) -> Result<Raw, String> {
        match (&self.json, self.texts.as_slice()) {
            (Some(json), _) => Ok(json.clone()),
            (None, [text]) => encoded(&Value::from(*text)),
            (None, _) => Err(format!("{:?} is given more than once", self.key)),
        }
    }
}

/// The words grouped by their keys, in order.
fn grouped(words: &[String]) -> Result<Vec<(&str, Given<'_>)>, String> {
    let mut groups: Vec<(&str, Given<'_>)> = Vec::new();
    for word in words {
        let (key, text) = word
            .split_once('=')
            .ok_or_else(|| format!("{word:?} is not an argument: write key=value, or key:=JSON"))?;
        let (key, json) = match key.strip_suffix(':') {
            Some(key) => {
                let json = Raw::parse(text.to_owned().into(), &Limits::default());
                let json = json.map_err(|error| format!("{key:?} is not JSON: {error}"))?;
                (key, Some(json))
            }
            None => (key, None),
        };
        if key.is_empty() {
            return Err(format!(
                "{word:?} has no key: write key=value, or key:=JSON"
            ));
        }
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, given)) if given.json.is_none() && json.is_none() => given.texts.push(text),
            Some(_) => return Err(format!("{key:?} is given more than once")),
            None => {
                let texts = if json.is_some() {
                    Vec::new()
                } else {
                    vec![text]
                };
                groups.push((key, Given { key, texts, json }));
            }
        }
    }
    Ok(groups)
}

struct Schema<'a>(&'a Value);

enum Property<'a> {
    Known(Types),
    /// The schema does not mention the key, and allows it.
    Free,
    /// The key is not allowed; these are.
    Unknown(Vec<&'a str>),
}

impl<'a> Schema<'a> {
    fn property(&self, key: &str) -> Property<'a> {
        let properties = self.0.get("properties").and_then(Value::as_object);
        if let Some(schema) = properties.and_then(|properties| properties.get(key)) {
            return Property::Known(Types::of(schema, self.0));
        }
        match self.0.get("additionalProperties") {
            Some(Value::Bool(true)) => Property::Free,
            Some(schema @ Value::Object(_)) => Property::Known(Types::of(schema, self.0)),
            Some(Value::Bool(false)) => Property::unknown(properties),
            // Few schemas forbid additional properties, and few tools accept them, so an unknown
            // key is probably a typing error.
            _ => match properties {
                Some(known) if !known.is_empty() => Property::unknown(properties),
                _ => Property::Free,
            },
        }
    }

    fn required(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let required = self.0.get("required").and_then(Value::as_array);
        required.into_iter().flatten().filter_map(Value::as_str)
    }

    fn described(&self, key: &str) -> String {
        let schema = self.0.get("properties").and_then(|all| all.get(key));
        let types = schema.map(|schema| Types::of(schema, self.0).expected());
        let types = types.unwrap_or_else(|| "anything".to_owned());
        let required = if self.required().any(|required| required == key) {
            ", required"
        } else {
            ""
        };
        let text = schema.and_then(|schema| schema.get("description")?.as_str());
        let text = text.map_or_else(String::new, |text| format!(": {text}"));
        format!("{key} ({types}{required}){text}")
    }
}

impl<'a> Property<'a> {
    fn unknown(properties: Option<&'a serde_json::Map<String, Value>>) -> Self {
        let known = properties.into_iter().flat_map(serde_json::Map::keys);
        Self::Unknown(known.map(String::as_str).collect())
    }
}

/// The types that a value may have.
#[derive(Debug, Default)]
struct Types {
    names: Vec<String>,
    /// The allowed values, if they are listed.
    allowed: Vec<Value>,
    /// The types of an array's items.
    items: Option<Box<Types>>,
}

impl Types {
    fn of(schema: &Value, root: &Value) -> Self {
        let mut types = Self::default();
        types.collect(schema, root, MAX_DEPTH);
        types
    }

    fn collect(&mut self, schema: &Value, root: &Value, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        if let Some(target) = schema.get("$ref").and_then(Value::as_str)
            && let Some(target) = target.strip_prefix('#').and_then(|path| root.pointer(path))
        {
            self.collect(target, root, depth);
        }
        match schema.get("type") {
            Some(Value::String(name)) => self.names.push(name.clone()),
            Some(Value::Array(names)) => {
                let names = names.iter().filter_map(Value::as_str);
                self.names.extend(names.map(str::to_owned));
            }
            _ => {}
        }
        self.allowed.extend(schema.get("const").cloned());
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            self.allowed.extend(values.iter().cloned());
        }
        if let Some(items) = schema.get("items") {
            let mut types = Self::default();
            types.collect(items, root, depth);
            self.items = Some(Box::new(types));
        }
        for alternatives in ["anyOf", "oneOf", "allOf"] {
            let alternatives = schema.get(alternatives).and_then(Value::as_array);
            for alternative in alternatives.into_iter().flatten() {
                self.collect(alternative, root, depth);
            }
        }
    }

    fn allows(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    fn is_array(&self) -> bool {
        self.allows("array")
    }

    fn read(&self, key: &str, given: &Given<'_>) -> Result<Raw, String> {
        if let Some(json) = &given.json {
            return Ok(json.clone());
        }
        let wrong = |text: &str| format!("{key}: expected {}, not {text:?}", self.expected());
        match given.texts.as_slice() {
            [text] => {
                let value = self.value(text).ok_or_else(|| wrong(text))?;
                encoded(&value)
            }
            // A key that is given several times is an array.
            texts if self.is_array() => {
                let items = texts
                    .iter()
                    .map(|text| self.item(text).ok_or_else(|| wrong(text)));
                encoded(&Value::Array(items.collect::<Result<_, _>>()?))
            }
            _ => Err(format!(
                "{key} is given more than once, and is not an array"
            )),
        }
    }

    fn value(&self, text: &str) -> Option<Value> {
        let json = serde_json::from_str::<Value>(text).ok();
        if !self.allowed.is_empty() {
            let is_it = |allowed: &&Value| {
                allowed.as_str() == Some(text) || json.as_ref() == Some(*allowed)
            };
            return self.allowed.iter().find(is_it).cloned();
        }
        let fits = |json: &Value| match json {
            Value::Null => self.allows("null"),
            Value::Bool(_) => self.allows("boolean"),
            Value::Number(number) => {
                let is_whole = number.is_i64() || number.is_u64();
                self.allows("number") || is_whole && self.allows("integer")
            }
            Value::Array(_) => self.allows("array"),
            Value::Object(_) => self.allows("object"),
            Value::String(_) => false,
        };
        if let Some(json) = json.filter(fits) {
            return Some(json);
        }
        if self.names.is_empty() || self.allows("string") {
            return Some(text.into());
        }
        let is_alone = self.is_array() && self.item(text).is_some();
        is_alone.then(|| Value::Array(self.item(text).into_iter().collect()))
    }

    fn item(&self, text: &str) -> Option<Value> {
        match &self.items {
            Some(items) => items.value(text),
            None => Some(text.into()),
        }
    }

    /// The types, in words.
    fn expected(&self) -> String {
        if !self.allowed.is_empty() {
            let shown = |value: &Value| match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let allowed: Vec<_> = self.allowed.iter().map(shown).collect();
            return format!("one of {}", allowed.join(", "));
        }
        let mut words: Vec<String> = Vec::new();
        for name in &self.names {
            let word = match (name.as_str(), &self.items) {
                ("integer", _) => "whole number".to_owned(),
                ("boolean", _) => "true or false".to_owned(),
                ("object", _) => "JSON object".to_owned(),
                ("array", Some(items)) => format!("array of {}", items.expected()),
                (other, _) => other.to_owned(),
            };
            if !words.contains(&word) {
                words.push(word);
            }
        }
        if words.is_empty() {
            "anything".to_owned()
        } else {
            words.join(" or ")
        }
    }
}

fn encoded(value: &Value) -> Result<Raw, String> {
    Raw::encode(value).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
