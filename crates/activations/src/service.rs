//! All activations as one service.

use plexus_service::{BuildError, LocalService};

use crate::aliased::Aliased;
use crate::echo::echo;
use crate::health::health;
use crate::names::Names;

const INSTRUCTIONS: &str = "Plexus serves these tools itself: health tells whether it works, \
    echo says back what it is told.";

/// Everything that is built in, as the service `plexus` of this version.
///
/// # Errors
/// An activation is not well made.
pub fn service(names: Names, version: &str) -> Result<Aliased, BuildError> {
    let builder = LocalService::builder("plexus", version)
        .instructions(INSTRUCTIONS)
        .unchanging();
    let builder = health(builder, names);
    let builder = echo(builder, names);
    Ok(Aliased::new(builder.build()?, names))
}

#[cfg(test)]
mod tests {
    use plexus_service::{Section, Service};
    use serde_json::Value;

    use super::*;

    fn tools(names: Names) -> Vec<Value> {
        let catalogue = service(names, "1.2.3").unwrap().catalogue();
        let catalogue = catalogue.borrow();
        let tools = catalogue.list(Section::Tools).entries().iter();
        tools
            .map(|tool| tool.definition.decode().unwrap())
            .collect()
    }

    fn strings(list: &[&str]) -> Value {
        Value::from(list.to_vec())
    }

    /// S003-04, S003-16, C11: every method of every activation, named as the profile wants.
    #[test]
    fn every_method_is_a_tool() {
        let names = |names| -> Vec<String> {
            let tools = tools(names);
            tools
                .iter()
                .map(|tool| tool["name"].as_str().unwrap().to_owned())
                .collect()
        };
        let dotted = ["health.check", "echo.echo", "echo.once", "echo.ping"];
        assert_eq!(names(Names::Dotted), dotted);
        assert_eq!(
            names(Names::Underscored),
            dotted.map(|name| name.replace('.', "_"))
        );
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
                assert_eq!(schema["additionalProperties"], false, "{tool}");
                let properties = schema["properties"].as_object();
                for (name, property) in properties.into_iter().flatten() {
                    assert!(property["description"].is_string(), "{name} of {tool}");
                }
            }
        }
        let [health, echo, once, ping] = tools(Names::default()).try_into().unwrap();
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
            strings(&["healthy"])
        );
        assert_eq!(
            output["required"],
            strings(&["status", "uptime_seconds", "timestamp"])
        );
    }

    /// C43, S003-51: activations bring tools, and there is nothing else to declare.
    #[test]
    fn exactly_what_is_there_is_declared() {
        let catalogue = service(Names::default(), "1.2.3").unwrap().catalogue();
        let catalogue = catalogue.borrow();
        let declared = &catalogue.capabilities;
        // C44: the lists never change.
        assert!(declared.tools.is_some_and(|tools| !tools.list_changed));
        assert!(declared.resources.is_none() && declared.prompts.is_none());
        assert!(!declared.completions);
        assert_eq!(catalogue.identity.name, "plexus");
        assert_eq!(catalogue.identity.version, "1.2.3");
    }
}
