//! Builds a catalogue from all pages of a server's lists.

use std::collections::HashSet;
use std::sync::Arc;

use plexus_mcp_core::{Catalogue, Entry, Fault, List, Section};
use plexus_mcp_protocol::schema::Validator;
use plexus_mcp_protocol::{Era, code, method};
use plexus_mcp_wire::{Object, Raw};
use serde_json::Value;

use crate::link::LinkError;
use crate::rpc::RpcFailure;
use crate::server_facts::ServerFacts;

/// The most pages without entries that are followed. Pages with entries are bounded by the number of
/// entries, so that a list of small pages is fetched whole.
const MAX_EMPTY_PAGES: usize = 100;

const HEADER_ANNOTATION: &str = "x-mcp-header";

/// An invalid entry that is left out of the catalogue, and why: one bad tool must not affect the
/// others.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Quarantined {
    /// Which list.
    pub section: Section,
    /// Its name, or the beginning of its definition.
    pub name: String,
    /// Why it is left out.
    pub reason: String,
}

/// A problem of a list as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListProblem {
    /// The list could not be fetched although its capability is declared. It keeps its last known
    /// entries, or is empty (C37).
    Failed {
        /// Which list.
        section: Section,
        /// The error.
        reason: String,
    },
    /// The list has more entries, pages or bytes than the limit.
    TooLong(Section),
    /// A cursor was returned before.
    CursorLoop(Section),
    /// A cursor is not a string, so the following pages are missing.
    BadCursor(Section),
}

/// A server's lists.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) catalogue: Catalogue,
    pub(crate) quarantined: Vec<Quarantined>,
    pub(crate) list_problems: Vec<ListProblem>,
}

/// The limits of one list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListLimits {
    /// How many entries are kept.
    pub(crate) entries: usize,
    /// The size of all pages. A page with which they would be larger is left out.
    pub(crate) bytes: usize,
}

/// Fetches pages from a server.
pub(crate) trait Lister {
    async fn page(&self, method: &'static str, cursor: Option<String>) -> Result<Raw, RpcFailure>;
}

impl Listing {
    pub(crate) fn new(facts: &ServerFacts) -> Self {
        let mut catalogue = Catalogue::new(facts.identity.clone(), facts.capabilities.clone());
        catalogue.instructions.clone_from(&facts.instructions);
        Self {
            catalogue,
            quarantined: Vec::new(),
            list_problems: Vec::new(),
        }
    }

    /// Fetches one list again, if the server declares its capability (S004-12).
    pub(crate) async fn refresh(
        &mut self,
        section: Section,
        facts: &ServerFacts,
        lister: &impl Lister,
        limits: ListLimits,
    ) {
        if !declared(section, facts) {
            return;
        }
        self.quarantined.retain(|entry| entry.section != section);
        self.list_problems
            .retain(|problem| problem.section() != section);
        let definitions = match self.pages(section, lister, limits).await {
            Ok(definitions) => definitions,
            // A server with resources need not have templates.
            Err(RpcFailure::Error(error))
                if section == Section::Templates && error.code == code::METHOD_NOT_FOUND =>
            {
                Vec::new()
            }
            Err(failure) => {
                let reason = failure.to_string();
                let error = match failure {
                    RpcFailure::Error(error) => Fault::Upstream(error),
                    RpcFailure::Link(_) => {
                        Fault::Internal(format!("the list could not be fetched: {reason}"))
                    }
                };
                self.failed(section, reason, error);
                return;
            }
        };
        let list = self.sorted_out(section, definitions, facts);
        self.catalogue.set_list(section, list);
    }

    /// Takes over the lists of `catalogue`, to be replaced by what is fetched.
    pub(crate) fn adopt_lists(&mut self, catalogue: &Catalogue) {
        for section in Section::ALL {
            let list = Arc::clone(catalogue.list(section));
            self.catalogue.set_list(section, list);
            if let Some(error) = catalogue.list_error(section) {
                self.catalogue.set_list_error(section, error.clone());
            }
        }
    }

    /// The lists that could not be fetched.
    pub(crate) fn failed_sections(&self) -> Vec<Section> {
        let failed = self
            .list_problems
            .iter()
            .filter_map(|problem| match problem {
                ListProblem::Failed { section, .. } => Some(*section),
                ListProblem::TooLong(_)
                | ListProblem::CursorLoop(_)
                | ListProblem::BadCursor(_) => None,
            });
        failed.collect()
    }

    /// Records that a list timed out. It keeps its last known entries.
    pub(crate) fn unanswered(&mut self, section: Section) {
        let reason = "it was not answered in time".to_owned();
        let error = Fault::Internal(format!("the list could not be fetched: {reason}"));
        self.failed(section, reason, error);
    }

    /// Records why a list could not be fetched. It keeps its last known entries; if there are none,
    /// the error is passed on.
    fn failed(&mut self, section: Section, reason: String, error: Fault) {
        self.list_problems
            .push(ListProblem::Failed { section, reason });
        if self.catalogue.list(section).entries().is_empty() {
            self.catalogue.set_list_error(section, error);
        }
    }

    async fn pages(
        &mut self,
        section: Section,
        lister: &impl Lister,
        limits: ListLimits,
    ) -> Result<Vec<Raw>, RpcFailure> {
        let (method, member) = match section {
            Section::Tools => (method::TOOLS_LIST, "tools"),
            Section::Resources => (method::RESOURCES_LIST, "resources"),
            Section::Templates => (method::RESOURCE_TEMPLATES_LIST, "resourceTemplates"),
            Section::Prompts => (method::PROMPTS_LIST, "prompts"),
        };
        let mut definitions = Vec::new();
        let mut seen = HashSet::new();
        let mut cursor = None;
        let mut empty_pages = 0;
        let mut bytes: usize = 0;
        while empty_pages <= MAX_EMPTY_PAGES {
            let result = lister.page(method, cursor.take()).await?;
            let odd = |why: String| {
                RpcFailure::Link(LinkError::InvalidAnswer(format!(
                    "{method} got an invalid answer: {why}"
                )))
            };
            bytes = bytes.saturating_add(result.len());
            if bytes > limits.bytes {
                self.list_problems.push(ListProblem::TooLong(section));
                return Ok(definitions);
            }
            let page = Object::parse(&result).map_err(|error| odd(error.to_string()))?;
            let entries = page
                .get(member)
                .ok_or_else(|| odd(format!("no {member:?}")))?;
            let entries: Vec<Raw> = entries.decode().map_err(|error| odd(error.to_string()))?;
            empty_pages += usize::from(entries.is_empty());
            definitions.extend(entries);
            if definitions.len() > limits.entries {
                definitions.truncate(limits.entries);
                self.list_problems.push(ListProblem::TooLong(section));
                return Ok(definitions);
            }
            // PAGE-04: any cursor means that there are more pages, even an empty one.
            let next = page.get("nextCursor").map(Raw::decode::<Option<String>>);
            let next = match next {
                None | Some(Ok(None)) => return Ok(definitions),
                Some(Ok(Some(next))) => next,
                Some(Err(_)) => {
                    self.list_problems.push(ListProblem::BadCursor(section));
                    return Ok(definitions);
                }
            };
            if definitions.len() == limits.entries {
                self.list_problems.push(ListProblem::TooLong(section));
                return Ok(definitions);
            }
            if !seen.insert(next.clone()) {
                self.list_problems.push(ListProblem::CursorLoop(section));
                return Ok(definitions);
            }
            cursor = Some(next);
        }
        self.list_problems.push(ListProblem::TooLong(section));
        Ok(definitions)
    }

    /// Keeps the valid entries in the server's order, and quarantines the others with a reason.
    fn sorted_out(&mut self, section: Section, definitions: Vec<Raw>, facts: &ServerFacts) -> List {
        let mut entries: Vec<Entry> = Vec::with_capacity(definitions.len());
        let mut keys: HashSet<Arc<str>> = HashSet::new();
        for definition in definitions {
            let definition = match facts.revision.era() {
                Era::Handshake => without_header_annotations(definition),
                Era::Stateless => definition,
            };
            match checked(section, definition.clone()) {
                Ok(entry) if keys.contains(&entry.key) => {
                    self.set_apart(section, &definition, "the name is taken".to_owned());
                }
                Ok(entry) => {
                    keys.insert(Arc::clone(&entry.key));
                    entries.push(entry);
                }
                Err(reason) => self.set_apart(section, &definition, reason),
            }
        }
        // The keys are unique: duplicates were quarantined.
        List::new(entries).unwrap_or_default()
    }

    fn set_apart(&mut self, section: Section, definition: &Raw, reason: String) {
        let object = Object::parse(definition).ok();
        let name = object
            .and_then(|object| object.get(section.key())?.decode::<String>().ok())
            .unwrap_or_else(|| definition.as_str().chars().take(80).collect());
        tracing::warn!(%name, %reason, "left out an invalid entry of a list");
        self.quarantined.push(Quarantined {
            section,
            name,
            reason,
        });
    }
}

impl std::fmt::Display for ListProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let list = match self.section() {
            Section::Tools => "tools",
            Section::Resources => "resources",
            Section::Templates => "resource templates",
            Section::Prompts => "prompts",
        };
        let problem = match self {
            Self::Failed { reason, .. } => {
                return write!(f, "its {list} cannot be listed: {reason}");
            }
            Self::TooLong(_) => "is longer than the limit",
            Self::CursorLoop(_) => "repeats a cursor",
            Self::BadCursor(_) => "has an invalid cursor",
        };
        write!(
            f,
            "its list of {list} {problem}, so only the first entries are used"
        )
    }
}

impl ListProblem {
    fn section(&self) -> Section {
        match self {
            Self::Failed { section, .. }
            | Self::TooLong(section)
            | Self::CursorLoop(section)
            | Self::BadCursor(section) => *section,
        }
    }
}

fn declared(section: Section, facts: &ServerFacts) -> bool {
    match section {
        Section::Tools => facts.capabilities.tools.is_some(),
        Section::Resources | Section::Templates => facts.capabilities.resources.is_some(),
        Section::Prompts => facts.capabilities.prompts.is_some(),
    }
}

fn checked(section: Section, definition: Raw) -> Result<Entry, String> {
    let entry = Entry::new(section, definition).map_err(|error| error.to_string())?;
    if section == Section::Tools {
        let object = Object::parse(&entry.definition).map_err(|error| error.to_string())?;
        if let Some(schema) = object.get("inputSchema") {
            Validator::compile_tool_input(schema).map_err(|error| error.to_string())?;
        }
    }
    Ok(entry)
}

/// TRANSLATION §5.13: `x-mcp-header` has no meaning in the handshake era. It is removed, because
/// clients that know it would reject a tool with an invalid annotation.
fn without_header_annotations(definition: Raw) -> Raw {
    if !definition.as_str().contains(HEADER_ANNOTATION) {
        return definition;
    }
    let Ok(mut object) = Object::parse(&definition) else {
        return definition;
    };
    let Some(Ok(mut schema)) = object.get("inputSchema").map(Raw::decode) else {
        return definition;
    };
    strip(&mut schema);
    if let Ok(schema) = Raw::encode(&schema) {
        object.set("inputSchema", schema);
    }
    object.to_raw()
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.remove(HEADER_ANNOTATION);
            members.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}
