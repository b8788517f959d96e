//! One field of a form: its lowered schema, and what its answer becomes.

use plexus_mcp_wire::{Kind, Limits, Object, Raw};

use super::choices::{Choices, as_text};
use crate::convert::edit::{edited, items};
use crate::messages::to_raw;

/// How much of an answer is quoted in a reason, in characters.
const MAX_QUOTED_CHARS: usize = 100;

/// Keywords of lists, and of choices among whole lists, that a text field does not have.
const LIST_KEYWORDS: [&str; 12] = [
    "items",
    "prefixItems",
    "contains",
    "minContains",
    "maxContains",
    "minItems",
    "maxItems",
    "uniqueItems",
    "enum",
    "const",
    "oneOf",
    "anyOf",
];

/// A lowered field: how its answer is converted to a value of the original schema.
#[derive(Debug, Clone)]
pub(super) enum LoweredField {
    /// One of several values, which may be named by its title.
    One(Choices),
    /// A list, written as text.
    List {
        items: ListItems,
        /// The list may be empty.
        may_be_empty: bool,
    },
    /// The answer is of the right type as it is.
    AsIs,
}

/// The type of the items of a list.
#[derive(Debug, Clone)]
pub(super) enum ListItems {
    Choices(Choices),
    /// Any strings.
    Strings,
    /// Numbers or booleans, written as JSON.
    Scalars,
}

/// The schema of a field for 2025-06-18, and how to convert the answer back; `None` if that revision
/// supports the field unchanged.
///
/// # Errors
/// That revision cannot ask for the field; the text is the reason.
pub(super) fn lowered(field: &Raw) -> Result<Option<(Raw, LoweredField)>, &'static str> {
    let Ok(schema) = Object::parse(field) else {
        return Ok(None);
    };
    let field_type = type_of(&schema);
    match field_type.as_deref() {
        Some("object") => Err("it is an object, and a form has flat fields only"),
        Some("array") => {
            let items = list_items(&schema)?;
            let text_field = as_text_field(field, &schema, &items);
            let may_be_empty = count(&schema, "minItems").is_none_or(|min| min == 0);
            let lowered = LoweredField::List {
                items,
                may_be_empty,
            };
            Ok(Some((text_field, lowered)))
        }
        _ if !schema.contains("oneOf") && !schema.contains("anyOf") => Ok(None),
        _ => match Choices::of(&schema) {
            Some(choices) => Ok(Some((
                as_named_enum(field, &choices),
                LoweredField::One(choices),
            ))),
            None if field_type.is_none() => {
                Err("it is neither a text, a number, a boolean nor a choice among values")
            }
            // The revision has no such keyword; the answer is validated by it all the same.
            None => {
                let plain = edited(field, |field| {
                    field.remove("oneOf");
                    field.remove("anyOf");
                });
                Ok(Some((plain, LoweredField::AsIs)))
            }
        },
    }
}

impl LoweredField {
    /// Converts `answer` to the form of the original schema; `None` if the field was left empty.
    ///
    /// # Errors
    /// The answer is invalid; the text is the reason.
    pub(super) fn raise(&self, answer: &Raw, is_required: bool) -> Result<Option<Raw>, String> {
        let text = answer.text();
        let is_blank = answer.kind() == Kind::Null || text.as_deref().is_some_and(is_blank);
        match self {
            Self::AsIs => Ok(Some(answer.clone())),
            Self::One(choices) => {
                let written = as_text(answer);
                let found = choices.find(&written);
                match found.or_else(|| choices.find(written.trim())) {
                    Some(choice) => Ok(Some(choice.value.clone())),
                    None if is_blank && !is_required => Ok(None),
                    None => Err(not_allowed(&written)),
                }
            }
            // An empty text is an empty list, or no answer where there can be no such list.
            Self::List { may_be_empty, .. } if is_blank => {
                let is_list = *may_be_empty || is_required;
                Ok(is_list.then(|| Raw::from_static("[]")))
            }
            Self::List { items: list, .. } => match (text, items(answer)) {
                (Some(text), _) => list.raise_text(text.trim()).map(Some),
                (None, Some(elements)) => list.raise_elements(&elements).map(Some),
                (None, None) => Ok(Some(answer.clone())),
            },
        }
    }
}

impl ListItems {
    /// The list that a text describes: a JSON array, or values with commas between them.
    fn raise_text(&self, text: &str) -> Result<Raw, String> {
        if text.starts_with('[')
            && let Ok(array) = Raw::parse(text.to_owned().into(), &Limits::default())
            && let Some(elements) = items(&array)
        {
            return self.raise_elements(&elements);
        }
        match self {
            Self::Choices(choices) => {
                let named = choices.split(text).map_err(not_allowed)?;
                Ok(Raw::array(named.iter().map(|choice| &choice.value)))
            }
            Self::Strings | Self::Scalars => {
                let parts = text
                    .split(',')
                    .map(str::trim)
                    .filter(|part| !is_blank(part));
                let parts: Vec<_> = parts.map(Raw::string).collect();
                self.raise_elements(&parts)
            }
        }
    }

    fn raise_elements(&self, elements: &[Raw]) -> Result<Raw, String> {
        match self {
            Self::Choices(choices) => {
                let named = choices.named_by(elements);
                let named = named.map_err(|written| not_allowed(&written))?;
                Ok(Raw::array(named.iter().map(|choice| &choice.value)))
            }
            Self::Strings => Ok(Raw::array(elements)),
            Self::Scalars => {
                let scalars: Vec<_> = elements.iter().map(as_scalar).collect();
                Ok(Raw::array(&scalars))
            }
        }
    }
}

/// The JSON type of a schema. `null` in a list of types is ignored.
fn type_of(schema: &Object) -> Option<String> {
    let declared = schema.get("type")?;
    let names = items(declared).unwrap_or_else(|| vec![declared.clone()]);
    let mut names = names.iter().filter_map(Raw::text);
    let name = names.find(|name| name != "null");
    name.map(Into::into)
}

fn count(schema: &Object, keyword: &str) -> Option<u64> {
    schema.get(keyword)?.decode().ok()
}

fn list_items(field: &Object) -> Result<ListItems, &'static str> {
    let items = field
        .get("items")
        .and_then(|items| Object::parse(items).ok());
    let items = items.ok_or("it is a list, and nothing says what it is a list of")?;
    if let Some(choices) = Choices::of(&items) {
        return Ok(ListItems::Choices(choices));
    }
    match type_of(&items).as_deref() {
        Some("string") => Ok(ListItems::Strings),
        Some("number" | "integer" | "boolean") => Ok(ListItems::Scalars),
        Some(_) => Err("it is a list of objects or lists, which cannot be written as text"),
        None => Err("it is a list, and nothing says of which type its items are"),
    }
}

/// A list as a text field that says what to write.
fn as_text_field(field: &Raw, schema: &Object, list: &ListItems) -> Raw {
    let description = description(schema, list);
    edited(field, |field| {
        for keyword in LIST_KEYWORDS {
            field.remove(keyword);
        }
        field.set("type", Raw::string("string"));
        field.set("description", Raw::string(&description));
        if let Some(default) = field.remove("default").as_ref().and_then(items) {
            field.set("default", Raw::string(&list_as_text(&default)));
        }
    })
}

/// Titled choices in their older form: values and names in two lists.
fn as_named_enum(field: &Raw, choices: &Choices) -> Raw {
    let texts: Vec<_> = choices.iter().map(|choice| &choice.text).collect();
    let names = choices.iter();
    let names: Vec<_> = names
        .map(|choice| choice.title.as_ref().unwrap_or(&choice.text))
        .collect();
    edited(field, |field| {
        field.remove("oneOf");
        field.remove("anyOf");
        field.set("enum", to_raw(&texts));
        field.set("enumNames", to_raw(&names));
        if !choices.are_strings() || field.get("type").is_none() {
            field.set("type", Raw::string("string"));
            field.map("default", |default| Raw::string(&as_text(default)));
        }
    })
}

fn description(field: &Object, list: &ListItems) -> String {
    let mut sentences = Vec::new();
    if let Some(own) = field.text("description").filter(|own| !is_blank(own)) {
        let own = own.trim_end();
        let end = if own.ends_with(['.', '!', '?', ':']) {
            ""
        } else {
            "."
        };
        sentences.push(format!("{own}{end}"));
    }
    if let ListItems::Choices(choices) = list {
        let choices = choices.iter().map(|choice| match &choice.title {
            Some(title) => format!("{} ({title})", quoted_if_needed(&choice.text)),
            None => quoted_if_needed(&choice.text),
        });
        let choices: Vec<_> = choices.collect();
        sentences.push(format!("Allowed values: {}.", choices.join(", ")));
    }
    let has_commas = matches!(list, ListItems::Choices(choices) if choices.have_commas());
    sentences.push(if has_commas {
        r#"Write several as a JSON array, like ["first", "second"]."#.to_owned()
    } else {
        "Separate several values with commas, or write a JSON array.".to_owned()
    });
    let at_least = count(field, "minItems").filter(|min| *min > 0);
    match (at_least, count(field, "maxItems")) {
        (Some(min), Some(max)) if min == max => sentences.push(format!("Exactly {min}.")),
        (Some(min), Some(max)) => sentences.push(format!("At least {min}, at most {max}.")),
        (Some(min), None) => sentences.push(format!("At least {min}.")),
        (None, Some(max)) => sentences.push(format!("At most {max}.")),
        (None, None) => {}
    }
    sentences.join(" ")
}

/// A list as a person writes it: with commas, unless a value of it has one.
fn list_as_text(list: &[Raw]) -> String {
    let texts: Vec<_> = list.iter().map(as_text).collect();
    if texts.iter().any(|text| needs_quotes(text)) {
        return Raw::array(list).as_str().to_owned();
    }
    texts.join(", ")
}

fn quoted_if_needed(text: &str) -> String {
    if needs_quotes(text) {
        Raw::string(text).as_str().to_owned()
    } else {
        text.to_owned()
    }
}

/// Whether a value must be quoted in a comma-separated list to be read as itself.
fn needs_quotes(text: &str) -> bool {
    text.is_empty() || text.trim() != text || text.contains(',') || text.starts_with('[')
}

/// The JSON value that a text spells, such as a number or boolean. Any other text stays a string,
/// which the schema then refuses.
fn as_scalar(element: &Raw) -> Raw {
    let parsed = element
        .text()
        .and_then(|text| Raw::parse(text.trim().to_owned().into(), &Limits::default()).ok());
    parsed.unwrap_or_else(|| element.clone())
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn not_allowed(written: &str) -> String {
    let quoted: String = written.chars().take(MAX_QUOTED_CHARS).collect();
    format!("{quoted:?} is not one of the allowed values")
}
