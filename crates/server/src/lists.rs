//! Answers the list methods from the catalogue.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use plexus_mcp_core::{CacheHints, Catalogue, Fault, List, Section};
use plexus_mcp_protocol::messages::ListParams;
use plexus_mcp_protocol::{Features, Revision, convert, cursor, method};
use plexus_mcp_wire::{Object, Raw};

use crate::encoder::{ResponseEncoder, hinted, json};
use crate::lock::lock;

/// A list converted to one revision.
struct LoweredList {
    /// The list of the catalogue. Pages are converted on demand, so that the first page of a long
    /// list does not wait for the rest.
    list: Arc<List>,
    page_size: NonZeroUsize,
    lower: Lower,
    /// Cache hints that every page carries.
    hints: CacheHints,
    server_info: Raw,
    /// Cached results, by cursor.
    pages: Mutex<HashMap<Option<String>, Raw>>,
}

/// Converts a definition to a revision.
type Lower = fn(&Raw, &Features) -> Raw;

/// How many variants of one list are cached: the catalogues of callers may differ. The oldest variant
/// is evicted.
const MAX_CACHED_FORMS: usize = 16;

/// The cached variants of one list, newest first.
type Forms = VecDeque<Arc<LoweredList>>;

/// Cache of lists converted to each revision, until they change.
pub(crate) struct Lists {
    page_size: NonZeroUsize,
    lowered: Mutex<HashMap<(Section, Revision), Forms>>,
}

impl Lists {
    pub(crate) fn new(page_size: NonZeroUsize) -> Self {
        Self {
            page_size,
            lowered: Mutex::default(),
        }
    }

    /// The page that `params` asks for, encoded by `encoder`.
    pub(crate) fn page(
        &self,
        catalogue: &Catalogue,
        section: Section,
        encoder: &ResponseEncoder,
        params: Option<&Raw>,
    ) -> Result<Raw, Fault> {
        let params: ListParams = match params {
            Some(params) => params
                .decode()
                .map_err(|error| Fault::InvalidParams(format!("params: {error}")))?,
            None => ListParams::default(),
        };
        if let Some(error) = catalogue.list_error(section) {
            return Err(error.clone());
        }
        let lowered = self.lowered(catalogue, section, encoder);
        lowered.page(member(section), params.cursor, encoder)
    }

    fn lowered(
        &self,
        catalogue: &Catalogue,
        section: Section,
        encoder: &ResponseEncoder,
    ) -> Arc<LoweredList> {
        let list = catalogue.list(section);
        let mut cache = lock(&self.lowered);
        let kept = cache.entry((section, encoder.revision)).or_default();
        let is_current = |lowered: &&Arc<LoweredList>| {
            !lowered.list.differs_from(list)
                && lowered.hints == catalogue.cache
                && lowered.server_info == encoder.server_info
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
        let lowered = Arc::new(LoweredList {
            list: Arc::clone(list),
            page_size: self.page_size,
            lower,
            hints: catalogue.cache,
            server_info: encoder.server_info.clone(),
            pages: Mutex::default(),
        });
        kept.truncate(MAX_CACHED_FORMS - 1);
        kept.push_front(Arc::clone(&lowered));
        lowered
    }
}

impl LoweredList {
    fn page(
        &self,
        name: &'static str,
        cursor: Option<String>,
        encoder: &ResponseEncoder,
    ) -> Result<Raw, Fault> {
        if let Some(page) = lock(&self.pages).get(&cursor) {
            return Ok(page.clone());
        }
        let page = self.make_page(name, cursor.as_deref(), encoder)?;
        let mut pages = lock(&self.pages);
        // A page may begin anywhere, for cursors outlive the lists they were made for.
        if pages.len() <= self.list.entries().len() / self.page_size {
            pages.insert(cursor, page.clone());
        }
        Ok(page)
    }

    fn make_page(
        &self,
        name: &'static str,
        cursor: Option<&str>,
        encoder: &ResponseEncoder,
    ) -> Result<Raw, Fault> {
        let page = cursor::page(
            self.list.entries(),
            |entry| &entry.key,
            name,
            cursor,
            self.page_size,
        )
        .map_err(|error| Fault::InvalidParams(error.to_string()))?;
        let features = encoder.revision.features();
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
        Ok(encoder.with_result_metadata(result))
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
