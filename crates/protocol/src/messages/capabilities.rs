//! The capabilities of clients and servers.

use plexus_mcp_wire::{Kind, Object, ObjectError, Raw};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::codec;
use crate::{ElicitationModes, Features};

/// The capabilities of a client, parsed once, with the original JSON for relays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCapabilities {
    /// It has roots.
    pub roots: bool,
    /// It sends a notification when its roots change; not in 2026-07-28.
    pub roots_list_changed: bool,
    /// It has a model.
    pub sampling: Option<SamplingCapability>,
    /// It can ask its user.
    pub elicitation: Option<ElicitationCapability>,
    /// Extensions by id, an object.
    pub extensions: Option<Raw>,
    /// Capabilities that no revision defines, an object.
    pub experimental: Option<Raw>,
    raw: Raw,
}

impl ClientCapabilities {
    /// A client without capabilities: it can call, but not be asked anything.
    pub fn none() -> Self {
        Self {
            roots: false,
            roots_list_changed: false,
            sampling: None,
            elicitation: None,
            extensions: None,
            experimental: None,
            raw: Raw::empty_object(),
        }
    }

    /// Reads what a client declared. The tasks extension is left out: Plexus does not relay tasks, so
    /// no server may answer a call with one.
    pub fn from_raw(raw: &Raw) -> Result<Self, InvalidCapabilities> {
        let mut declared = Object::parse(raw)?;
        if let Some(extensions) = declared.get("extensions").filter(|all| declares_tasks(all)) {
            let others = without_tasks(extensions);
            declared.set("extensions", others.unwrap_or_else(Raw::empty_object));
        }
        let capability = |name: &'static str| -> Result<Option<Object>, InvalidCapabilities> {
            match declared.get(name) {
                Some(value) if value.kind() != Kind::Null => Object::parse(value)
                    .map(Some)
                    .map_err(|source| InvalidCapabilities::Member { name, source }),
                _ => Ok(None),
            }
        };
        let roots = capability("roots")?;
        Ok(Self {
            roots: roots.is_some(),
            roots_list_changed: roots.is_some_and(|roots| is_true(roots.get("listChanged"))),
            sampling: capability("sampling")?.map(|sampling| SamplingCapability {
                tools: has(&sampling, "tools"),
                context: has(&sampling, "context"),
            }),
            elicitation: capability("elicitation")?.map(|elicitation| {
                let url = has(&elicitation, "url");
                ElicitationCapability {
                    form: has(&elicitation, "form") || !url,
                    url,
                }
            }),
            extensions: capability("extensions")?.map(|object| object.to_raw()),
            experimental: capability("experimental")?.map(|object| object.to_raw()),
            raw: declared.to_raw(),
        })
    }

    /// A client with every capability of the protocol.
    pub fn everything() -> Self {
        Self {
            roots: true,
            sampling: Some(SamplingCapability {
                tools: true,
                context: false,
            }),
            elicitation: Some(ElicitationCapability {
                form: true,
                url: true,
            }),
            ..Self::none()
        }
        .profile()
    }

    /// The subset of these capabilities that can be used with the revision with `features` (LIFE-09).
    ///
    /// A declared capability counts even if a later revision introduced it: the client supports the
    /// request. Only forms of requests that the revision cannot express are left out.
    #[must_use]
    pub fn within(&self, features: &Features) -> Self {
        let mut within = self.clone();
        within.elicitation = self
            .elicitation
            .map(|elicitation| match features.elicitation {
                ElicitationModes::Absent | ElicitationModes::Form => ElicitationCapability {
                    form: true,
                    url: false,
                },
                ElicitationModes::FormAndUrlWithId | ElicitationModes::FormAndUrl => elicitation,
            });
        if let Some(sampling) = &mut within.sampling {
            sampling.tools &= features.sampling_tools;
        }
        if within == *self {
            within
        } else {
            within.profile()
        }
    }

    /// The subset of these capabilities that matters to a server, in canonical form: equal for all
    /// clients with the same abilities (TRANSLATION §4).
    #[must_use]
    pub fn profile(&self) -> Self {
        let flags = |flags: &[(&'static str, bool)]| {
            let mut object = Object::new();
            for (name, _) in flags.iter().filter(|(_, set)| *set) {
                object.set(*name, Raw::empty_object());
            }
            object.to_raw()
        };
        let mut declared = Object::new();
        if let Some(ElicitationCapability { form, url }) = self.elicitation {
            declared.set("elicitation", flags(&[("form", form), ("url", url)]));
        }
        let extensions = self.extensions.as_ref().and_then(without_tasks);
        if let Some(extensions) = &extensions {
            declared.set("extensions", extensions.clone());
        }
        if self.roots {
            declared.set("roots", Raw::empty_object());
        }
        if let Some(SamplingCapability { tools, context }) = self.sampling {
            declared.set("sampling", flags(&[("context", context), ("tools", tools)]));
        }
        Self {
            roots_list_changed: false,
            extensions,
            experimental: None,
            raw: declared.to_raw(),
            ..self.clone()
        }
    }

    /// The original JSON of the capabilities, without the tasks extension.
    pub fn raw(&self) -> &Raw {
        &self.raw
    }
}

fn declares_tasks(extensions: &Raw) -> bool {
    Object::parse(extensions)
        .is_ok_and(|extensions| extensions.get(crate::key::TASKS_EXTENSION).is_some())
}

/// The extensions but tasks, in order; `None` if there is no other.
fn without_tasks(extensions: &Raw) -> Option<Raw> {
    let extensions = Object::parse(extensions).ok()?;
    let mut kept: Vec<_> = extensions
        .iter()
        .filter(|(id, _)| *id != crate::key::TASKS_EXTENSION)
        .collect();
    kept.sort_unstable_by_key(|(id, _)| *id);
    let mut object = Object::new();
    for (id, settings) in &kept {
        object.set((*id).to_owned(), (*settings).clone());
    }
    (!kept.is_empty()).then(|| object.to_raw())
}

impl Serialize for ClientCapabilities {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ClientCapabilities {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_raw(&Raw::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// Capabilities that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidCapabilities {
    /// The capabilities are not a JSON object.
    #[error("client capabilities must be an object")]
    Whole(#[from] ObjectError),
    /// One of them is no object.
    #[error("client capability {name:?} must be an object")]
    Member {
        /// The capability.
        name: &'static str,
        /// Why the value is not an object.
        source: ObjectError,
    },
}

/// The sampling capabilities of a client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SamplingCapability {
    /// It can use tools.
    pub tools: bool,
    /// It can be given the client's context.
    pub context: bool,
}

/// The ways in which the user of a client can be asked. `{}` on the wire means by form (ELIC-02).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ElicitationCapability {
    /// By a form.
    pub form: bool,
    /// By a page to visit.
    pub url: bool,
}

/// One capability that a server may need of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "code that asks must handle every kind of question"
)]
pub enum ClientCapability {
    /// Roots.
    Roots,
    /// A model.
    Sampling,
    /// A model that can use tools.
    SamplingTools,
    /// A model that can be given the client's context.
    SamplingContext,
    /// A user, asked by a form.
    ElicitationForm,
    /// A user, asked to visit a page.
    ElicitationUrl,
}

impl ClientCapability {
    /// Whether the client can.
    pub fn declared_in(self, client: &ClientCapabilities) -> bool {
        let sampling = client.sampling;
        let elicitation = client.elicitation;
        match self {
            Self::Roots => client.roots,
            Self::Sampling => sampling.is_some(),
            Self::SamplingTools => sampling.is_some_and(|sampling| sampling.tools),
            Self::SamplingContext => sampling.is_some_and(|sampling| sampling.context),
            Self::ElicitationForm => elicitation.is_some_and(|elicitation| elicitation.form),
            Self::ElicitationUrl => elicitation.is_some_and(|elicitation| elicitation.url),
        }
    }

    /// Its path among the capabilities.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Roots => "roots",
            Self::Sampling => "sampling",
            Self::SamplingTools => "sampling.tools",
            Self::SamplingContext => "sampling.context",
            Self::ElicitationForm => "elicitation",
            Self::ElicitationUrl => "elicitation.url",
        }
    }

    /// The capabilities to declare: `data.requiredCapabilities` of the error `-32021`.
    pub fn required(self) -> Raw {
        self.as_str()
            .rsplit('.')
            .fold(Raw::empty_object(), |inner, name| {
                let mut outer = Object::new();
                outer.set(name, inner);
                outer.to_raw()
            })
    }
}

/// The capabilities of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerCapabilities {
    /// It has tools.
    pub tools: Option<ListCapability>,
    /// It has resources.
    pub resources: Option<ResourcesCapability>,
    /// It has prompts.
    pub prompts: Option<ListCapability>,
    /// It completes arguments.
    pub completions: bool,
    /// It sends log messages.
    pub logging: bool,
    /// Extensions by id, an object.
    pub extensions: Option<Raw>,
    /// Capabilities that no revision defines, an object.
    pub experimental: Option<Raw>,
}

impl ServerCapabilities {
    /// Reads what a server declares; members that no revision defines are ignored.
    ///
    /// # Errors
    /// Not an object, or a known member of the wrong form.
    pub fn from_raw(raw: &Raw) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Declared {
            tools: Option<ListCapability>,
            resources: Option<ResourcesCapability>,
            prompts: Option<ListCapability>,
            completions: Option<Raw>,
            logging: Option<Raw>,
            extensions: Option<Raw>,
            experimental: Option<Raw>,
        }
        let declared: Declared = raw.decode()?;
        Ok(Self {
            tools: declared.tools,
            resources: declared.resources,
            prompts: declared.prompts,
            completions: declared.completions.is_some(),
            logging: declared.logging.is_some(),
            extensions: declared.extensions.as_ref().and_then(without_tasks),
            experimental: declared.experimental,
        })
    }

    /// These capabilities as JSON of the revision with `features`.
    ///
    /// `extensions` is written for every revision: the extensions themselves put it into the older
    /// ones, whose schemas are open.
    pub fn to_raw(&self, features: &Features) -> Raw {
        let mut declared = Object::new();
        if let Some(experimental) = &self.experimental {
            declared.set("experimental", experimental.clone());
        }
        if let Some(extensions) = &self.extensions {
            declared.set("extensions", extensions.clone());
        }
        if self.logging {
            declared.set("logging", Raw::empty_object());
        }
        if self.completions && features.completions_capability {
            declared.set("completions", Raw::empty_object());
        }
        if let Some(prompts) = &self.prompts {
            declared.set("prompts", codec::to_raw(prompts));
        }
        if let Some(resources) = &self.resources {
            declared.set("resources", codec::to_raw(resources));
        }
        if let Some(tools) = &self.tools {
            declared.set("tools", codec::to_raw(tools));
        }
        declared.to_raw()
    }
}

/// The capabilities of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListCapability {
    /// It sends a notification when the list changes.
    #[serde(skip_serializing_if = "codec::is_false")]
    pub list_changed: bool,
}

/// The capabilities of resources.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourcesCapability {
    /// It sends a notification when a resource changes.
    #[serde(skip_serializing_if = "codec::is_false")]
    pub subscribe: bool,
    /// It sends a notification when the list changes.
    #[serde(skip_serializing_if = "codec::is_false")]
    pub list_changed: bool,
}

fn has(object: &Object, key: &str) -> bool {
    object
        .get(key)
        .is_some_and(|value| value.kind() != Kind::Null)
}

fn is_true(value: Option<&Raw>) -> bool {
    value.is_some_and(|value| value.as_bytes() == b"true")
}
