//! Aliases of tool names and of argument names.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use plexus_mcp_core::{
    Boxed, BuildError, Builder, Call, Catalogue, Fault, LocalService, Outcome, Peer, Raw, Section,
    Service, Updates,
};
use plexus_mcp_protocol::method;
use plexus_mcp_wire::Object;
use tokio::sync::watch;

use crate::data::Data;
use crate::external_changes::{ExternalChanges, RefreshTreeLists};
use crate::names::Names;

/// A service whose tools can be called by any spelling of their names, whichever is listed (C11).
///
/// Names are looked up as a whole, never split, so a namespace or a method may contain an underscore
/// (C50).
pub struct AliasedService {
    pub(crate) service: LocalService,
    /// Detects changes that other processes make to the resources.
    pub(crate) external_changes: Arc<ExternalChanges>,
    names: Names,
    /// The listed name of every tool, by its folded names and aliases.
    listed_names: HashMap<String, String>,
    /// Pairs of alias and argument name, by the listed name of the tool.
    argument_aliases: HashMap<String, Vec<(&'static str, &'static str)>>,
    pub(crate) refresh_tree_lists: Option<RefreshTreeLists>,
}

impl AliasedService {
    /// Adds the other spellings as aliases of the tools of `service`. Its tools must not change
    /// afterwards. `names` is the spelling that is listed, and `data` the data of the tools.
    pub fn new(service: LocalService, names: Names, data: &Data) -> Self {
        let catalogue = service.catalogue();
        let catalogue = catalogue.borrow();
        let tools = catalogue.list(Section::Tools).entries().iter();
        let listed_names = tools
            .map(|tool| (folded(&tool.key), tool.key.as_ref().to_owned()))
            .collect();
        Self {
            service,
            external_changes: Arc::new(ExternalChanges::new(data)),
            names,
            listed_names,
            argument_aliases: HashMap::default(),
            refresh_tree_lists: None,
        }
    }

    /// Calls `refresh` when another process changed trees, instead of only updating the list of trees.
    #[must_use]
    pub fn refreshing_tree_lists(mut self, refresh: RefreshTreeLists) -> Self {
        self.refresh_tree_lists = Some(refresh);
        self
    }

    /// Adds an alias of a tool, unless another tool has that name already.
    #[must_use]
    pub fn alias(self, alias: &str, namespace: &str, method: &str) -> Self {
        let listed = self.names.joined(namespace, method);
        self.alias_listed(alias, &listed)
    }

    /// Like [`Self::alias`], for the tool that is listed under this name.
    #[must_use]
    pub fn alias_listed(mut self, alias: &str, listed: &str) -> Self {
        let listed = || listed.to_owned();
        self.listed_names
            .entry(folded(alias))
            .or_insert_with(listed);
        self
    }

    /// Changes the identity, instructions and the like of the service. `change` must not change the
    /// tools.
    ///
    /// # Errors
    /// The changed definition is not valid.
    pub fn edit(self, change: impl FnOnce(Builder) -> Builder) -> Result<Self, BuildError> {
        self.service.edit(change)?;
        Ok(self)
    }

    /// Adds an alias of an argument, which the schema of the tool does not show.
    #[must_use]
    pub fn alias_argument(
        mut self,
        (namespace, method): (&str, &str),
        alias: &'static str,
        argument: &'static str,
    ) -> Self {
        let listed = self.names.joined(namespace, method);
        let aliases = self.argument_aliases.entry(listed).or_default();
        aliases.push((alias, argument));
        self
    }

    /// The listed name of the tool that has the name or alias `name`.
    ///
    /// # Errors
    /// There is no such tool.
    pub fn tool(&self, name: &str) -> Result<&str, Fault> {
        let listed = match self.listed_names.get(name) {
            Some(listed) => Some(listed),
            None => self.listed_names.get(&folded(name)),
        };
        let listed = listed.map(String::as_str);
        listed.ok_or_else(|| self.unknown(name.to_owned()))
    }

    /// Replaces aliases in the parameters of `tools/call` by the names that the service knows.
    fn resolve(&self, params: &mut Object) -> Result<(), Fault> {
        let Some(name) = params.text("name") else {
            // The service reports the invalid parameters.
            return Ok(());
        };
        let listed = self.tool(&name)?;
        if *listed != *name {
            params.set("name", Raw::string(listed));
        }
        if let Some(aliases) = self.argument_aliases.get(listed)
            && let Some(arguments) = unaliased(params.get("arguments"), aliases)
        {
            params.set("arguments", arguments);
        }
        Ok(())
    }

    /// C12: the specification of Substrate reports the format of a name before an unknown name.
    fn unknown(&self, name: String) -> Fault {
        match self.names {
            Names::Dotted if !name.contains('.') => {
                Fault::InvalidParams(format!("Invalid tool name format: {name}"))
            }
            Names::Dotted | Names::Underscored | Names::Flat => Fault::UnknownTool(name),
        }
    }
}

impl fmt::Debug for AliasedService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AliasedService")
            .field("service", &self.service)
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

impl Service for AliasedService {
    fn catalogue(&self) -> watch::Receiver<Arc<Catalogue>> {
        self.service.catalogue()
    }

    fn call(&self, mut call: Call) -> Boxed<Outcome> {
        if &*call.method == method::TOOLS_CALL
            && let Err(fault) = self.resolve(&mut call.params)
        {
            return Box::pin(std::future::ready(Err(fault)));
        }
        self.service.call(call)
    }

    fn subscribe(&self, peer: &Arc<Peer>, uri: &str) -> Boxed<Result<Updates, Fault>> {
        let subscribing = self.service.subscribe(peer, uri);
        let (changes, uri) = (Arc::clone(&self.external_changes), uri.to_owned());
        Box::pin(async move {
            let updates = subscribing.await?;
            changes.subscribed(&uri).await;
            Ok(updates)
        })
    }
}

/// The form in which all spellings of a name are equal.
fn folded(name: &str) -> String {
    name.replace('.', "_")
}

/// Arguments with aliases replaced by the names that the tool knows. If an argument is given under
/// both names, the alias stays and the tool refuses it.
fn unaliased(arguments: Option<&Raw>, aliases: &[(&str, &'static str)]) -> Option<Raw> {
    let mut arguments = Object::parse(arguments?).ok()?;
    for (alias, argument) in aliases {
        if !arguments.contains(argument)
            && let Some(value) = arguments.remove(alias)
        {
            arguments.set(*argument, value);
        }
    }
    Some(arguments.to_raw())
}

#[cfg(test)]
mod tests {
    use plexus_mcp_core::Fault;

    use crate::Names;
    use crate::testing::{Caller, text};

    /// C11, S003-16: both spellings are accepted, whichever is listed.
    #[tokio::test]
    async fn every_spelling_is_understood() {
        for names in [Names::Dotted, Names::Underscored] {
            let caller = Caller::of(names);
            for name in ["echo.once", "echo_once"] {
                let result = caller.call(name, r#"{"message":"hi"}"#).await.unwrap();
                assert_eq!(
                    text(&result),
                    "hi",
                    "{name} where {names:?} names are shown"
                );
            }
        }
    }

    /// C11, S002-20: names without a namespace are accepted.
    #[tokio::test]
    async fn flat_names_are_understood() {
        for names in [Names::Dotted, Names::Underscored] {
            let caller = Caller::of(names);
            for name in ["create_task", "task_create_task", "task.create_task"] {
                let arguments = r#"{"description":"Mow the lawn"}"#;
                let result = caller.call(name, arguments).await.unwrap();
                assert_eq!(result["structuredContent"]["status"], "pending", "{name}");
            }
        }
    }

    /// C12, S002-32: the error for an unknown tool has the name that the caller used.
    #[tokio::test]
    async fn unknown_tools_keep_the_name_they_were_called_by() {
        let caller = Caller::of(Names::Underscored);
        for name in ["echo.twice", "echo_twice", "once", "", "Echo_once"] {
            let fault = caller.call(name, "{}").await.unwrap_err();
            assert_eq!(fault, Fault::UnknownTool(name.to_owned()));
        }
    }

    /// S003-21, C12: only with dotted names, and only for a name without a dot that is no alias.
    #[tokio::test]
    async fn a_name_without_a_dot_has_the_wrong_format_where_names_are_dotted() {
        let caller = Caller::of(Names::Dotted);
        let fault = caller.call("twice", "{}").await.unwrap_err();
        assert_eq!(
            fault,
            Fault::InvalidParams("Invalid tool name format: twice".to_owned())
        );
        let fault = caller.call("echo.twice", "{}").await.unwrap_err();
        assert_eq!(fault, Fault::UnknownTool("echo.twice".to_owned()));
    }

    /// Other members, and calls without a name, are passed on unchanged.
    #[tokio::test]
    async fn only_the_name_is_looked_at() {
        let caller = Caller::of(Names::Underscored);
        let params = r#"{"_meta":{"a":1.50},"arguments":{"message":"hi"},"name":"echo.once"}"#;
        assert_eq!(text(&caller.call_with(params).await.unwrap()), "hi");
        for params in ["{}", r#"{"name":7}"#] {
            let fault = caller.call_with(params).await.unwrap_err();
            assert!(matches!(fault, Fault::InvalidParams(_)), "{params}");
        }
    }
}
