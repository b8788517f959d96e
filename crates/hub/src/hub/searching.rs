//! Calls of clients that search for tools.

use std::sync::{Arc, PoisonError};

use plexus_mcp::messages::{CallToolResult, ContentBlock};
use plexus_mcp::method;
use plexus_service::{Call, Catalogue, Entry, Fault, Peer, Section};
use plexus_wire::Raw;

use super::Hub;
use crate::routes::Owner;
use crate::search::{self, DescribeArguments, Index, SearchArguments};

/// What a call comes to.
pub(super) enum Meant {
    /// Somebody carries it out.
    Call(Call),
    /// It is answered already.
    Answer(Raw),
}

impl Hub {
    /// What a call means, which for a client that searches may be another one than it made.
    pub(super) fn meant(&self, mut call: Call) -> Result<Meant, Fault> {
        let is_tool = &*call.method == method::TOOLS_CALL;
        if !is_tool || !self.inner.clients.searches(call.peer()) {
            return Ok(Meant::Call(call));
        }
        let params = &call.params;
        match params.text("name").as_deref() {
            Some(search::CALL) => call.params = search::unwrapped(params)?,
            Some(search::SEARCH) => {
                let found = self.search(call.peer(), &search::arguments(params)?);
                return Ok(Meant::Answer(answer(found)));
            }
            Some(search::DESCRIBE) => {
                let described = self.describe(call.peer(), &search::arguments(params)?);
                return Ok(Meant::Answer(answer(described)));
            }
            _ => {}
        }
        Ok(Meant::Call(call))
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
        };
        let found = index.find(&arguments.query);
        let found: Vec<&Entry> = found
            .iter()
            .filter(|name| routes.tool(name).is_some_and(is_meant))
            .filter_map(|name| tools.get(name))
            .collect();
        if found.is_empty() {
            return Ok("No tool fits; try other words.".to_owned());
        }
        let limit = arguments.limit();
        let mut lines: Vec<_> = found
            .iter()
            .take(limit)
            .map(|tool| search::line(tool))
            .collect();
        if let more @ 1.. = found.len().saturating_sub(limit) {
            lines.push(format!("… and {more} more, which fit less"));
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

    /// What there is now, and its words.
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
