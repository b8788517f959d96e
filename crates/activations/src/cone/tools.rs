//! Cones as tools.

mod shapes;

use plexus_service::{
    Builder, CallToolResult, ClientCapability, Context, IntoToolResult, Json, LocalService,
    NoArguments, ToolAnnotations, ToolResult,
};

use self::shapes::{Chat, Create, Created, Deleted, Got, Known, Listed, One, Registry, SetHead};
use super::chat::Chatted;
use super::cones::Cones;
use super::error::ConeError;
use super::prompts::prompts;
use crate::hints::{changing, destructive, idempotent, reading};
use crate::json::encoded;
use crate::model::{Models, Provider};
use crate::names::Names;
use crate::tools::{Shown, Tools};

/// Adds the tools and prompts of cones.
pub fn cone(builder: Builder, names: Names, cones: &Cones) -> Builder {
    let tool = |method, title| names.tool("cone", method).title(title);
    let Tools { builder, .. } = Tools { builder, of: cones }
        .listing(
            changing(tool("create", "Create cone"))
                .description("Create a conversation with a language model, which remembers it"),
            async |cones: Cones, new: Create| cones.create(new.into()).await.map(Created::from),
        )
        .tool(
            reading(tool("get", "Get cone")).description("Get one conversation"),
            async |cones: Cones, One { identifier }: One| {
                let cone = cones.get(identifier).await?;
                Ok(Got { cone })
            },
        )
        .tool(
            reading(tool("list", "List cones")).description("List all conversations, by name"),
            async |cones: Cones, _: NoArguments| {
                let cones = cones.list().await?;
                Ok(Listed { cones })
            },
        )
        .listing(
            destructive(tool("delete", "Delete cone"))
                .description("Delete a conversation; its tree, with what was said, stays"),
            async |cones: Cones, One { identifier }: One| {
                cones.delete(identifier).await.map(Deleted::from)
            },
        )
        .tool(
            idempotent(tool("set_head", "Set head"))
                .description("Let a conversation go on from another node: rewind it, or branch"),
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
                .description("List who can be asked, and their models"),
            with_caller(cones, registry),
        );
    prompts(builder, cones)
}

impl Shown for Cones {
    type Error = ConeError;

    fn announcing_to(&self, service: &LocalService) -> Self {
        Self::announcing_to(self, Some(service))
    }

    async fn offer(&self, service: &LocalService) {
        Self::offer(self, service).await;
    }
}

async fn chat(cones: Cones, arguments: Chat, caller: Context) -> ToolResult<Said> {
    let Chat {
        identifier,
        prompt,
        ephemeral,
    } = arguments;
    let ephemeral = ephemeral.unwrap_or(false);
    let chatted = cones.chat(identifier, prompt, ephemeral, &caller).await?;
    Ok(Said(chatted))
}

async fn registry(cones: Cones, _: NoArguments, caller: Context) -> ToolResult<Json<Registry>> {
    let models = &cones.models;
    let (anthropic, openai) = tokio::join!(
        known(models, Provider::Anthropic),
        known(models, Provider::OpenAi)
    );
    let ready = caller.supports(ClientCapability::Sampling);
    let sampling = Known {
        name: "sampling".to_owned(),
        ready,
        base_url: None,
        problem: (!ready).then(|| "the client does not offer it".to_owned()),
        models: vec!["sampling".to_owned()],
    };
    let providers = vec![anthropic, openai, sampling];
    Ok(Json(Registry { providers }))
}

async fn known(models: &Models, provider: Provider) -> Known {
    let ready = models.can_ask(provider, None);
    let listed = models.list(provider).await;
    let (problem, names) = match listed {
        Ok(names) => (None, names),
        Err(error) => (Some(error.to_string()), Vec::new()),
    };
    let id = |name| format!("{provider}/{name}");
    Known {
        name: provider.to_string(),
        ready,
        base_url: models.base_url(provider).ok().map(str::to_owned),
        problem,
        models: names.into_iter().map(id).collect(),
    }
}

/// The end of a chat. Its text was streamed, and is the one block of the result (C16): nothing is
/// added to what the model says.
struct Said(Chatted);

impl IntoToolResult for Said {
    fn into_tool_result(self) -> ToolResult {
        Ok(CallToolResult::new([]).structured_content(encoded(&self.0)?))
    }

    fn output_schema() -> Option<schemars::Schema> {
        Some(schemars::schema_for!(Chatted))
    }
}

/// A handler that talks to its caller, and whose changes are announced by the service it is called
/// through.
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
        let cones = cones.announcing_to(Some(context.service()));
        handler(cones, arguments, context)
    }
}
