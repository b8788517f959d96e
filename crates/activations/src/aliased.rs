//! Tools that answer to every spelling of their names.

use std::sync::Arc;

use foldhash::HashMap;
use plexus_mcp::method;
use plexus_service::{
    Boxed, BuildError, Builder, Call, Catalogue, Fault, LocalService, Outcome, Peer, Raw, Section,
    Service, Updates,
};
use plexus_wire::Object;
use tokio::sync::watch;

use crate::data::Data;
use crate::follow::Followed;
use crate::names::Names;

/// A service whose tools may be called by any spelling of their names, whichever is shown (C11).
///
/// Names are looked up whole and never taken apart, so it does not matter whether a namespace or a
/// method has an underscore of its own (C50).
#[derive(Debug)]
pub struct Aliased {
    pub(crate) service: LocalService,
    /// Where the resources are kept that others may change.
    pub(crate) followed: Arc<Followed>,
    names: Names,
    /// The shown name of every tool, by its folded names.
    shown: HashMap<String, String>,
    /// Other names of arguments, by the shown name of the tool, with the names it knows.
    arguments: HashMap<String, Vec<(&'static str, &'static str)>>,
}

impl Aliased {
    /// Gives the tools of `service`, which stay the same, their aliases. `names` is how they are
    /// shown, and `data` what they work on.
    pub(crate) fn new(service: LocalService, names: Names, data: &Data) -> Self {
        let catalogue = service.catalogue();
        let catalogue = catalogue.borrow();
        let tools = catalogue.list(Section::Tools).entries().iter();
        let shown = tools
            .map(|tool| (folded(&tool.key), tool.key.as_ref().to_owned()))
            .collect();
        Self {
            service,
            followed: Arc::new(Followed::new(data)),
            names,
            shown,
            arguments: HashMap::default(),
        }
    }

    /// Lets a tool answer to one more name, unless another tool has it already.
    pub(crate) fn alias(self, alias: &str, namespace: &str, method: &str) -> Self {
        let shown = self.names.joined(namespace, method);
        self.also_called(alias, &shown)
    }

    /// The same, for the tool that is shown under this name.
    pub(crate) fn also_called(mut self, alias: &str, shown: &str) -> Self {
        let shown = || shown.to_owned();
        self.shown.entry(folded(alias)).or_insert_with(shown);
        self
    }

    /// Changes what is said about the service as a whole; its tools stay the same.
    pub(crate) fn introduced(
        self,
        change: impl FnOnce(Builder) -> Builder,
    ) -> Result<Self, BuildError> {
        self.service.edit(change)?;
        Ok(self)
    }

    /// Lets a tool take an argument under one more name, which its schema does not show.
    pub(crate) fn alias_argument(
        mut self,
        (namespace, method): (&str, &str),
        alias: &'static str,
        argument: &'static str,
    ) -> Self {
        let shown = self.names.joined(namespace, method);
        let aliases = self.arguments.entry(shown).or_default();
        aliases.push((alias, argument));
        self
    }

    /// The name under which a tool is shown that is called `name`.
    ///
    /// # Errors
    /// There is no such tool.
    pub fn tool(&self, name: &str) -> Result<&str, Fault> {
        let shown = match self.shown.get(name) {
            Some(shown) => Some(shown),
            None => self.shown.get(&folded(name)),
        };
        let shown = shown.map(String::as_str);
        shown.ok_or_else(|| self.unknown(name.to_owned()))
    }

    /// Gives a call of a tool the names under which the service knows the tool and its arguments.
    fn resolve(&self, params: &mut Object) -> Result<(), Fault> {
        let Some(name) = params.text("name") else {
            // The service says what is wrong with them.
            return Ok(());
        };
        let shown = self.tool(&name)?;
        if *shown != *name {
            params.set("name", Raw::string(shown));
        }
        if let Some(aliases) = self.arguments.get(shown)
            && let Some(arguments) = unaliased(params.get("arguments"), aliases)
        {
            params.set("arguments", arguments);
        }
        Ok(())
    }

    /// C12: the Substrate documents find fault with the form of a name before its meaning.
    fn unknown(&self, name: String) -> Fault {
        match self.names {
            Names::Dotted if !name.contains('.') => {
                Fault::InvalidParams(format!("Invalid tool name format: {name}"))
            }
            Names::Dotted | Names::Underscored | Names::Flat => Fault::UnknownTool(name),
        }
    }
}

impl Service for Aliased {
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
        let (followed, uri) = (Arc::clone(&self.followed), uri.to_owned());
        Box::pin(async move {
            let updates = subscribing.await?;
            followed.begin(&uri).await;
            Ok(updates)
        })
    }
}

/// What all spellings of a name have in common.
fn folded(name: &str) -> String {
    name.replace('.', "_")
}

/// Arguments under the names that the tool knows. What was given under both is left for the tool to
/// refuse.
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
    use plexus_service::Fault;

    use crate::Names;
    use crate::testing::{Caller, text};

    /// C11, S003-16: whichever spelling is shown, both are understood.
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

    /// C11, S002-20: the founding documents' names need no namespace.
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

    /// C12, S002-32: an unknown tool is called what the caller called it.
    #[tokio::test]
    async fn unknown_tools_keep_the_name_they_were_called_by() {
        let caller = Caller::of(Names::Underscored);
        for name in ["echo.twice", "echo_twice", "once", "", "Echo_once"] {
            let fault = caller.call(name, "{}").await.unwrap_err();
            assert_eq!(fault, Fault::UnknownTool(name.to_owned()));
        }
    }

    /// S003-21, C12: only where names are dotted, and only what has no dot and is no alias.
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

    /// What the name does not concern goes through: other members, and calls without a name.
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
