//! Services that change while they run.

use plexus_mcp_core::{Changes, Context, Fault, NoArguments, Section, Service, Tool};
use serde_json::json;

use crate::catalogue::{with_prompt, with_resource, with_template, with_tool};
use crate::support::{Caller, builder, raw, text};

fn caller() -> Caller {
    let all = with_tool(builder(), Tool::new("tool"));
    let all = with_template(with_resource(all, "test://a"), "test://{id}/b");
    Caller::of(with_prompt(all, "prompt"))
}

/// Only the list that is edited changes, and the change is announced once.
#[tokio::test]
async fn an_edit_changes_its_list_only_and_is_announced_once() {
    let none = Changes::default();
    let caller = caller();
    let mut catalogue = caller.service.catalogue();
    for (section, changes) in [
        (
            Section::Tools,
            Changes {
                tools: true,
                ..none
            },
        ),
        (
            Section::Resources,
            Changes {
                resources: true,
                ..none
            },
        ),
        (
            Section::Templates,
            Changes {
                resources: true,
                ..none
            },
        ),
        (
            Section::Prompts,
            Changes {
                prompts: true,
                ..none
            },
        ),
    ] {
        let before = catalogue.borrow_and_update().clone();
        let edited = caller.service.edit(|builder| match section {
            Section::Tools => with_tool(with_tool(builder, Tool::new("b")), Tool::new("c")),
            Section::Resources => with_resource(builder, "test://b"),
            Section::Templates => with_template(builder, "test://{id}/c"),
            Section::Prompts => with_prompt(builder, "b"),
        });
        assert!(edited.is_ok());
        assert!(catalogue.has_changed().unwrap());
        let after = catalogue.borrow_and_update().clone();
        assert!(!catalogue.has_changed().unwrap());
        assert_eq!(after.changes_since(&before), changes);
        for other in Section::ALL {
            let same = after.list(other).hash() == before.list(other).hash();
            assert_eq!(
                same,
                other != section,
                "{other:?} after an edit of {section:?}"
            );
        }
    }
}

#[tokio::test]
async fn an_invalid_edit_changes_nothing() {
    let caller = caller();
    let catalogue = caller.service.catalogue();
    let edited = caller.service.edit(|builder| {
        let invalid = Tool::new("invalid").input_schema(raw(&json!({ "type": "string" })));
        let builder = builder.remove_tool("tool");
        builder.tool_with_schema(invalid, async |_: plexus_mcp_core::Raw, _: Context| ())
    });
    assert!(edited.is_err());
    assert!(!catalogue.has_changed().unwrap());
    assert!(caller.call_tool("tool", json!({})).await.is_ok());
}

/// A removed entry is neither listed nor called. Without the last entry of its kind, the
/// capability is no longer declared.
#[tokio::test]
async fn removed_entries_are_neither_listed_nor_called() {
    let caller = caller();
    let edited = caller.service.edit(|builder| {
        let builder = builder.remove_tool("tool").remove_prompt("prompt");
        builder
            .remove_resource("test://a")
            .remove_template("test://{id}/b")
    });
    assert!(edited.is_ok());
    let catalogue = caller.catalogue();
    for section in Section::ALL {
        assert!(catalogue.list(section).entries().is_empty(), "{section:?}");
    }
    let declared = &catalogue.capabilities;
    assert!(declared.tools.is_none() && declared.prompts.is_none());
    assert!(declared.resources.is_none());
    let outcome = caller.call_tool("tool", json!({})).await;
    assert_eq!(outcome, Err(Fault::UnknownTool("tool".to_owned())));
    for uri in ["test://a", "test://a/b"] {
        let outcome = caller.call("resources/read", json!({ "uri": uri })).await;
        assert_eq!(outcome, Err(Fault::ResourceNotFound(uri.to_owned())));
    }
}

/// A handler may change the service it belongs to; the change holds for the next call.
#[tokio::test]
async fn a_handler_can_edit_its_own_service() {
    let grow = async |_: NoArguments, ctx: Context| {
        let edited = ctx.service().edit(|builder| {
            builder.tool(
                Tool::new("grown"),
                async |_: NoArguments, _: Context| "here",
            )
        });
        edited.map_err(plexus_mcp_core::ToolError::failed)
    };
    let caller = Caller::of(builder().tool(Tool::new("grow"), grow));
    assert!(caller.call_tool("grown", json!({})).await.is_err());
    assert!(caller.call_tool("grow", json!({})).await.is_ok());
    assert_eq!(caller.call_tool("grown", json!({})).await, Ok(text("here")));
}
