//! Asking a model, and keeping what it says.

use plexus_mcp::messages::{ModelHint, ModelPreferences};
use plexus_service::{ClientCapability, Context, CreateMessageParams, Raw, SamplingMessage};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::cones::{Cone, Cones, touch};
use super::error::ConeError;
use super::tables;
use crate::arbor::{self, ArborError, NewNode, Node, Payload};
use crate::model::{Finish, Message, ModelId, Question, Speaker, Usage};

/// How much the client's model may say unless the cone says otherwise.
const MAX_TOKENS: u32 = 4096;

/// What is left of a chat besides its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct Chatted {
    /// The cone's id.
    pub cone_id: String,
    /// The node with the answer; where the head is, if the chat was ephemeral.
    pub new_head: String,
    /// What became of the answer.
    pub outcome: Outcome,
    /// The model that answered, in its own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Why it stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// What it cost, as far as the model says.
    pub usage: Usage,
}

/// What became of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[expect(
    clippy::exhaustive_enums,
    reason = "an answer is kept in one of two places, or nowhere"
)]
pub enum Outcome {
    /// The conversation goes on from it.
    Head,
    /// The head was moved meanwhile, so it is a branch.
    Branch,
    /// It was not stored.
    Ephemeral,
}

/// A question and its answer.
struct Exchange {
    prompt: String,
    answer: String,
    finish: Finish,
}

impl Cones {
    /// Puts `prompt` to a cone, and streams the answer to the caller as it comes.
    ///
    /// Dropping the future before the answer is complete means that nothing is stored.
    ///
    /// # Errors
    /// There is no answer, or only a part of it; then nothing is stored.
    pub async fn chat(
        &self,
        identifier: impl Into<String>,
        prompt: String,
        ephemeral: bool,
        caller: &Context,
    ) -> Result<Chatted, ConeError> {
        if prompt.trim().is_empty() {
            return Err(ConeError::EmptyPrompt);
        }
        let id = self.get(identifier).await?.id;
        if ephemeral {
            let (cone, path) = self.memory(&id, false).await?;
            let messages = self.messages(path, prompt).await;
            let (_, finish) = self.answer(&cone, messages, caller).await?;
            return Ok(chatted(
                &cone,
                cone.head.clone(),
                Outcome::Ephemeral,
                finish,
            ));
        }
        let _turn = self.turn(&id).await;
        let (cone, path) = self.memory(&id, true).await?;
        let messages = self.messages(path, prompt.clone()).await;
        let (answer, finish) = self.answer(&cone, messages, caller).await?;
        let exchange = Exchange {
            prompt,
            answer,
            finish: finish.clone(),
        };
        let kept = self.keep(&cone, exchange).await;
        let (new_head, outcome) = kept.map_err(|error| ConeError::NotKept(Box::new(error)))?;
        Ok(chatted(&cone, new_head, outcome, finish))
    }

    /// The cone as it is now, and what was said so far. With `to_add`, its tree must be one that
    /// can be added to: better to know before the model is asked.
    async fn memory(&self, id: &str, to_add: bool) -> Result<(Cone, Vec<Node>), ConeError> {
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

    /// The path as a conversation that ends with `prompt`. What one side says in several nodes is
    /// one message, since not every model takes two in a row; whoever is not the model is the user.
    async fn messages(&self, path: Vec<Node>, prompt: String) -> Vec<Message> {
        let mut messages: Vec<Message> = Vec::new();
        let mut say = |speaker, text: String| match messages.last_mut() {
            Some(last) if last.speaker == speaker => {
                last.text.push_str("\n\n");
                last.text.push_str(&text);
            }
            _ => messages.push(Message { speaker, text }),
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
                say(speaker, text);
            }
        }
        say(Speaker::User, prompt);
        messages
    }

    /// The whole answer, which was streamed to the caller on its way.
    async fn answer(
        &self,
        cone: &Cone,
        messages: Vec<Message>,
        caller: &Context,
    ) -> Result<(String, Finish), ConeError> {
        let can_sample = caller.supports(ClientCapability::Sampling);
        let (provider, model) = match ModelId::parse(&cone.model_id)? {
            ModelId::Sampled(_) if !can_sample => return Err(ConeError::NoSampling),
            ModelId::Sampled(wish) => return sampled(cone, messages, wish, caller).await,
            ModelId::Provided { provider, name } => (provider, name),
        };
        if !self.models.can_ask(provider, cone.base_url.as_deref()) {
            if !can_sample {
                return Err(ConeError::NobodyAnswers(provider));
            }
            return sampled(cone, messages, Some(model), caller).await;
        }
        let question = Question {
            provider,
            model,
            base_url: cone.base_url.clone(),
            system: cone.system_prompt.clone(),
            messages,
            max_tokens: cone.max_tokens,
        };
        let mut answering = self.models.ask(&question).await?;
        let mut answer = String::new();
        while let Some(piece) = answering.next().await? {
            answer.push_str(&piece);
            caller.stream(piece).await;
        }
        let finish = answering.finish().clone();
        spoken(answer, finish)
    }

    /// Stores an exchange, and moves the head if it is still where the question was asked.
    async fn keep(&self, cone: &Cone, exchange: Exchange) -> Result<(String, Outcome), ConeError> {
        let asked = cone.clone();
        self.trees
            .change(move |change| {
                let now = tables::find(change.db, &asked.id, change.now)?
                    .ok_or(ConeError::NotFound(asked.id))?;
                let Exchange {
                    prompt,
                    answer,
                    finish,
                } = exchange;
                let question = change.add(NewNode {
                    tree_id: now.tree_id.clone(),
                    parent: Some(asked.head.clone()),
                    payload: Payload::Text(prompt),
                    metadata: metadata(&json!({ "role": "user" })),
                })?;
                let said = json!({
                    "role": "assistant",
                    "model": finish.model,
                    "stop_reason": finish.stop_reason,
                    "usage": finish.usage,
                });
                let answer = change.add(NewNode {
                    tree_id: now.tree_id.clone(),
                    parent: Some(question.id),
                    payload: Payload::Text(answer),
                    metadata: metadata(&said),
                })?;
                touch(change, &now.id)?;
                if now.head != asked.head {
                    return Ok((answer.id, Outcome::Branch));
                }
                change.set_head(&now.tree_id, &answer.id)?;
                Ok((answer.id, Outcome::Head))
            })
            .await
    }
}

/// Has the client's own model answer.
async fn sampled(
    cone: &Cone,
    messages: Vec<Message>,
    wish: Option<String>,
    caller: &Context,
) -> Result<(String, Finish), ConeError> {
    let messages = messages.into_iter().map(|message| match message.speaker {
        Speaker::User => SamplingMessage::user(message.text),
        Speaker::Assistant => SamplingMessage::assistant(message.text),
    });
    let max_tokens = cone.max_tokens.unwrap_or(MAX_TOKENS);
    let mut params = CreateMessageParams::new(messages, max_tokens.into());
    params.system_prompt.clone_from(&cone.system_prompt);
    params.model_preferences = wish.map(|name| ModelPreferences {
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
    spoken(text, finish)
}

/// An answer that says something. One that does not would be refused as part of the next question.
fn spoken(answer: String, finish: Finish) -> Result<(String, Finish), ConeError> {
    if answer.trim().is_empty() {
        let reason = finish.stop_reason;
        return Err(ConeError::Speechless(
            reason.unwrap_or_else(|| "none given".to_owned()),
        ));
    }
    Ok((answer, finish))
}

fn metadata(said: &serde_json::Value) -> Option<Raw> {
    Raw::encode(said).ok()
}

fn chatted(cone: &Cone, new_head: String, outcome: Outcome, finish: Finish) -> Chatted {
    Chatted {
        cone_id: cone.id.clone(),
        new_head,
        outcome,
        model: finish.model,
        stop_reason: finish.stop_reason,
        usage: finish.usage,
    }
}
