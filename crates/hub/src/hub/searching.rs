//! Calls of clients that search for tools.

use std::sync::{Arc, PoisonError};

use plexus_mcp_core::{Call, Catalogue, Fault, Peer, Section};
use plexus_mcp_protocol::messages::{CallToolResult, ContentBlock};
use plexus_mcp_protocol::method;
use plexus_mcp_wire::Raw;

use super::Hub;
use crate::routes::Owner;
use crate::search::{self, DescribeArguments, Index, SearchArguments};

/// The result of interpreting a call of a client that searches.
pub(super) enum SearchOutcome {
    /// This call is to be forwarded.
    Call(Call),
    /// The call is answered.
    Answer(Raw),
}

impl Hub {
    /// Interprets a call. For a client that searches, `CallTool` is replaced by the call that it
    /// contains.
    pub(super) fn resolve_search(&self, mut call: Call) -> Result<SearchOutcome, Fault> {
        let is_tool = &*call.method == method::TOOLS_CALL;
        if !is_tool || !self.inner.clients.searches(call.peer()) {
            return Ok(SearchOutcome::Call(call));
        }
        let params = &call.params;
        match params.text("name").as_deref() {
            Some(search::CALL) => call.params = search::unwrapped(params)?,
            Some(search::SEARCH) => {
                let found = self.search(call.peer(), &search::arguments(params)?);
                return Ok(SearchOutcome::Answer(answer(found)));
            }
            Some(search::DESCRIBE) => {
                let described = self.describe(call.peer(), &search::arguments(params)?);
                return Ok(SearchOutcome::Answer(answer(described)));
            }
            _ => {}
        }
        Ok(SearchOutcome::Call(call))
    }

    /// Whether a call searches for tools, or describes one.
    pub(super) fn is_search(&self, call: &Call) -> bool {
        let name = call.params.text("name");
        &*call.method == method::TOOLS_CALL
            && matches!(name.as_deref(), Some(search::SEARCH | search::DESCRIBE))
            && self.inner.clients.searches(call.peer())
    }

    fn search(&self, peer: &Peer, arguments: &SearchArguments) -> Result<String, String> {
        let routes = self.routes();
        if let Some(server) = &arguments.server {
            self.server(server)?;
        }
        let (catalogue, index) = self.indexed();
        let tools = catalogue.list(Section::Tools);
        let is_meant = |owner: &Owner| {
            let wanted = arguments.server.as_deref();
            wanted.is_none_or(|server| *owner.member == *server)
                && self.inner.clients.shows(peer, &routes, owner)
                && !self.inner.clients.hides(peer, owner)
        };
        let mut found = index
            .find(&arguments.query)
            .filter(|name| routes.tool(name).is_some_and(is_meant))
            .filter_map(|name| tools.get(name));
        let mut lines: Vec<_> = found
            .by_ref()
            .take(arguments.limit())
            .map(search::line)
            .collect();
        if lines.is_empty() {
            return Ok("No tool fits; try other words.".to_owned());
        }
        if found.next().is_some() {
            lines.push("… and more, which fit less".to_owned());
        }
        Ok(lines.join("\n"))
    }

    fn describe(
        &self,
        peer: &Peer,
        DescribeArguments { name }: &DescribeArguments,
    ) -> Result<String, String> {
        let routes = self.routes();
        let unknown = || {
            format!(
                "There is no tool {name:?}; find tools with {}.",
                search::SEARCH
            )
        };
        let owner = self.tool_called(peer, &routes, name);
        let owner = owner.map_err(|fault| match fault {
            Fault::InvalidParams(why) => why,
            _ => unknown(),
        })?;
        let shown = routes
            .shown_tool(&owner.member, &owner.key)
            .ok_or_else(unknown)?;
        let catalogue = Arc::clone(&self.inner.catalogue.borrow());
        let entry = catalogue
            .list(Section::Tools)
            .get(shown)
            .ok_or_else(unknown)?;
        let mut text = entry.definition.as_str().to_owned();
        let member = self
            .member(&owner.member)
            .ok()
            .map(|member| member.catalogue());
        let instructions = member.and_then(|offer| offer.instructions.clone());
        if let Some(instructions) = instructions {
            text = format!(
                "{text}\n\nIts server {:?} says:\n\n{instructions}",
                owner.member
            );
        }
        Ok(text)
    }

    /// The current catalogue, and its search index.
    fn indexed(&self) -> (Arc<Catalogue>, Arc<Index>) {
        let catalogue = Arc::clone(&self.inner.catalogue.borrow());
        let mut indexed = self
            .inner
            .indexed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match &*indexed {
            Some((known, index)) if Arc::ptr_eq(known, &catalogue) => {
                (catalogue, Arc::clone(index))
            }
            _ => {
                let index = Arc::new(Index::new(catalogue.list(Section::Tools).entries()));
                *indexed = Some((Arc::clone(&catalogue), Arc::clone(&index)));
                (catalogue, index)
            }
        }
    }
}

fn answer(said: Result<String, String>) -> Raw {
    match said {
        Ok(text) => CallToolResult::new(vec![ContentBlock::text(text)]).to_raw(),
        Err(why) => CallToolResult::error(why).to_raw(),
    }
}
