//! Cones as tools.

mod shapes;

use plexus_service::{
    Boxed, Builder, CallToolResult, ClientCapability, Context, Fault, IntoToolResult, Json,
    NoArguments, Raw, Tool, ToolAnnotations, ToolResult,
};

use self::shapes::{Chat, Create, Created, Deleted, Got, Known, Listed, One, Registry, SetHead};
use super::chat::Chatted;
use super::cones::{Cones, Moved, NewCone};
use super::error::ConeError;
use super::prompts::prompts;
use crate::model::{Models, Provider};
use crate::names::Names;

/// Every method of the namespace `cone`, in the order in which they are listed.
pub const METHODS: [&str; 7] = [
    "create", "get", "list", "delete", "chat", "set_head", "registry",
];

/// Adds the tools and prompts of cones.
pub fn cone(builder: Builder, names: Names, cones: &Cones) -> Builder {
    let tool = |method| names.tool("cone", method);
    let builder = builder
        .tool(
            changing(tool("create").title("Create cone"))
                .description("Create a conversation with a language model, which remembers it"),
            listing(cones, create),
        )
        .tool(
            reading(tool("get").title("Get cone")).description("Get one conversation"),
            with(cones, get),
        )
        .tool(
            reading(tool("list").title("List cones"))
                .description("List all conversations, by name"),
            with(cones, list),
        )
        .tool(
            tool("delete")
                .title("Delete cone")
                .annotations(local().read_only(false).destructive(true).idempotent(false))
                .description("Delete a conversation; its tree, with what was said, stays"),
            listing(cones, delete),
        )
        .tool(
            tool("chat")
                .title("Chat")
                .annotations(
                    ToolAnnotations::new()
                        .read_only(false)
                        .destructive(false)
                        .idempotent(false)
                        .open_world(true),
                )
                .description(
                    "Say something in a conversation, and get the model's answer, streamed as it \
                     comes; both are remembered, unless the chat is ephemeral",
                ),
            with_caller(cones, chat),
        )
        .tool(
            tool("set_head")
                .title("Set head")
                .annotations(local().read_only(false).destructive(false).idempotent(true))
                .description("Let a conversation go on from another node: rewind it, or branch"),
            with(cones, set_head),
        )
        .tool(
            tool("registry")
                .title("List models")
                .annotations(ToolAnnotations::new().read_only(true).open_world(true))
                .description("List who can be asked, and their models"),
            with_caller(cones, registry),
        );
    prompts(builder, cones)
}

async fn create(cones: Cones, arguments: Create) -> Result<Created, ConeError> {
    let Create {
        name,
        model_id,
        system_prompt,
        metadata,
        base_url,
        max_tokens,
    } = arguments;
    let new = NewCone {
        name,
        model_id,
        system_prompt,
        base_url,
        max_tokens,
        metadata,
    };
    let cone = cones.create(new).await?;
    Ok(Created {
        cone_id: cone.id,
        tree_id: cone.tree_id,
        head: cone.head,
    })
}

async fn get(cones: Cones, One { identifier }: One) -> Result<Got, ConeError> {
    let cone = cones.get(identifier).await?;
    Ok(Got { cone })
}

async fn list(cones: Cones, _: NoArguments) -> Result<Listed, ConeError> {
    let cones = cones.list().await?;
    Ok(Listed { cones })
}

async fn delete(cones: Cones, One { identifier }: One) -> Result<Deleted, ConeError> {
    let cone = cones.delete(identifier).await?;
    Ok(Deleted {
        cone_id: cone.id,
        tree_id: cone.tree_id,
    })
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

async fn set_head(cones: Cones, arguments: SetHead) -> Result<Moved, ConeError> {
    cones
        .set_head(arguments.identifier, arguments.node_id)
        .await
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
        let structured = Raw::encode(&self.0)
            .map_err(|error| Fault::Internal(format!("the result is no JSON: {error}")))?;
        Ok(CallToolResult::new([]).structured_content(structured))
    }

    fn output_schema() -> Option<schemars::Schema> {
        Some(schemars::schema_for!(Chatted))
    }
}

/// A handler that is given the cones, and whose changes are announced by the service it is called
/// through.
fn with<Args, Fut, R>(
    cones: &Cones,
    handler: fn(Cones, Args) -> Fut,
) -> impl Fn(Args, Context) -> Boxed<ToolResult<Json<R>>> + Send + Sync + 'static
where
    Args: 'static,
    Fut: Future<Output = Result<R, ConeError>> + Send + 'static,
    R: 'static,
{
    let cones = cones.clone();
    move |arguments, context| {
        let done = handler(cones.announcing_to(context.service()), arguments);
        Box::pin(async move { Ok(Json(done.await?)) })
    }
}

/// The same for a tool that changes which cones there are.
fn listing<Args, Fut, R>(
    cones: &Cones,
    handler: fn(Cones, Args) -> Fut,
) -> impl Fn(Args, Context) -> Boxed<ToolResult<Json<R>>> + Send + Sync + 'static
where
    Args: 'static,
    Fut: Future<Output = Result<R, ConeError>> + Send + 'static,
    R: Send + 'static,
{
    let cones = cones.clone();
    move |arguments, context| {
        let cones = cones.announcing_to(context.service());
        let done = handler(cones.clone(), arguments);
        Box::pin(async move {
            let done = done.await?;
            cones.offer(context.service()).await;
            Ok(Json(done))
        })
    }
}

/// The same for a tool that talks to its caller.
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
        let cones = cones.announcing_to(context.service());
        handler(cones, arguments, context)
    }
}

fn local() -> ToolAnnotations {
    ToolAnnotations::new().open_world(false)
}

fn reading(tool: Tool) -> Tool {
    tool.annotations(local().read_only(true))
}

fn changing(tool: Tool) -> Tool {
    tool.annotations(
        local()
            .read_only(false)
            .destructive(false)
            .idempotent(false),
    )
}
