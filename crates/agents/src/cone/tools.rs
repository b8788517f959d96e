//! The tools of cones.

mod shapes;

use plexus_mcp_core::{
    Builder, CallToolResult, ClientCapability, Context, IntoToolResult, Json, LocalService,
    NoArguments, ToolAnnotations, ToolResult,
};

use self::shapes::{
    ConeChatArguments, ConeIdentifier, ConeList, CreateCone, Created, DeletedCone, FoundCone,
    ProviderStatus, Registry, SetHead,
};
use super::chat::ChatSummary;
use super::cones::Cones;
use super::error::ConeError;
use super::prompts::prompts;
use crate::model::{Models, Provider};
use plexus_mcp_builtins::Names;
use plexus_mcp_builtins::support::to_json;
use plexus_mcp_builtins::support::{ToolData, ToolSet};
use plexus_mcp_builtins::support::{destructive, idempotent, non_destructive, read_only};

/// Adds the tools and prompts of cones.
pub fn cone(builder: Builder, names: Names, cones: &Cones) -> Builder {
    let tool = |method, title| names.tool("cone", method).title(title);
    let ToolSet { builder, .. } = ToolSet {
        builder,
        data: cones,
    }
    .tool_with_refresh(
        non_destructive(tool("create", "Create cone"))
            .description("Create a stored conversation with a language model"),
        async |cones: Cones, new: CreateCone| cones.create(new.into()).await.map(Created::from),
    )
    .tool(
        read_only(tool("get", "Get cone")).description("Get a conversation"),
        async |cones: Cones, ConeIdentifier { identifier }: ConeIdentifier| {
            let cone = cones.get(identifier).await?;
            Ok(FoundCone { cone })
        },
    )
    .tool(
        read_only(tool("list", "List cones")).description("List all conversations, by name"),
        async |cones: Cones, _: NoArguments| {
            let cones = cones.list().await?;
            Ok(ConeList { cones })
        },
    )
    .tool_with_refresh(
        destructive(tool("delete", "Delete cone"))
            .description("Delete a conversation; its tree with the messages stays"),
        async |cones: Cones, ConeIdentifier { identifier }: ConeIdentifier| {
            cones.delete(identifier).await.map(DeletedCone::from)
        },
    )
    .tool(
        idempotent(tool("set_head", "Set head"))
            .description("Continue a conversation from another node: rewind it, or branch"),
        async |cones: Cones, to: SetHead| cones.set_head(to.identifier, to.node_id).await,
    );
    let chatting = ToolAnnotations::new()
        .read_only(false)
        .destructive(false)
        .idempotent(false)
        .open_world(true);
    let builder = builder
        .tool(
            tool("chat", "Chat").annotations(chatting).description(
                "Say something in a conversation, and get the model's answer, streamed as it \
                 comes; both are remembered, unless the chat is ephemeral",
            ),
            with_caller(cones, chat),
        )
        .tool(
            tool("registry", "List models")
                .annotations(ToolAnnotations::new().read_only(true).open_world(true))
                .description("List the model providers and their models"),
            with_caller(cones, registry),
        );
    prompts(builder, cones)
}

impl ToolData for Cones {
    type Error = ConeError;

    fn notifying(&self, service: &LocalService) -> Self {
        Self::notifying(self, Some(service))
    }

    async fn refresh_lists(&self, service: &LocalService) {
        Self::refresh_lists(self, service).await;
    }
}

async fn chat(
    cones: Cones,
    arguments: ConeChatArguments,
    caller: Context,
) -> ToolResult<ChatResult> {
    let ConeChatArguments {
        identifier,
        prompt,
        ephemeral,
    } = arguments;
    let ephemeral = ephemeral.unwrap_or(false);
    let chatted = cones.chat(identifier, prompt, ephemeral, &caller).await?;
    Ok(ChatResult(chatted))
}

async fn registry(cones: Cones, _: NoArguments, caller: Context) -> ToolResult<Json<Registry>> {
    let models = &cones.models;
    let (anthropic, openai) = tokio::join!(
        provider_status(models, Provider::Anthropic),
        provider_status(models, Provider::OpenAi)
    );
    let ready = caller.supports(ClientCapability::Sampling);
    let sampling = ProviderStatus {
        name: "sampling".to_owned(),
        ready,
        base_url: None,
        problem: (!ready).then(|| "the client does not support sampling".to_owned()),
        models: vec!["sampling".to_owned()],
    };
    let providers = vec![anthropic, openai, sampling];
    Ok(Json(Registry { providers }))
}

async fn provider_status(models: &Models, provider: Provider) -> ProviderStatus {
    let ready = models.can_ask(provider, None);
    let listed = models.list(provider).await;
    let (problem, names) = match listed {
        Ok(names) => (None, names),
        Err(error) => (Some(error.to_string()), Vec::new()),
    };
    let id = |name| format!("{provider}/{name}");
    ProviderStatus {
        name: provider.to_string(),
        ready,
        base_url: models.base_url(provider).ok().map(str::to_owned),
        problem,
        models: names.into_iter().map(id).collect(),
    }
}

/// The result of a chat. The streamed text of the model is the only block (C16).
struct ChatResult(ChatSummary);

impl IntoToolResult for ChatResult {
    fn into_tool_result(self) -> ToolResult {
        Ok(CallToolResult::new([]).structured_content(to_json(&self.0)?))
    }

    fn output_schema() -> Option<schemars::Schema> {
        Some(schemars::schema_for!(ChatSummary))
    }
}

/// A handler that gets the context of its call, and whose changes are notified by the called
/// service.
fn with_caller<Args, Fut>(
    cones: &Cones,
    handler: fn(Cones, Args, Context) -> Fut,
) -> impl Fn(Args, Context) -> Fut + Send + Sync + 'static
where
    Args: 'static,
    Fut: 'static,
{
    let cones = cones.clone();
    move |arguments, context| {
        let cones = cones.notifying(Some(context.service()));
        handler(cones, arguments, context)
    }
}
