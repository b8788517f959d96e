//! Tools that change what the server offers, and announce it.

use std::sync::atomic::{AtomicUsize, Ordering};

use plexus_mcp_core::{
    Builder, Context, NoArguments, Prompt, PromptMessage, Tool, ToolError, ToolResult,
};

use crate::resources;

/// How often each dynamic definition has changed.
static TOOL_CHANGES: AtomicUsize = AtomicUsize::new(0);
static PROMPT_CHANGES: AtomicUsize = AtomicUsize::new(0);

pub(crate) fn add(builder: Builder) -> Builder {
    let builder = builder
        .tool(
            Tool::new("test_trigger_tool_change").description("Changes test_dynamic_tool"),
            async |_: NoArguments, ctx: Context| {
                let changes = TOOL_CHANGES.fetch_add(1, Ordering::Relaxed) + 1;
                edit(&ctx, |builder| dynamic_tool(builder, changes))
            },
        )
        .tool(
            Tool::new("test_trigger_prompt_change").description("Changes test_dynamic_prompt"),
            async |_: NoArguments, ctx: Context| {
                let changes = PROMPT_CHANGES.fetch_add(1, Ordering::Relaxed) + 1;
                edit(&ctx, |builder| dynamic_prompt(builder, changes))
            },
        )
        .tool(
            Tool::new("test_touch_watched_resource")
                .description("Tells everybody who watches it that the watched resource changed"),
            async |_: NoArguments, ctx: Context| {
                ctx.service().resource_updated(resources::WATCHED);
                "Touched"
            },
        );
    dynamic_prompt(dynamic_tool(builder, 0), 0)
}

fn edit(ctx: &Context, edit: impl FnOnce(Builder) -> Builder) -> ToolResult<&'static str> {
    ctx.service().edit(edit).map_err(ToolError::failed)?;
    Ok("Changed")
}

fn dynamic_tool(builder: Builder, changes: usize) -> Builder {
    let tool = Tool::new("test_dynamic_tool").description(format!("Changed {changes} times"));
    builder.tool(tool, async |_: NoArguments, _: Context| "Still here")
}

fn dynamic_prompt(builder: Builder, changes: usize) -> Builder {
    let prompt = Prompt::new("test_dynamic_prompt").description(format!("Changed {changes} times"));
    builder.prompt(prompt, async |_: NoArguments, _: Context| {
        PromptMessage::user("Still here")
    })
}
