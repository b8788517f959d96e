//! The catalogue of a service: an immutable snapshot, replaced as a whole.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use plexus_mcp_protocol::Fault;
use plexus_mcp_protocol::header::{HeaderParams, InvalidHeaderAnnotation};
use plexus_mcp_protocol::messages::{Implementation, ServerCapabilities};
use plexus_mcp_wire::{Object, ObjectError, Raw};
use sha2::{Digest, Sha256};

/// A definition that cannot be offered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidDefinition {
    /// Not an object, or with duplicate members.
    #[error("the definition is malformed: {0}")]
    Malformed(#[from] ObjectError),
    /// The member that names it is missing or not a string.
    #[error("the definition has no string member {0:?}")]
    Unnamed(&'static str),
    /// Its `x-mcp-header` annotations break the rules (HDR26-22).
    #[error(transparent)]
    Header(#[from] InvalidHeaderAnnotation),
    /// Its input schema is missing or not an object (TOOL-10).
    #[error("the tool has no object as inputSchema")]
    NoInputSchema,
    /// Another definition has the same name.
    #[error("{0:?} is defined twice")]
    Duplicate(Arc<str>),
}

/// Which list of a catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the lists are fixed by the protocol"
)]
pub enum Section {
    /// `tools/list`
    Tools,
    /// `resources/list`
    Resources,
    /// `resources/templates/list`
    Templates,
    /// `prompts/list`
    Prompts,
}

impl Section {
    /// Every list.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Resources, Self::Templates, Self::Prompts];

    /// The member by which its entries are named.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }
}

/// One tool, resource, template or prompt.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Entry {
    /// Its name or URI, unique in its list.
    pub key: Arc<str>,
    /// Its definition in the newest form, unknown members included.
    pub definition: Raw,
    /// Which arguments a stateless HTTP client mirrors in headers (tools only).
    pub headers: HeaderParams,
}

impl Entry {
    /// Reads the entry of `section` that `definition` defines.
    ///
    /// # Errors
    /// See [`InvalidDefinition`].
    pub fn new(section: Section, definition: Raw) -> Result<Self, InvalidDefinition> {
        let object = Object::parse(&definition)?;
        let key = object
            .get(section.key())
            .and_then(|key| key.decode::<String>().ok())
            .ok_or(InvalidDefinition::Unnamed(section.key()))?;
        let headers = match section {
            Section::Tools => {
                let schema = object
                    .get("inputSchema")
                    .filter(|schema| schema.kind() == plexus_mcp_wire::Kind::Object)
                    .ok_or(InvalidDefinition::NoInputSchema)?;
                HeaderParams::from_input_schema(schema)?
            }
            Section::Resources | Section::Templates | Section::Prompts => HeaderParams::default(),
        };
        Ok(Self {
            key: key.into(),
            definition,
            headers,
        })
    }

    /// An entry of `section` whose key is known, such as one from a cache. The definition is parsed
    /// only if it may have `x-mcp-header` annotations.
    ///
    /// # Errors
    /// See [`InvalidDefinition`].
    pub fn with_key(
        section: Section,
        key: impl Into<Arc<str>>,
        definition: Raw,
    ) -> Result<Self, InvalidDefinition> {
        if section == Section::Tools && HeaderParams::may_be_annotated(&definition) {
            return Self::new(section, definition);
        }
        Ok(Self {
            key: key.into(),
            definition,
            headers: HeaderParams::default(),
        })
    }

    /// The same entry of `section` under another name or URI.
    ///
    /// # Errors
    /// The definition is malformed.
    pub fn renamed(&self, section: Section, key: &str) -> Result<Self, InvalidDefinition> {
        let name = Raw::encode(key).map_err(|_error| InvalidDefinition::Unnamed(section.key()))?;
        let mut definition = Object::parse(&self.definition)?;
        definition.set(section.key(), name);
        let definition = definition.to_raw();
        Ok(Self {
            key: key.into(),
            definition,
            headers: self.headers.clone(),
        })
    }
}

/// One list, in the order it is shown, with its content hash.
#[derive(Debug, Clone, Default)]
pub struct List {
    entries: Vec<Entry>,
    index: HashMap<Arc<str>, usize>,
    /// Computed on first use: with many servers, only the merged list is compared.
    hash: OnceLock<[u8; 32]>,
}

impl List {
    /// The list of these entries.
    ///
    /// # Errors
    /// Two entries have the same key.
    pub fn new(entries: Vec<Entry>) -> Result<Self, InvalidDefinition> {
        let mut index = HashMap::with_capacity(entries.len());
        for (position, entry) in entries.iter().enumerate() {
            if index.insert(Arc::clone(&entry.key), position).is_some() {
                return Err(InvalidDefinition::Duplicate(Arc::clone(&entry.key)));
            }
        }
        Ok(Self {
            entries,
            index,
            hash: OnceLock::new(),
        })
    }

    /// The entries, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry named `key`.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.index
            .get(key)
            .and_then(|position| self.entries.get(*position))
    }

    /// The content hash. It is the same on every machine.
    pub fn hash(&self) -> &[u8; 32] {
        self.hash.get_or_init(|| {
            let mut hasher = Sha256::new();
            for entry in &self.entries {
                hasher.update((entry.definition.len() as u64).to_le_bytes());
                hasher.update(entry.definition.as_bytes());
            }
            hasher.finalize().into()
        })
    }

    /// Whether the content differs. A list is not hashed to be compared with itself.
    pub fn differs_from(&self, other: &Self) -> bool {
        let is_other = !std::ptr::eq(self, other);
        is_other && (self.entries.len() != other.entries.len() || self.hash() != other.hash())
    }
}

/// How long a list may be cached, and whether callers may share it (CACHE26-01).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "mirrors the protocol's two members"
)]
pub struct CacheHints {
    /// Milliseconds for which it stays fresh.
    pub ttl_ms: u64,
    /// Whether it is the same for every caller.
    pub public: bool,
}

impl CacheHints {
    /// No caching: the default when nothing is known.
    pub const NONE: Self = Self {
        ttl_ms: 0,
        public: false,
    };
}

/// A snapshot of everything that a service offers.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Catalogue {
    /// The name and version of the server, sent as `serverInfo`.
    pub identity: Implementation,
    /// Instructions to the model on how to use the server.
    pub instructions: Option<String>,
    /// The capabilities of the server.
    pub capabilities: ServerCapabilities,
    /// How long lists may be cached.
    pub cache: CacheHints,
    tools: Arc<List>,
    resources: Arc<List>,
    templates: Arc<List>,
    prompts: Arc<List>,
    list_errors: HashMap<Section, Fault>,
}

impl Catalogue {
    /// A catalogue without entries.
    pub fn new(identity: Implementation, capabilities: ServerCapabilities) -> Self {
        Self {
            identity,
            instructions: None,
            capabilities,
            cache: CacheHints::NONE,
            tools: Arc::default(),
            resources: Arc::default(),
            templates: Arc::default(),
            prompts: Arc::default(),
            list_errors: HashMap::new(),
        }
    }

    /// Why the entries of a list are not known. A request for the list is answered with this.
    pub fn list_error(&self, section: Section) -> Option<&Fault> {
        self.list_errors.get(&section)
    }

    /// Sets why the entries of a list are not known. [`Self::set_list`] removes it.
    pub fn set_list_error(&mut self, section: Section, error: Fault) {
        self.list_errors.insert(section, error);
    }

    /// One of the lists.
    pub fn list(&self, section: Section) -> &Arc<List> {
        match section {
            Section::Tools => &self.tools,
            Section::Resources => &self.resources,
            Section::Templates => &self.templates,
            Section::Prompts => &self.prompts,
        }
    }

    /// Replaces one of the lists.
    pub fn set_list(&mut self, section: Section, list: impl Into<Arc<List>>) {
        let list = list.into();
        self.list_errors.remove(&section);
        match section {
            Section::Tools => self.tools = list,
            Section::Resources => self.resources = list,
            Section::Templates => self.templates = list,
            Section::Prompts => self.prompts = list,
        }
    }

    /// Whether this catalogue differs from `other`.
    pub fn differs_from(&self, other: &Self) -> bool {
        self.changes_since(other) != Changes::default()
            || self.identity != other.identity
            || self.instructions != other.instructions
            || self.capabilities != other.capabilities
            || self.cache != other.cache
            || self.list_errors != other.list_errors
    }

    /// Which lists differ from those of `before`.
    pub fn changes_since(&self, before: &Self) -> Changes {
        let differs = |section| self.list(section).differs_from(before.list(section));
        Changes {
            tools: differs(Section::Tools),
            resources: differs(Section::Resources) || differs(Section::Templates),
            prompts: differs(Section::Prompts),
        }
    }
}

/// Which lists changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "one member for each list_changed notification"
)]
pub struct Changes {
    /// The tools did.
    pub tools: bool,
    /// The resources or the templates did.
    pub resources: bool,
    /// The prompts did.
    pub prompts: bool,
}
