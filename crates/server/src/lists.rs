//! `tools/list` and its kin, answered from the catalogue.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use plexus_mcp::messages::ListParams;
use plexus_mcp::{Features, Revision, convert, cursor, method};
use plexus_service::{CacheHints, Catalogue, Fault, List, Section};
use plexus_wire::{Object, Raw};

use crate::lock::lock;
use crate::render::{Voice, hinted, json};

/// A list as one revision shows it.
struct Lowered {
    /// As the catalogue has it. It is lowered page by page: the first page of a long list is not
    /// to wait for the rest.
    list: Arc<List>,
    lower: Lower,
    /// What every page carries besides.
    hints: CacheHints,
    server_info: Raw,
    /// Whole answers, by their cursors, as they were first asked for.
    pages: Mutex<HashMap<Option<String>, Raw>>,
}

/// Makes a definition what a revision shows.
type Lower = fn(&Raw, &Features) -> Raw;

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
    /// The page that `params` asks for, as `voice` says it.
    pub(crate) fn page(
        &self,
        catalogue: &Catalogue,
        section: Section,
        voice: &Voice,
        params: Option<&Raw>,
    ) -> Result<Raw, Fault> {
        let params: ListParams = match params {
            Some(params) => params
                .decode()
                .map_err(|error| Fault::InvalidParams(format!("params: {error}")))?,
            None => ListParams::default(),
        };
        let lowered = self.lowered(catalogue, section, voice);
        lowered.page(member(section), params.cursor, voice)
    }

    fn lowered(&self, catalogue: &Catalogue, section: Section, voice: &Voice) -> Arc<Lowered> {
        let list = catalogue.list(section);
        let mut cache = lock(&self.lowered);
        let kept = cache.entry((section, voice.revision)).or_default();
        let is_current = |lowered: &&Arc<Lowered>| {
            !lowered.list.differs_from(list)
                && lowered.hints == catalogue.cache
                && lowered.server_info == voice.server_info
        };
        if let Some(lowered) = kept.iter().find(is_current) {
            return Arc::clone(lowered);
        }
        let lower: Lower = match section {
            Section::Tools => convert::tool_definition,
            Section::Resources => convert::resource_definition,
            Section::Templates => convert::template_definition,
            Section::Prompts => convert::prompt_definition,
        };
        let lowered = Arc::new(Lowered {
            list: Arc::clone(list),
            lower,
            hints: catalogue.cache,
            server_info: voice.server_info.clone(),
            pages: Mutex::default(),
        });
        kept.truncate(KEPT - 1);
        kept.push_front(Arc::clone(&lowered));
        lowered
    }
}

impl Lowered {
    fn page(
        &self,
        name: &'static str,
        cursor: Option<String>,
        voice: &Voice,
    ) -> Result<Raw, Fault> {
        if let Some(page) = lock(&self.pages).get(&cursor) {
            return Ok(page.clone());
        }
        let page = self.make_page(name, cursor.as_deref(), voice)?;
        let mut pages = lock(&self.pages);
        // A page may begin anywhere, for cursors outlive the lists they were made for.
        if pages.len() <= self.list.entries().len() / cursor::PAGE_SIZE {
            pages.insert(cursor, page.clone());
        }
        Ok(page)
    }

    fn make_page(
        &self,
        name: &'static str,
        cursor: Option<&str>,
        voice: &Voice,
    ) -> Result<Raw, Fault> {
        let page = cursor::page(
            self.list.entries(),
            |entry| &entry.key,
            name,
            cursor,
            cursor::PAGE_SIZE,
        )
        .map_err(|error| Fault::InvalidParams(error.to_string()))?;
        let features = voice.revision.features();
        let definitions = page.items.iter();
        let definitions = definitions.map(|entry| (self.lower)(&entry.definition, features));
        let definitions: Vec<_> = definitions.collect();
        let mut result = Object::new();
        result.set(name, Raw::array(&definitions));
        if let Some(next) = &page.next_cursor {
            result.set("nextCursor", json(next));
        }
        let mut result = result.to_raw();
        if features.typed_results {
            result = hinted(result, self.hints);
        }
        Ok(voice.stamped(result))
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
