//! All activations as one service.

use plexus_service::{BuildError, Builder, LocalService};

use crate::aliased::Aliased;
use crate::arbor::arbor;
use crate::bash::bash;
use crate::builtin::{Builtin, Choice};
use crate::claudecode::{ClaudeCode, Settings, claudecode};
use crate::cone::cone;
use crate::context::context;
use crate::data::Data;
use crate::echo::echo;
use crate::health::{Servers, health};
use crate::loopback::loopback;
use crate::names::Names;
use crate::schemas;
use crate::task::{self, task};

/// What is built in, and only offered where it is wanted.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Extras {
    /// Whether callers may run shell commands.
    pub bash: bool,
    /// Callers may have this agent work, and answer what agents ask permission for.
    pub claudecode: Option<Settings>,
    /// How the servers are doing that stand behind this one, for `health`.
    pub servers: Servers,
    /// Which services are offered, the ones above included; all if it is not said.
    pub choice: Option<Choice>,
}

impl Extras {
    /// The services that are offered, in order.
    fn offered(&self) -> Vec<Builtin> {
        let mut offered = Builtin::ALL.to_vec();
        offered.retain(|service| {
            let is_chosen = self
                .choice
                .as_ref()
                .is_none_or(|choice| choice.has(*service));
            let is_there = match service {
                Builtin::Bash => self.bash,
                Builtin::Loopback | Builtin::Claudecode => self.claudecode.is_some(),
                _ => true,
            };
            is_chosen && is_there
        });
        offered
    }
}

/// Everything that is built in and harms nobody, as the service `plexus` of this version, on this
/// data.
///
/// # Errors
/// An activation is not well made.
pub fn service(names: Names, version: &str, data: &Data) -> Result<Aliased, BuildError> {
    service_with(names, version, data, &Extras::default())
}

/// The same, with these as well.
///
/// # Errors
/// An activation is not well made.
pub fn service_with(
    names: Names,
    version: &str,
    data: &Data,
    extras: &Extras,
) -> Result<Aliased, BuildError> {
    let offered = extras.offered();
    let builder = LocalService::builder("plexus", version).known_schemas(schemas::known(names));
    let builder = match instructions(&offered) {
        Some(instructions) => builder.instructions(instructions),
        None => builder,
    };
    let builder = with_all(builder, &offered, names, data, extras);
    let mut service = Aliased::new(builder.build()?, names, data);
    // What the founding systems called them (S000-20, S002-20).
    for method in task::METHODS {
        service = service.alias(method, "task", method);
    }
    // What the founding system's source calls them (C13).
    for method in ["chat", "chat_async"] {
        service = service
            .alias_argument(("claudecode", method), "name", "session_name")
            .alias_argument(("claudecode", method), "prompt", "query");
    }
    Ok(service.alias("query_context", "context", "query"))
}

/// Adds these services.
pub(crate) fn with_all(
    builder: Builder,
    services: &[Builtin],
    names: Names,
    data: &Data,
    extras: &Extras,
) -> Builder {
    services.iter().fold(builder, |builder, service| {
        with(builder, *service, names, data, extras)
    })
}

/// Adds one of the services.
fn with(builder: Builder, service: Builtin, names: Names, data: &Data, extras: &Extras) -> Builder {
    match service {
        Builtin::Health => {
            let activations = extras.offered().into_iter().map(Builtin::as_str).collect();
            health(builder, names, activations, &extras.servers, data.stores())
        }
        Builtin::Echo => echo(builder, names),
        Builtin::Task => task(builder, names, &data.tasks),
        Builtin::Context => context(builder, names, &data.context),
        Builtin::Arbor => arbor(builder, names, &data.trees),
        Builtin::Cone => cone(builder, names, &data.cones),
        Builtin::Bash => bash(builder, names),
        Builtin::Loopback => loopback(builder, names, &data.permissions),
        Builtin::Claudecode => match &extras.claudecode {
            Some(settings) => {
                let (sessions, permissions) = (data.sessions.clone(), data.permissions.clone());
                let claude = ClaudeCode::new(settings.clone(), sessions, permissions);
                claudecode(builder, names, &claude)
            }
            None => builder,
        },
    }
}

/// What a model is told of what is offered.
fn instructions(offered: &[Builtin]) -> Option<String> {
    let purposes: Vec<_> = offered
        .iter()
        .map(|service| format!("{} {}", service.as_str(), service.purpose()))
        .collect();
    let purposes = purposes.join(", ");
    (!offered.is_empty()).then(|| format!("Plexus serves these tools itself: {purposes}."))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plexus_service::{Catalogue, Section, Service};
    use serde_json::Value;

    use super::*;
    use crate::Places;
    use crate::testing::everything;

    fn built_in(names: Names) -> Arc<Catalogue> {
        let folder = tempfile::tempdir().unwrap();
        let data = Data::open(&Places::in_directory(folder.path())).unwrap();
        let extras = everything();
        let service = service_with(names, "1.2.3", &data, &extras).unwrap();
        let catalogue = service.catalogue();
        Arc::clone(&catalogue.borrow())
    }

    fn tools(names: Names) -> Vec<Value> {
        let catalogue = built_in(names);
        let tools = catalogue.list(Section::Tools).entries().iter();
        tools
            .map(|tool| tool.definition.decode().unwrap())
            .collect()
    }

    fn strings(list: &[&str]) -> Value {
        Value::from(list.to_vec())
    }

    /// S003-04, S003-16, C11: every method of every activation, named as the profile wants, and
    /// always in the same order.
    #[test]
    fn every_method_is_a_tool() {
        let names = |names| -> Vec<String> {
            let tools = tools(names);
            tools
                .iter()
                .map(|tool| tool["name"].as_str().unwrap().to_owned())
                .collect()
        };
        let dotted = names(Names::Dotted);
        let expected = ["health.check", "echo.echo", "echo.once", "echo.ping"];
        assert!(dotted.starts_with(&expected.map(str::to_owned)));
        for name in [
            "task.create_task",
            "context.query",
            "arbor.tree_create",
            "cone.chat",
            "bash.execute",
            "loopback.permit",
            "claudecode.chat",
        ] {
            assert!(dotted.contains(&name.to_owned()), "{name}");
        }
        let underscored: Vec<_> = dotted.iter().map(|name| name.replace('.', "_")).collect();
        assert_eq!(names(Names::Underscored), underscored);
        assert_eq!(names(Names::Dotted), dotted);
    }

    /// Only what is chosen is offered, and told of; what is not allowed is not offered by choosing
    /// it.
    #[test]
    fn services_can_be_chosen() {
        let folder = tempfile::tempdir().unwrap();
        let data = Data::open(&Places::in_directory(folder.path())).unwrap();
        let shown = |choice: &str| {
            let extras = Extras {
                choice: Some(choice.parse().unwrap()),
                ..Extras::default()
            };
            let service = service_with(Names::default(), "1.2.3", &data, &extras).unwrap();
            let catalogue = service.catalogue();
            let catalogue = catalogue.borrow();
            let tools = catalogue.list(Section::Tools).entries().iter();
            let tools: Vec<_> = tools.map(|tool| tool.key.to_string()).collect();
            (tools, catalogue.instructions.clone())
        };
        let (tools, instructions) = shown("echo,bash,health");
        assert_eq!(
            tools,
            ["health_check", "echo_echo", "echo_once", "echo_ping"]
        );
        let expected = "Plexus serves these tools itself: health tells whether it works, echo says \
                        back what it is told.";
        assert_eq!(instructions.as_deref(), Some(expected));
        assert_eq!(shown("none"), (Vec::new(), None));
        // Less than a page of most clients and servers.
        assert!(shown(&Choice::usual().to_string()).0.len() <= 40);
    }

    /// S002-28, S002-29, S002-30, S002-31: what people and models are told about each tool.
    #[test]
    fn schemas_are_closed_and_described() {
        for tool in tools(Names::default()) {
            assert!(tool["description"].is_string(), "{tool}");
            for schema in [&tool["inputSchema"], &tool["outputSchema"]] {
                if schema.is_null() {
                    continue;
                }
                assert_eq!(schema["type"], "object", "{tool}");
                assert_closed_and_described(schema, &tool["name"]);
            }
        }
        let [health, echo, once, ping, ..] = &tools(Names::default())[..] else {
            panic!("there are tools");
        };
        assert_eq!(echo["inputSchema"]["required"], strings(&["message"]));
        assert_eq!(once["inputSchema"]["required"], strings(&["message"]));
        assert_eq!(ping["inputSchema"]["required"], Value::Null);
        let count = &echo["inputSchema"]["properties"]["count"];
        assert_eq!(
            [&count["minimum"], &count["maximum"], &count["default"]],
            [1, 100, 1]
        );
        let output = &health["outputSchema"];
        assert_eq!(
            output["properties"]["status"]["enum"],
            strings(&["healthy", "degraded"])
        );
        assert_eq!(
            output["required"],
            strings(&[
                "status",
                "uptime_seconds",
                "timestamp",
                "revisions",
                "activations",
                "servers",
                "problems"
            ])
        );
    }

    /// Looks at the schemas of all objects, however deep.
    fn assert_closed_and_described(schema: &Value, of: &Value) {
        if let Some(properties) = schema["properties"].as_object() {
            // Agents may tell more than is asked for.
            if of != "loopback_permit" {
                assert_eq!(schema["additionalProperties"], false, "{of}: {schema}");
            }
            for (name, property) in properties {
                assert!(property["description"].is_string(), "{name} of {of}");
            }
        }
        let members = schema
            .as_object()
            .into_iter()
            .flat_map(|members| members.values());
        let items = schema.as_array().into_iter().flatten();
        for part in members.chain(items) {
            assert_closed_and_described(part, of);
        }
    }

    /// S003-12, C43, S003-51: exactly what the activations bring is declared.
    #[test]
    fn exactly_what_is_there_is_declared() {
        let catalogue = built_in(Names::default());
        let declared = &catalogue.capabilities;
        // C44: trees and cones are listed as they come and go.
        assert!(declared.tools.is_some_and(|tools| tools.list_changed));
        let resources = declared.resources.unwrap();
        assert!(resources.subscribe && resources.list_changed);
        assert!(declared.prompts.is_some_and(|prompts| prompts.list_changed));
        assert!(declared.completions);
        assert_eq!(catalogue.identity.name, "plexus");
        assert_eq!(catalogue.identity.version, "1.2.3");
    }
}
