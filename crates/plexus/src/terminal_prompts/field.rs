//! One field of an elicitation form (ELIC-07).

use plexus_mcp_core::Raw;
use plexus_mcp_protocol::schema::Validator;
use plexus_mcp_wire::Object;
use serde::Deserialize;
use serde_json::Value;

use crate::printable::one_line;

/// One field of a form, and its valid values.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    title: Option<String>,
    explanation: Option<String>,
    kind: Kind,
    default: Option<Value>,
    is_required: bool,
    validator: Option<Validator>,
}

#[derive(Debug)]
enum Kind {
    Text { format: Option<String> },
    Number,
    Integer,
    Boolean,
    One(Vec<Choice>),
    Several(Vec<Choice>),
}

#[derive(Debug)]
struct Choice {
    value: String,
    title: String,
}

#[derive(Deserialize)]
struct Form {
    #[serde(default)]
    properties: Option<Raw>,
    #[serde(default)]
    required: Vec<String>,
}

impl Field {
    /// The fields of a form, in order.
    ///
    /// # Errors
    /// The schema is not a form.
    pub(super) fn all(schema: &Raw) -> Result<Vec<Self>, String> {
        let form: Form = schema.decode().map_err(|error| error.to_string())?;
        let properties = form.properties.unwrap_or_else(Raw::empty_object);
        let properties = Object::parse(&properties).map_err(|error| error.to_string())?;
        let fields = properties.iter().map(|(name, schema)| {
            let is_required = form.required.iter().any(|required| required == name);
            Self::new(name, schema, is_required)
        });
        fields.collect()
    }

    fn new(name: &str, schema: &Raw, is_required: bool) -> Result<Self, String> {
        let described: Value = schema.decode().map_err(|error| error.to_string())?;
        let text = |key: &str| described.get(key)?.as_str().map(one_line);
        let kind = match described.get("type").and_then(Value::as_str) {
            Some("number") => Kind::Number,
            Some("integer") => Kind::Integer,
            Some("boolean") => Kind::Boolean,
            Some("array") => Kind::Several(choices(described.get("items").unwrap_or(&Value::Null))),
            Some("string") | None => match choices(&described) {
                none if none.is_empty() => Kind::Text {
                    format: text("format"),
                },
                some => Kind::One(some),
            },
            Some(other) => return Err(format!("the field {name:?} is of the type {other:?}")),
        };
        Ok(Self {
            name: name.to_owned(),
            title: text("title"),
            explanation: text("description"),
            kind,
            default: described.get("default").cloned(),
            is_required,
            // A schema that cannot be compiled is not enforced here; the server validates as well.
            validator: Validator::compile(schema).ok(),
        })
    }

    /// The title and description.
    pub(super) fn description(&self) -> String {
        let name = one_line(&self.name);
        let title = self.title.as_ref().filter(|title| **title != name);
        let title = title.map_or_else(|| name.clone(), |title| format!("{title} ({name})"));
        let explanation = self.explanation.as_ref();
        let explanation = explanation.map_or_else(String::new, |text| format!(": {text}"));
        let mut lines = vec![format!("  {title}{explanation}")];
        if let Kind::One(choices) | Kind::Several(choices) = &self.kind {
            lines.extend(choices.iter().enumerate().map(|(index, choice)| {
                let value = one_line(&choice.value);
                let title = one_line(&choice.title);
                let title = if title == value {
                    value
                } else {
                    format!("{title} ({value})")
                };
                format!("    {} {title}", index + 1)
            }));
        }
        lines.join("\n")
    }

    /// The prompt: the expected type, and the default.
    pub(super) fn prompt(&self) -> String {
        let kind = match &self.kind {
            Kind::Text {
                format: Some(format),
            } => format.as_str(),
            Kind::Text { format: None } => "text",
            Kind::Number => "number",
            Kind::Integer => "whole number",
            Kind::Boolean => "y or n",
            Kind::One(_) => "one of them",
            Kind::Several(_) => "some of them, as in 1,3",
        };
        let enter = match &self.default {
            Some(default) => format!(" [{}]", one_line(&shown(default))),
            None if self.is_required => String::new(),
            None => " [nothing]".to_owned(),
        };
        format!("  {kind}{enter}> ")
    }

    /// Parses the typed answer; `None` if the field is left out.
    ///
    /// # Errors
    /// The answer is invalid; the text is shown to the user.
    pub(super) fn read(&self, typed: &str) -> Result<Option<Raw>, String> {
        let value = match typed.trim() {
            "" => match &self.default {
                Some(default) => default.clone(),
                None if self.is_required => return Err("this must be answered".to_owned()),
                None => return Ok(None),
            },
            typed => self.value(typed)?,
        };
        let value = Raw::encode(&value).map_err(|error| error.to_string())?;
        if let Some(validator) = &self.validator {
            validator.validate(&value).map_err(|violations| {
                let violations = violations.iter().map(|violation| violation.message.clone());
                one_line(&violations.collect::<Vec<_>>().join("; "))
            })?;
        }
        Ok(Some(value))
    }

    fn value(&self, typed: &str) -> Result<Value, String> {
        let number = || serde_json::from_str::<serde_json::Number>(typed);
        match &self.kind {
            Kind::Text { .. } => Ok(typed.into()),
            Kind::Number => match number() {
                Ok(number) => Ok(number.into()),
                Err(_) => Err("a number is expected, as in 2.5".to_owned()),
            },
            Kind::Integer => match number() {
                Ok(number) if number.is_i64() || number.is_u64() => Ok(number.into()),
                _ => Err("a whole number is expected, as in 3".to_owned()),
            },
            Kind::Boolean => match typed.to_lowercase().as_str() {
                "y" | "yes" | "true" => Ok(true.into()),
                "n" | "no" | "false" => Ok(false.into()),
                _ => Err("y or n is expected".to_owned()),
            },
            Kind::One(choices) => chosen(choices, typed).map(Into::into),
            Kind::Several(choices) => {
                let typed = typed
                    .split(',')
                    .map(str::trim)
                    .filter(|word| !word.is_empty());
                let values = typed.map(|word| chosen(choices, word).map(Value::from));
                Ok(Value::Array(values.collect::<Result<_, _>>()?))
            }
        }
    }
}

/// The choices of a schema, in any of the protocol's forms.
fn choices(schema: &Value) -> Vec<Choice> {
    let list = |key: &str| schema.get(key).and_then(Value::as_array);
    if let Some(titled) = list("oneOf").or_else(|| list("anyOf")) {
        let choice = |choice: &Value| {
            let value = choice.get("const")?.as_str()?.to_owned();
            let title = choice.get("title").and_then(Value::as_str);
            let title = title.unwrap_or(&value).to_owned();
            Some(Choice { value, title })
        };
        return titled.iter().filter_map(choice).collect();
    }
    let values = list("enum").into_iter().flatten();
    let titles = list("enumNames");
    let choice = |(index, value): (usize, &Value)| {
        let value = value.as_str()?.to_owned();
        let title = titles.and_then(|titles| titles.get(index)?.as_str());
        let title = title.unwrap_or(&value).to_owned();
        Some(Choice { value, title })
    };
    values.enumerate().filter_map(choice).collect()
}

/// The choice with this value, title or number.
fn chosen(choices: &[Choice], typed: &str) -> Result<String, String> {
    let named = choices.iter().find(|choice| choice.value == typed);
    let number = typed.parse::<usize>().ok();
    let numbered = || choices.get(number?.checked_sub(1)?);
    let titled = || {
        let typed = typed.to_lowercase();
        choices.iter().find(|choice| {
            [&choice.value, &choice.title]
                .iter()
                .any(|name| name.to_lowercase() == typed)
        })
    };
    let choice = named.or_else(numbered).or_else(titled);
    let choice =
        choice.ok_or_else(|| format!("a number from 1 to {} is expected", choices.len()))?;
    Ok(choice.value.clone())
}

fn shown(default: &Value) -> String {
    match default {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "y".to_owned(),
        Value::Bool(false) => "n".to_owned(),
        Value::Array(values) => values.iter().map(shown).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(schema: &Value, is_required: bool) -> Field {
        Field::new("it", &Raw::encode(schema).unwrap(), is_required).unwrap()
    }

    fn read(schema: &Value, typed: &str) -> Result<Value, String> {
        let read = field(schema, true).read(typed)?;
        Ok(read.unwrap().decode().unwrap())
    }

    /// ELIC-07, ELIC-15: the answer has the requested type and is within the requested bounds.
    #[test]
    fn answers_are_of_the_type_that_was_asked_for() {
        let integer = json!({"type": "integer", "minimum": 1, "maximum": 30});
        assert_eq!(read(&integer, " 7 "), Ok(json!(7)));
        assert!(read(&integer, "7.5").unwrap_err().contains("whole number"));
        assert!(read(&integer, "31").unwrap_err().contains("30"));
        assert_eq!(read(&json!({"type": "number"}), "2.5"), Ok(json!(2.5)));
        assert!(read(&json!({"type": "number"}), "two").is_err());
        assert_eq!(read(&json!({"type": "boolean"}), "Yes"), Ok(json!(true)));
        assert!(read(&json!({"type": "boolean"}), "maybe").is_err());
        let text = json!({"type": "string", "minLength": 3});
        assert!(read(&text, "ab").is_err());
        assert_eq!(read(&text, "123"), Ok(json!("123")));
    }

    #[test]
    fn choices_are_named_or_counted() {
        let plain =
            json!({"type": "string", "enum": ["red", "green"], "enumNames": ["Rot", "Grün"]});
        let titled = json!({"type": "string", "oneOf": [
            {"const": "red", "title": "Rot"}, {"const": "green", "title": "Grün"}
        ]});
        for schema in [plain, titled] {
            for typed in ["2", "green", "grün", "GREEN"] {
                assert_eq!(read(&schema, typed), Ok(json!("green")), "{schema} {typed}");
            }
            assert!(read(&schema, "3").unwrap_err().contains("from 1 to 2"));
            assert!(read(&schema, "0").is_err());
        }
        let several = json!({"type": "array", "items": {"enum": ["a", "b", "c"]}, "maxItems": 2});
        assert_eq!(read(&several, "1, c"), Ok(json!(["a", "c"])));
        assert!(read(&several, "1,2,3").is_err());
    }

    #[test]
    fn enter_takes_the_default_or_leaves_out() {
        let with_default = json!({"type": "boolean", "default": true});
        assert_eq!(read(&with_default, ""), Ok(json!(true)));
        assert!(field(&with_default, false).prompt().contains("[y]"));
        let without = json!({"type": "string"});
        assert_eq!(field(&without, false).read(" "), Ok(None));
        assert!(field(&without, true).read("").is_err());
    }

    #[test]
    fn fields_come_in_order() {
        let schema = json!({"type": "object", "required": ["b"], "properties": {}});
        let text = schema.to_string().replace(
            "\"properties\":{}",
            r#""properties":{"b":{"type":"string"},"a":{"type":"string","title":"A\u001b"}}"#,
        );
        let fields =
            Field::all(&Raw::parse(text.into(), &plexus_mcp_core::Limits::default()).unwrap());
        let fields = fields.unwrap();
        let names: Vec<_> = fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["b", "a"]);
        assert!(fields[0].is_required && !fields[1].is_required);
        assert_eq!(fields[1].description(), "  A\\u001b (a)");
    }
}
