//! Builds the catalogue of a service from the entries that were added.

use std::sync::Arc;

use plexus_mcp_protocol::messages::{
    CompletionReference, ListCapability, ResourcesCapability, ServerCapabilities,
};
use plexus_mcp_wire::Raw;

use super::{BuildError, Builder};
use crate::catalogue::{Catalogue, Entry, List, Section};
use crate::local::handler::{Completer, Reader};

impl Builder {
    pub(in crate::local) fn catalogue(&self) -> Result<Catalogue, BuildError> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        self.check_completers()?;
        let tools = self
            .tools
            .iter()
            .map(|(name, tool)| (name, &tool.definition));
        let resources = self
            .resources
            .iter()
            .map(|(uri, resource)| (uri, &resource.definition));
        let templates = self
            .templates
            .iter()
            .map(|(uri, template)| (uri, &template.definition));
        let prompts = self
            .prompts
            .iter()
            .map(|(name, prompt)| (name, &prompt.definition));

        let mut catalogue = Catalogue::new(self.identity.clone(), self.capabilities());
        catalogue.instructions.clone_from(&self.instructions);
        catalogue.cache = self.cache;
        catalogue.set_list(Section::Tools, list(Section::Tools, tools)?);
        catalogue.set_list(Section::Resources, list(Section::Resources, resources)?);
        catalogue.set_list(Section::Templates, list(Section::Templates, templates)?);
        catalogue.set_list(Section::Prompts, list(Section::Prompts, prompts)?);
        Ok(catalogue)
    }

    /// Whether `uri` is a resource, fits a template, or is a template.
    pub(in crate::local) fn knows(&self, uri: &str) -> bool {
        self.templates.contains_key(uri) || self.reader(uri).is_some()
    }

    pub(in crate::local) fn reader(&self, uri: &str) -> Option<Reader> {
        if let Some(resource) = self.resources.get(uri) {
            return Some(Reader::Resource(Arc::clone(&resource.handler)));
        }
        self.templates.iter().find_map(|(_, template)| {
            let variables = template.pattern.matches(uri)?;
            Some(Reader::Template(Arc::clone(&template.handler), variables))
        })
    }

    pub(in crate::local) fn completer(
        &self,
        reference: &CompletionReference,
        argument: &str,
    ) -> Option<Completer> {
        self.completers
            .iter()
            .find(|(of, name, _)| of == reference && name == argument)
            .map(|(_, _, completer)| Arc::clone(completer))
    }

    /// C43: the capabilities of the registered entries, and prompts if they are expected.
    fn capabilities(&self) -> ServerCapabilities {
        let list = ListCapability {
            list_changed: self.announces_changes,
        };
        let has_resources = !self.resources.is_empty() || !self.templates.is_empty();
        ServerCapabilities {
            tools: (!self.tools.is_empty()).then_some(list),
            resources: has_resources.then_some(ResourcesCapability {
                subscribe: true,
                list_changed: self.announces_changes,
            }),
            prompts: (self.expects_prompts || !self.prompts.is_empty()).then_some(list),
            completions: !self.completers.is_empty(),
            logging: self.logs,
            ..ServerCapabilities::default()
        }
    }

    /// Refuses a completer that can never be called, because its prompt or template is not there.
    fn check_completers(&self) -> Result<(), BuildError> {
        for (reference, _, _) in &self.completers {
            let (name, is_offered) = match reference {
                CompletionReference::Prompt { name } => (name, self.prompts.contains_key(name)),
                CompletionReference::Resource { uri } => (uri, self.templates.contains_key(uri)),
                _ => continue,
            };
            if !is_offered {
                return Err(BuildError::Completion(name.clone()));
            }
        }
        Ok(())
    }
}

fn list<'a>(
    section: Section,
    definitions: impl Iterator<Item = (&'a str, &'a Raw)>,
) -> Result<List, BuildError> {
    let invalid = |name: &str, source| BuildError::Definition {
        name: name.to_owned(),
        source: Arc::new(source),
    };
    let mut entries = Vec::new();
    for (name, definition) in definitions {
        let entry = Entry::with_key(section, name, definition.clone());
        entries.push(entry.map_err(|source| invalid(name, source))?);
    }
    List::new(entries).map_err(|source| invalid(section.key(), source))
}
