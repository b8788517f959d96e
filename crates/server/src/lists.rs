//! `tools/list` and its kin, answered from the catalogue.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use plexus_mcp::messages::ListParams;
use plexus_mcp::{Revision, convert, cursor, method};
use plexus_service::{Catalogue, Fault, Section};
use plexus_wire::{Object, Raw};

use crate::render::{hinted, json};

/// A list as one revision shows it.
struct Lowered {
    /// Of the list it was made from.
    hash: [u8; 32],
    entries: Vec<LoweredEntry>,
}

/// An entry, lowered when its page is first asked for: the first page of a long list is not to wait
/// for the rest.
struct LoweredEntry {
    key: Arc<str>,
    definition: Raw,
    lowered: OnceLock<Raw>,
}

/// How many forms of one list are kept, as not everybody need be shown the same.
const KEPT: usize = 16;

/// The forms of one list, those made last first.
type Forms = VecDeque<Arc<Lowered>>;

/// Lists in the form of each revision, kept until they change.
#[derive(Default)]
pub(crate) struct Lists {
    lowered: Mutex<HashMap<(Section, Revision), Forms>>,
}

impl Lists {
    /// The page that `params` asks for.
    pub(crate) fn page(
        &self,
        catalogue: &Catalogue,
        section: Section,
        revision: Revision,
        params: Option<&Raw>,
    ) -> Result<Raw, Fault> {
        let params: ListParams = match params {
            Some(params) => params
                .decode()
                .map_err(|error| Fault::InvalidParams(format!("params: {error}")))?,
            None => ListParams::default(),
        };
        let features = revision.features();
        let lowered = self.lowered(catalogue, section, revision);
        let name = member(section);
        let page = cursor::page(
            &lowered.entries,
            |entry| &entry.key,
            name,
            params.cursor.as_deref(),
            cursor::PAGE_SIZE,
        )
        .map_err(|error| Fault::InvalidParams(error.to_string()))?;
        let lower = match section {
            Section::Tools => convert::tool_definition,
            Section::Resources => convert::resource_definition,
            Section::Templates => convert::template_definition,
            Section::Prompts => convert::prompt_definition,
        };
        let definitions: Vec<&Raw> = page
            .items
            .iter()
            .map(|entry| {
                let lowered = || lower(&entry.definition, features);
                entry.lowered.get_or_init(lowered)
            })
            .collect();
        let mut result = Object::new();
        result.set(name, json(&definitions));
        if let Some(next) = &page.next_cursor {
            result.set("nextCursor", json(next));
        }
        let result = result.into_raw();
        if features.typed_results {
            return Ok(hinted(result, catalogue.cache));
        }
        Ok(result)
    }

    fn lowered(&self, catalogue: &Catalogue, section: Section, revision: Revision) -> Arc<Lowered> {
        let list = catalogue.list(section);
        let mut cache = self.lowered.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = cache.entry((section, revision)).or_default();
        if let Some(lowered) = kept.iter().find(|lowered| lowered.hash == *list.hash()) {
            return Arc::clone(lowered);
        }
        let entries = list.entries().iter();
        let entries = entries
            .map(|entry| LoweredEntry {
                key: Arc::clone(&entry.key),
                definition: entry.definition.clone(),
                lowered: OnceLock::new(),
            })
            .collect();
        let lowered = Arc::new(Lowered {
            hash: *list.hash(),
            entries,
        });
        kept.truncate(KEPT - 1);
        kept.push_front(Arc::clone(&lowered));
        lowered
    }
}

/// The list that `method` asks for.
pub(crate) fn section_of(method: &str) -> Option<Section> {
    match method {
        method::TOOLS_LIST => Some(Section::Tools),
        method::RESOURCES_LIST => Some(Section::Resources),
        method::RESOURCE_TEMPLATES_LIST => Some(Section::Templates),
        method::PROMPTS_LIST => Some(Section::Prompts),
        _ => None,
    }
}

fn member(section: Section) -> &'static str {
    match section {
        Section::Tools => "tools",
        Section::Resources => "resources",
        Section::Templates => "resourceTemplates",
        Section::Prompts => "prompts",
    }
}
