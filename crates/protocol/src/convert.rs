//! Converts messages of the newest revision to older ones (lowering): definitions, results and
//! questions.
//!
//! Everything works on raw JSON: members this crate does not know are kept, and a message that needs
//! no change is handed back as it is, without a copy. The features of a revision are read from [`Features`].
//! A message that does not match its schema is left as it is. The receiver reports the error.
//! `_meta` of definitions is kept for every revision: older schemas allow further members there, and
//! hosts of every revision read it.

use plexus_mcp_wire::{Kind, Object, Raw};

use crate::meta::key;
use crate::{Features, Revision, StructuredContent};

mod content;
mod edit;
mod elicitation;
mod raise;
mod sampling;

use edit::{Edit, edited, edited_items};

pub use elicitation::{InvalidAnswer, LoweredElicitation, LoweredForm, elicitation};
pub use raise::{raised_elicitation, raised_sampling, sampling_result};
pub use sampling::sampling_params;

/// A question that cannot be expressed in the revision of the other side.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unrepresentable {
    /// There is no elicitation by URL.
    #[error("the client's revision has no url elicitation")]
    UrlElicitation,
    /// A field of a form has no counterpart.
    #[error("the client's revision cannot ask for the form field {name:?}: {reason}")]
    FormField {
        /// The field.
        name: String,
        /// The reason.
        reason: &'static str,
    },
    /// Answers to the form could not be validated.
    #[error("the form's schema cannot be used: {0}")]
    FormSchema(String),
    /// There are no tools in sampling.
    #[error("the client's revision has no tools in sampling")]
    SamplingTools,
    /// There is no such content in sampling.
    #[error("the client's revision has no {0:?} content in sampling")]
    SamplingContent(String),
}

/// A tool's definition.
#[must_use]
pub fn tool_definition(tool: &Raw, features: &Features) -> Raw {
    lowered(tool, features, |tool| {
        if !features.titles {
            let title = tool.remove("title");
            if let Some(title) = title.filter(|_| features.tool_annotations) {
                annotate_title(tool, title);
            }
        }
        if !features.tool_annotations {
            tool.remove("annotations");
        }
        if !features.icons {
            tool.remove("icons");
        }
        let keeps_output =
            tool.get("outputSchema")
                .is_none_or(|schema| match features.structured_content {
                    StructuredContent::Absent => false,
                    StructuredContent::Object => is_of_objects(schema),
                    StructuredContent::Any => true,
                });
        if !keeps_output {
            tool.remove("outputSchema");
        }
        if !features.boolean_property_schemas {
            tool.map("inputSchema", with_object_properties);
            tool.map("outputSchema", with_object_properties);
        }
    })
}

/// A resource's definition.
#[must_use]
pub fn resource_definition(resource: &Raw, features: &Features) -> Raw {
    lowered(resource, features, |resource| {
        strip_presentation(resource, features);
        strip_annotations(resource, features);
    })
}

/// A resource template's definition.
#[must_use]
pub fn template_definition(template: &Raw, features: &Features) -> Raw {
    resource_definition(template, features)
}

/// A prompt's definition.
#[must_use]
pub fn prompt_definition(prompt: &Raw, features: &Features) -> Raw {
    lowered(prompt, features, |prompt| {
        strip_presentation(prompt, features);
        if !features.titles {
            prompt.map("arguments", |arguments| {
                edited_items(arguments, |_, argument| {
                    edited(argument, |argument| {
                        argument.remove("title");
                    })
                })
            });
        }
    })
}

/// The name and version of a client or server.
#[must_use]
pub fn implementation(implementation: &Raw, features: &Features) -> Raw {
    lowered(implementation, features, |implementation| {
        if !features.titles {
            implementation.remove("title");
        }
        if !features.icons {
            for key in ["description", "websiteUrl", "icons"] {
                implementation.remove(key);
            }
        }
    })
}

/// The common members of all results: for methods without a function of their own here.
#[must_use]
pub fn result(result: &Raw, features: &Features) -> Raw {
    lowered(result, features, |result| strip_result(result, features))
}

/// The result of `tools/call`.
///
/// Structured content that the revision does not support is appended as text.
#[must_use]
pub fn call_tool_result(result: &Raw, features: &Features) -> Raw {
    let needs_nothing =
        || content::is_complete(features) && !result.may_contain_key(&NOT_IN_EVERY_RESULT);
    if is_newest(features) || needs_nothing() {
        return result.clone();
    }
    lowered(result, features, |result| {
        strip_result(result, features);
        result.map("content", |content| {
            edited_items(content, |index, block| {
                content::lowered(block, index, features)
            })
        });
        let is_dropped = result.get("structuredContent").is_some_and(|value| {
            match features.structured_content {
                StructuredContent::Absent => true,
                StructuredContent::Object => value.kind() != Kind::Object,
                StructuredContent::Any => false,
            }
        });
        if is_dropped && let Some(value) = result.remove("structuredContent") {
            result.set("content", content::with_text(result.get("content"), &value));
        }
    })
}

/// Members of results that some revisions do not have, or have otherwise.
const NOT_IN_EVERY_RESULT: [&str; 5] = [
    "resultType",
    "ttlMs",
    "cacheScope",
    "_meta",
    "structuredContent",
];

/// The result of `prompts/get`.
#[must_use]
pub fn get_prompt_result(result: &Raw, features: &Features) -> Raw {
    lowered(result, features, |result| {
        strip_result(result, features);
        result.map("messages", |messages| {
            edited_items(messages, |index, message| {
                edited(message, |message| {
                    message.map("content", |block| content::lowered(block, index, features));
                })
            })
        });
    })
}

/// The result of `resources/read`.
#[must_use]
pub fn read_resource_result(result: &Raw, features: &Features) -> Raw {
    lowered(result, features, |result| {
        strip_result(result, features);
        if !features.titles {
            result.map("contents", |contents| {
                edited_items(contents, |_, contents| content::without_meta(contents))
            });
        }
    })
}

/// `raw` after `edit`. For the newest revision, `raw` is not parsed.
fn lowered(raw: &Raw, features: &Features, edit: impl FnOnce(&mut Edit)) -> Raw {
    if is_newest(features) {
        return raw.clone();
    }
    edited(raw, edit)
}

fn is_newest(features: &Features) -> bool {
    features == Revision::NEWEST_STATELESS.features()
}

fn strip_result(result: &mut Edit, features: &Features) {
    if features.typed_results {
        return;
    }
    for key in ["resultType", "ttlMs", "cacheScope"] {
        result.remove(key);
    }
    result.map("_meta", |meta| {
        edited(meta, |meta| {
            meta.remove(key::SERVER_INFO);
        })
    });
    if result
        .get("_meta")
        .is_some_and(|meta| *meta == Raw::empty_object())
    {
        result.remove("_meta");
    }
}

/// Members of resources, templates and prompts that later revisions added.
fn strip_presentation(definition: &mut Edit, features: &Features) {
    if !features.titles {
        definition.remove("title");
    }
    if !features.icons {
        definition.remove("icons");
    }
}

fn strip_annotations(annotated: &mut Edit, features: &Features) {
    if !features.last_modified {
        annotated.map("annotations", |annotations| {
            edited(annotations, |annotations| {
                annotations.remove("lastModified");
            })
        });
    }
}

/// Puts a tool's title where 2025-03-26 has it, unless there is one already.
fn annotate_title(tool: &mut Edit, title: Raw) {
    let annotations = tool
        .get("annotations")
        .cloned()
        .unwrap_or_else(Raw::empty_object);
    let annotations = edited(&annotations, |annotations| {
        if annotations.get("title").is_none() {
            annotations.set("title", title);
        }
    });
    tool.set("annotations", annotations);
}

fn is_of_objects(schema: &Raw) -> bool {
    let is_object = |name: &Raw| name.as_bytes() == br#""object""#;
    Object::parse(schema).is_ok_and(|schema| schema.get("type").is_some_and(is_object))
}

/// Writes the properties `true` and `false` of a schema as the objects that mean the same. Older
/// revisions have only objects there, and strict clients refuse the whole list for anything else.
fn with_object_properties(schema: &Raw) -> Raw {
    if !schema.contains_text("true") && !schema.contains_text("false") {
        return schema.clone();
    }
    edited(schema, |schema| {
        schema.map("properties", |properties| {
            edited(properties, |properties| {
                properties.map_all(|property| match property.as_bytes() {
                    b"true" => Raw::empty_object(),
                    b"false" => {
                        let mut nothing = Object::new();
                        nothing.set("not", Raw::empty_object());
                        nothing.to_raw()
                    }
                    _ => property.clone(),
                });
            })
        });
    })
}

#[cfg(test)]
mod tests;
