//! Chats: sends a prompt to a model, and stores the answer.

use plexus_mcp_core::{ClientCapability, Context, CreateMessageParams, Raw, SamplingMessage};
use plexus_mcp_protocol::messages::{ModelHint, ModelPreferences};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::cones::{Cone, Cones, touch};
use super::error::ConeError;
use super::tables;
use crate::model::{AnswerPart, ChatMessage, Finish, ModelId, Question, Speaker, Usage};
use plexus_mcp_builtins::arbor::{self, ArborError, NewTreeNode, Payload, TreeNode};

/// The maximum number of tokens of a sampled answer, unless the cone sets another.
const DEFAULT_SAMPLED_TOKENS: u32 = 4096;

/// The result of a chat, besides the text of the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct ChatSummary {
    /// The cone's id.
    pub cone_id: String,
    /// The node with the answer; the unchanged head, if the chat was ephemeral.
    pub new_head: String,
    /// Where the answer was stored.
    pub outcome: Outcome,
    /// The name of the model, as the provider gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Why the model stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// The token usage, as far as the provider reports it.
    pub usage: Usage,
}

/// Where the answer of a chat was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[expect(
    clippy::exhaustive_enums,
    reason = "an answer is stored at the head, on a branch, or not at all"
)]
pub enum Outcome {
    /// The answer is the new head of the conversation.
    Head,
    /// The head was moved meanwhile, so the answer is on a branch.
    Branch,
    /// The answer was not stored.
    Ephemeral,
}

/// A question and its answer.
struct Exchange {
    prompt: String,
    answer: String,
    finish: Finish,
}

impl Cones {
    /// Sends `prompt` to the model of a cone, and streams the answer to the caller.
    ///
    /// If the future is dropped before the answer is complete, nothing is stored.
    ///
    /// # Errors
    /// The model gave no answer, or only a part of one. Nothing is stored then.
    pub async fn chat(
        &self,
        identifier: impl Into<String>,
        prompt: String,
        ephemeral: bool,
        caller: &Context,
    ) -> Result<ChatSummary, ConeError> {
        if prompt.trim().is_empty() {
            return Err(ConeError::EmptyPrompt);
        }
        let id = self.get(identifier).await?.id;
        if ephemeral {
            let (cone, path) = self.conversation(&id, false).await?;
            let messages = self.messages(path, prompt).await;
            let (_, finish) = self.answer(&cone, messages, caller).await?;
            return Ok(summary(
                &cone,
                cone.head.clone(),
                Outcome::Ephemeral,
                finish,
            ));
        }
        let _chat_lock = self.lock_chat(&id).await;
        let (cone, path) = self.conversation(&id, true).await?;
        let messages = self.messages(path, prompt.clone()).await;
        let (answer, finish) = self.answer(&cone, messages, caller).await?;
        let exchange = Exchange {
            prompt,
            answer,
            finish: finish.clone(),
        };
        let stored = self.store_exchange(&cone, exchange).await;
        let (new_head, outcome) = stored.map_err(|error| ConeError::NotStored(Box::new(error)))?;
        Ok(summary(&cone, new_head, outcome, finish))
    }

    /// The cone and the nodes of the conversation so far. With `to_add`, fails if nodes cannot be
    /// added to its tree, so that the model is not asked in vain.
    async fn conversation(
        &self,
        id: &str,
        to_add: bool,
    ) -> Result<(Cone, Vec<TreeNode>), ConeError> {
        let (id, now) = (id.to_owned(), self.trees.now());
        self.read(move |db| {
            let cone = tables::find(db, &id, now)?.ok_or(ConeError::NotFound(id))?;
            if to_add {
                arbor::summary_in(db, &cone.tree_id, now)?.must_be_active()?;
            }
            let path = match arbor::path_nodes(db, &cone.tree_id, &cone.head) {
                Err(ArborError::TooMuchText { size, .. }) => {
                    return Err(ConeError::TooLong(size));
                }
                path => path?,
            };
            Ok((cone, path))
        })
        .await
    }

    /// The path as messages, followed by `prompt`. Consecutive nodes of one side are joined to one
    /// message, since some models refuse two in a row. Every role but that of the model counts as
    /// user.
    async fn messages(&self, path: Vec<TreeNode>, prompt: String) -> Vec<ChatMessage> {
        let mut said: Vec<(Speaker, String)> = Vec::new();
        let mut push = |speaker, text: String| match said.last_mut() {
            Some((last, joined)) if *last == speaker => {
                joined.push_str("\n\n");
                joined.push_str(&text);
            }
            _ => said.push((speaker, text)),
        };
        for node in path {
            let speaker = match node.role.as_deref() {
                Some("assistant") => Speaker::Assistant,
                _ => Speaker::User,
            };
            let text = match (node.content, node.handle) {
                (Some(content), _) => content,
                (None, Some(handle)) => {
                    let text = self.trees.resolve(&handle).await;
                    text.unwrap_or_else(|| format!("[{handle}]"))
                }
                (None, None) => continue,
            };
            if !text.trim().is_empty() {
                push(speaker, text);
            }
        }
        push(Speaker::User, prompt);
        let messages = said.into_iter();
        messages
            .map(|(speaker, text)| ChatMessage::text(speaker, text))
            .collect()
    }

    /// Gets the whole answer, and streams it to the caller meanwhile.
    async fn answer(
        &self,
        cone: &Cone,
        messages: Vec<ChatMessage>,
        caller: &Context,
    ) -> Result<(String, Finish), ConeError> {
        let can_sample = caller.supports(ClientCapability::Sampling);
        let (provider, model) = match ModelId::parse(&cone.model_id)? {
            ModelId::Sampled(_) if !can_sample => return Err(ConeError::NoSampling),
            ModelId::Sampled(model_hint) => {
                return sampled(cone, messages, model_hint, caller).await;
            }
            ModelId::Provided { provider, name } => (provider, name),
        };
        if !self.models.can_ask(provider, cone.base_url.as_deref()) {
            if !can_sample {
                return Err(ConeError::ProviderUnavailable(provider));
            }
            return sampled(cone, messages, Some(model), caller).await;
        }
        let question = Question {
            provider,
            model,
            base_url: cone.base_url.clone(),
            system: cone.system_prompt.clone(),
            tools: Vec::new(),
            messages,
            max_tokens: cone.max_tokens,
        };
        let mut answering = self.models.ask(&question).await?;
        let mut answer = String::new();
        while let Some(part) = answering.next().await? {
            // The model was given no tools to call.
            if let AnswerPart::Text(piece) = part {
                answer.push_str(&piece);
                caller.stream(piece).await;
            }
        }
        let finish = answering.finish().clone();
        require_text(answer, finish)
    }

    /// Stores an exchange. Moves the head, unless the head was moved since the question was asked.
    async fn store_exchange(
        &self,
        cone: &Cone,
        exchange: Exchange,
    ) -> Result<(String, Outcome), ConeError> {
        let before = cone.clone();
        self.trees
            .change(move |change| {
                let now = tables::find(change.db, &before.id, change.now)?
                    .ok_or(ConeError::NotFound(before.id))?;
                let Exchange {
                    prompt,
                    answer,
                    finish,
                } = exchange;
                let question = change.add(NewTreeNode {
                    tree_id: now.tree_id.clone(),
                    parent: Some(before.head.clone()),
                    payload: Payload::Text(prompt),
                    metadata: metadata(&json!({ "role": "user" })),
                })?;
                let answer_metadata = json!({
                    "role": "assistant",
                    "model": finish.model,
                    "stop_reason": finish.stop_reason,
                    "usage": finish.usage,
                });
                let answer = change.add(NewTreeNode {
                    tree_id: now.tree_id.clone(),
                    parent: Some(question.id),
                    payload: Payload::Text(answer),
                    metadata: metadata(&answer_metadata),
                })?;
                touch(change, &now.id)?;
                if now.head != before.head {
                    return Ok((answer.id, Outcome::Branch));
                }
                change.set_head(&now.tree_id, &answer.id)?;
                Ok((answer.id, Outcome::Head))
            })
            .await
    }
}

/// Gets the answer from the client's own model, by sampling.
async fn sampled(
    cone: &Cone,
    messages: Vec<ChatMessage>,
    model_hint: Option<String>,
    caller: &Context,
) -> Result<(String, Finish), ConeError> {
    let messages = messages.into_iter().map(|message| match message.speaker {
        Speaker::User => SamplingMessage::user(message.joined_text()),
        Speaker::Assistant => SamplingMessage::assistant(message.joined_text()),
    });
    let max_tokens = cone.max_tokens.unwrap_or(DEFAULT_SAMPLED_TOKENS);
    let mut params = CreateMessageParams::new(messages, max_tokens.into());
    params.system_prompt.clone_from(&cone.system_prompt);
    params.model_preferences = model_hint.map(|name| ModelPreferences {
        hints: vec![ModelHint { name: Some(name) }],
        ..ModelPreferences::default()
    });
    let answer = caller.sample_as("answer", params).await;
    let answer = answer.map_err(ConeError::Sampling)?;
    let text = answer.text();
    let finish = Finish {
        model: Some(answer.model),
        stop_reason: answer.stop_reason,
        usage: Usage::default(),
    };
    caller.stream(text.as_str()).await;
    require_text(text, finish)
}

/// Refuses a blank answer, which providers would refuse as part of the next request.
fn require_text(answer: String, finish: Finish) -> Result<(String, Finish), ConeError> {
    if answer.trim().is_empty() {
        let reason = finish.stop_reason;
        return Err(ConeError::EmptyAnswer(
            reason.unwrap_or_else(|| "none given".to_owned()),
        ));
    }
    Ok((answer, finish))
}

fn metadata(value: &serde_json::Value) -> Option<Raw> {
    Raw::encode(value).ok()
}

fn summary(cone: &Cone, new_head: String, outcome: Outcome, finish: Finish) -> ChatSummary {
    ChatSummary {
        cone_id: cone.id.clone(),
        new_head,
        outcome,
        model: finish.model,
        stop_reason: finish.stop_reason,
        usage: finish.usage,
    }
}
