//! Builds a catalogue from all pages of a server's lists.

use std::collections::HashSet;
use std::sync::Arc;

use plexus_mcp_core::{Catalogue, Entry, List, Section};
use plexus_mcp_protocol::schema::Validator;
use plexus_mcp_protocol::{Era, code, method};
use plexus_mcp_wire::{Object, Raw};
use serde_json::Value;

use crate::link::LinkError;
use crate::rpc::RpcFailure;
use crate::server_facts::ServerFacts;

/// The most pages of one list that are followed.
const MAX_PAGES: usize = 1000;

const HEADER_ANNOTATION: &str = "x-mcp-header";

/// An entry of a list that is not shown, and why (pains 5 and 8 of users everywhere: one bad tool
/// must not cost the others).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Quarantined {
    /// Which list.
    pub section: Section,
    /// Its name, or what can be made out of it.
    pub name: String,
    /// Why it is not shown.
    pub reason: String,
}

/// Something odd about a list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListProblem {
    /// A list call failed although its capability is declared; the list counts as empty (C37).
    Failed {
        /// Which list.
        section: Section,
        /// What the server said.
        reason: String,
    },
    /// A list has more entries or pages than are followed.
    TooLong(Section),
    /// A cursor leads back to itself.
    CursorLoop(Section),
    /// A cursor is no string; what comes after it is missing.
    BadCursor(Section),
}

/// A server's lists.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) catalogue: Catalogue,
    pub(crate) quarantined: Vec<Quarantined>,
    pub(crate) list_problems: Vec<ListProblem>,
}

/// Asks a server for pages.
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

    /// Fetches one list anew, if the server declares that it has it (S004-12).
    pub(crate) async fn refresh(
        &mut self,
        section: Section,
        facts: &ServerFacts,
        lister: &impl Lister,
        max_entries: usize,
    ) {
        if !declared(section, facts) {
            return;
        }
        self.quarantined.retain(|entry| entry.section != section);
        self.list_problems
            .retain(|problem| problem.section() != section);
        let definitions = match self.pages(section, lister, max_entries).await {
            Ok(definitions) => definitions,
            // Nothing says that a server with resources has templates, too.
            Err(RpcFailure::Error(error))
                if section == Section::Templates && error.code == code::METHOD_NOT_FOUND =>
            {
                Vec::new()
            }
            Err(failure) => {
                let reason = failure.to_string();
                self.list_problems
                    .push(ListProblem::Failed { section, reason });
                // What was known before, if anything was, is better than nothing.
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
        }
    }

    /// Whether the list could not be fetched.
    pub(crate) fn has_failed(&self, of: Section) -> bool {
        let failed = |problem: &ListProblem| matches!(problem, ListProblem::Failed { section, .. } if *section == of);
        self.list_problems.iter().any(failed)
    }

    /// A list that did not come in time is said to have failed, and stays as it was.
    pub(crate) fn unanswered(&mut self, section: Section) {
        let reason = "it was not answered in time".to_owned();
        self.list_problems
            .push(ListProblem::Failed { section, reason });
    }

    async fn pages(
        &mut self,
        section: Section,
        lister: &impl Lister,
        max_entries: usize,
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
        for _ in 0..MAX_PAGES {
            let result = lister.page(method, cursor.take()).await?;
            let odd = |why: String| {
                RpcFailure::Link(LinkError::InvalidAnswer(format!(
                    "{method} was answered oddly: {why}"
                )))
            };
            let page = Object::parse(&result).map_err(|error| odd(error.to_string()))?;
            let entries = page
                .get(member)
                .ok_or_else(|| odd(format!("no {member:?}")))?;
            let entries: Vec<Raw> = entries.decode().map_err(|error| odd(error.to_string()))?;
            definitions.extend(entries);
            // PAGE-04: any cursor means more, the empty one too.
            let next = page.get("nextCursor").map(Raw::decode::<Option<String>>);
            let next = match next {
                None | Some(Ok(None)) => return Ok(definitions),
                Some(Ok(Some(next))) => next,
                Some(Err(_)) => {
                    self.list_problems.push(ListProblem::BadCursor(section));
                    return Ok(definitions);
                }
            };
            if definitions.len() >= max_entries {
                definitions.truncate(max_entries);
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

    /// Keeps what can be offered, in the server's order, and sets the rest apart with a reason.
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
        // Names were seen to be unique.
        List::new(entries).unwrap_or_default()
    }

    fn set_apart(&mut self, section: Section, definition: &Raw, reason: String) {
        let object = Object::parse(definition).ok();
        let name = object
            .and_then(|object| object.get(section.key())?.decode::<String>().ok())
            .unwrap_or_else(|| definition.as_str().chars().take(80).collect());
        tracing::warn!(%name, %reason, "not shown");
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
        match self {
            Self::Failed { reason, .. } => write!(f, "its {list} cannot be listed: {reason}"),
            Self::TooLong(_) => write!(f, "its list of {list} does not end"),
            Self::CursorLoop(_) => write!(f, "its list of {list} leads back to itself"),
            Self::BadCursor(_) => write!(f, "its list of {list} breaks off at a bad cursor"),
        }
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

/// TRANSLATION §5.13: a legacy server never meant `x-mcp-header` as the rule it has become, and a
/// client that knows the rule would drop the tool for breaking it.
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
