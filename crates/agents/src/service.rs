//! All built-in services as one service.

use std::sync::Arc;

use plexus_mcp_builtins::arbor::arbor;
use plexus_mcp_builtins::context::context;
use plexus_mcp_builtins::task::task;
use plexus_mcp_builtins::{AliasedService, Names, Servers, echo, health};
use plexus_mcp_core::{BuildError, Builder, LocalService};

use crate::bash::bash;
use crate::builtin::{Builtin, BuiltinSelection};
use crate::claudecode::{ClaudeCode, Settings, claudecode};
use crate::cone::cone;
use crate::data::AgentData;
use crate::loopback::loopback;

/// Options of the built-in services: which are allowed, and which are selected.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Extras {
    /// Whether callers may run shell commands.
    pub bash: bool,
    /// The agent that callers may run; also enables `loopback`.
    pub claudecode: Option<Settings>,
    /// The upstream servers that `health.check` reports.
    pub servers: Servers,
    /// The selected services, as far as they are allowed; `None` means all.
    pub choice: Option<BuiltinSelection>,
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

/// The built-in services that `extras` offers, as the service `plexus` of this version, on this
/// data.
///
/// # Errors
/// A definition is not valid, which is a bug.
pub fn service(
    names: Names,
    version: &str,
    data: &AgentData,
    extras: &Extras,
) -> Result<AliasedService, BuildError> {
    let offered = extras.offered();
    let builder = LocalService::builder("plexus", version).with_concise_tools();
    let builder = match instructions(&offered) {
        Some(instructions) => builder.instructions(instructions),
        None => builder,
    };
    let builder = offered.iter().fold(builder, |builder, service| {
        with(builder, *service, names, data, extras)
    });
    let mut service =
        AliasedService::new(builder.build()?, names, &data.builtins).with_short_names();
    // The argument names in the source of Substrate (C13).
    for method in ["chat", "chat_async"] {
        service = service
            .alias_argument(("claudecode", method), "name", "session_name")
            .alias_argument(("claudecode", method), "prompt", "query");
    }
    if offered.contains(&Builtin::Cone) {
        let cones = data.cones.clone();
        service = service.refreshing_tree_lists(Arc::new(move |service| {
            let cones = cones.clone();
            Box::pin(async move { cones.refresh_lists(&service).await })
        }));
    }
    Ok(service)
}

/// Adds a service.
fn with(
    builder: Builder,
    service: Builtin,
    names: Names,
    data: &AgentData,
    extras: &Extras,
) -> Builder {
    match service {
        Builtin::Health => {
            let namespaces = extras.offered().into_iter().map(Builtin::as_str).collect();
            health(builder, names, namespaces, &extras.servers, data.stores())
        }
        Builtin::Echo => echo(builder, names),
        Builtin::Task => task(builder, names, &data.builtins.tasks),
        Builtin::Context => context(builder, names, &data.builtins.context),
        Builtin::Arbor => arbor(builder, names, &data.builtins.trees),
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

/// The instructions for models, which list the offered services.
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

    use plexus_mcp_core::{Catalogue, Section, Service};
    use serde_json::Value;

    use plexus_mcp_builtins::DataPaths;

    use super::*;

    /// Allows everything.
    fn everything() -> Extras {
        Extras {
            bash: true,
            claudecode: Some(Settings::new("claude", None)),
            ..Extras::default()
        }
    }

    fn built_in(names: Names) -> Arc<Catalogue> {
        let folder = tempfile::tempdir().unwrap();
        let data = AgentData::open(&DataPaths::in_directory(folder.path())).unwrap();
        let extras = everything();
        let service = service(names, "1.2.3", &data, &extras).unwrap();
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

    /// S003-04, S003-16, C11: every method of every service is a tool, named as the profile has it,
    /// and always in the same order.
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

    /// Only selected services are offered and named in the instructions; a selection does not
    /// include services that are not allowed.
    #[test]
    fn services_can_be_chosen() {
        let folder = tempfile::tempdir().unwrap();
        let data = AgentData::open(&DataPaths::in_directory(folder.path())).unwrap();
        let shown = |choice: &str| {
            let extras = Extras {
                choice: Some(choice.parse().unwrap()),
                ..Extras::default()
            };
            let service = service(Names::default(), "1.2.3", &data, &extras).unwrap();
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
        let expected = "Plexus serves these tools itself: health reports the status of the \
                        gateway, echo returns messages.";
        assert_eq!(instructions.as_deref(), Some(expected));
        assert_eq!(shown("none"), (Vec::new(), None));
        // This fits into one page of most clients and servers.
        assert!(shown(&BuiltinSelection::usual().to_string()).0.len() <= 40);
    }

    /// S002-28, S002-29, S002-30, S002-31: schemas are closed, and every property has a
    /// description.
    #[test]
    fn schemas_are_closed_and_described() {
        for tool in tools(Names::default()) {
            assert!(tool["description"].is_string(), "{tool}");
            let schema = &tool["inputSchema"];
            assert_eq!(schema["type"], "object", "{tool}");
            assert_closed_and_described(schema, &tool["name"]);
        }
        let [_health, echo, once, ping, ..] = &tools(Names::default())[..] else {
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
    }

    /// Every definition takes room in the context of a model: a built-in tool has at most 600 bytes
    /// on average, with the default selection as with all services.
    #[test]
    fn definitions_are_short() {
        let catalogue = built_in(Names::default());
        let average = |is_counted: &dyn Fn(&str) -> bool| {
            let tools = catalogue.list(Section::Tools).entries().iter();
            let sizes: Vec<_> = tools
                .filter(|tool| is_counted(tool.key.split('_').next().unwrap()))
                .map(|tool| tool.definition.as_bytes().len())
                .collect();
            sizes.iter().sum::<usize>() / sizes.len()
        };
        let usual = BuiltinSelection::usual();
        let usual: Vec<_> = usual.services().map(Builtin::as_str).collect();
        assert!(average(&|_| true) < 600, "{}", average(&|_| true));
        let of_usual = average(&|service| usual.contains(&service));
        assert!(of_usual < 600, "{of_usual}");
    }

    /// Checks the schemas of all nested objects.
    fn assert_closed_and_described(schema: &Value, of: &Value) {
        if let Some(properties) = schema["properties"].as_object() {
            // Newer agents may send further members.
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

    /// S003-12, C43, S003-51: exactly the capabilities of the services are declared.
    #[test]
    fn exactly_the_capabilities_of_the_services_are_declared() {
        let catalogue = built_in(Names::default());
        let declared = &catalogue.capabilities;
        // C44: trees and cones are added to and removed from the lists.
        assert!(declared.tools.is_some_and(|tools| tools.list_changed));
        let resources = declared.resources.unwrap();
        assert!(resources.subscribe && resources.list_changed);
        assert!(declared.prompts.is_some_and(|prompts| prompts.list_changed));
        assert!(declared.completions);
        assert_eq!(catalogue.identity.name, "plexus");
        assert_eq!(catalogue.identity.version, "1.2.3");
    }
}
