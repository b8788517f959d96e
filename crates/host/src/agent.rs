//! The agent loop: asks the model, runs the calls of its answer, and asks again with the results,
//! until an answer has no calls.
//!
//! The loop knows tools only through the [`Registry`]. It has no knowledge of servers (S001-03).

mod calls;
mod compaction;

use std::sync::Arc;

use plexus_mcp_agents::model::{
    AnswerPart, ChatMessage, Finish, MessagePart, ModelError, Provider, Question, Speaker,
    ToolCall, ToolDefinition, Usage,
};
use tokio_util::sync::CancellationToken;

use crate::model_client::{ModelClient, Retries};
use crate::observer::{AgentEvent, AgentId, Observer};
use crate::registry::Registry;
use crate::transcript::{Transcript, TranscriptError};

/// The model that an agent uses.
#[derive(Debug, Clone)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers construct it with a struct literal"
)]
pub struct ModelChoice {
    /// Its provider.
    pub provider: Provider,
    /// The provider's name for it.
    pub name: String,
    /// The base URL of its API, if not that of the provider.
    pub base_url: Option<String>,
    /// The maximum number of tokens of an answer.
    pub max_tokens: Option<u32>,
    /// The size of its context window, in tokens.
    pub context_window_tokens: u64,
}

/// The definitions that a request carries. They are asked for anew before each request, so that
/// tools which come and go are there or not from the next request on.
pub type Definitions = Arc<dyn Fn() -> Vec<ToolDefinition> + Send + Sync>;

/// Notices for the model, such as changes of resources, which are put before the next request.
pub type Notices = Arc<dyn Fn() -> Vec<String> + Send + Sync>;

/// The parts of an agent.
#[derive(Clone)]
#[non_exhaustive]
pub struct AgentParts {
    /// Who it is.
    pub id: AgentId,
    /// The client of the model.
    pub client: Arc<dyn ModelClient>,
    /// The model.
    pub model: ModelChoice,
    /// The system prompt, made anew before each request.
    pub system: Arc<dyn Fn() -> String + Send + Sync>,
    /// The tools.
    pub registry: Arc<Registry>,
    /// The definitions that the model is shown.
    pub definitions: Definitions,
    /// Notices for the model.
    pub notices: Notices,
    /// Is told of events.
    pub observer: Arc<dyn Observer>,
    /// How often the model may be asked for one prompt; `None` for no limit.
    pub max_turns: Option<u32>,
}

impl AgentParts {
    /// An agent that shows the model all tools of `registry`, without notices and limits.
    pub fn new(
        client: Arc<dyn ModelClient>,
        model: ModelChoice,
        registry: &Arc<Registry>,
        system: impl Fn() -> String + Send + Sync + 'static,
        observer: Arc<dyn Observer>,
    ) -> Self {
        let shown = Arc::clone(registry);
        Self {
            id: AgentId::main(),
            client,
            model,
            system: Arc::new(system),
            registry: Arc::clone(registry),
            definitions: Arc::new(move || shown.definitions()),
            notices: Arc::new(Vec::new),
            observer,
            max_turns: None,
        }
    }
}

/// An agent with its conversation.
pub struct Agent {
    parts: AgentParts,
    transcript: Transcript,
    messages: Vec<ChatMessage>,
    /// The last prompt of the user.
    prompt: String,
    usage: Usage,
    /// The tokens of the conversation, as of the last answer.
    context_tokens: u64,
    calls: u64,
}

/// How a prompt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "callers report each of them")]
pub enum End {
    /// The model gave its final answer.
    Answered,
    /// The last answer reached its limit of tokens, and is cut off.
    CutOff,
    /// The limit of turns was reached.
    MaxTurns,
    /// The user interrupted it.
    Interrupted,
}

/// The outcome of a prompt.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PromptOutcome {
    /// How it ended.
    pub end: End,
    /// The text of the last answer.
    pub text: String,
    /// How often the model was asked.
    pub turns: u32,
    /// How many calls of tools were made.
    pub calls: u64,
    /// The token usage of all answers.
    pub usage: Usage,
}

/// Why a prompt could not be carried out. The conversation is as it was before the failed request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The model gave no answer.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The conversation cannot be stored.
    #[error("the conversation cannot be stored")]
    Transcript(#[from] TranscriptError),
}

/// An answer of the model.
struct Answered {
    text: String,
    calls: Vec<ToolCall>,
    finish: Finish,
}

impl Agent {
    /// An agent with the conversation that `transcript` has.
    ///
    /// # Errors
    /// The transcript cannot be read.
    pub async fn new(parts: AgentParts, transcript: Transcript) -> Result<Self, AgentError> {
        let messages = transcript.messages().await?;
        Ok(Self {
            parts,
            transcript,
            messages: calls::completed(messages),
            prompt: String::new(),
            usage: Usage::default(),
            context_tokens: 0,
            calls: 0,
        })
    }

    /// The conversation.
    pub fn messages(&self) -> &[ChatMessage] {
        &self.messages
    }

    /// The transcript.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// Changes the model from the next request on.
    pub fn set_model(&mut self, model: ModelChoice) {
        self.parts.model = model;
    }

    /// The model.
    pub fn model(&self) -> &ModelChoice {
        &self.parts.model
    }

    /// Carries out a prompt of the user. Cancelling `cancel` interrupts it: running calls are
    /// cancelled, and the conversation can go on.
    ///
    /// # Errors
    /// The model gave no answer, or the conversation cannot be stored.
    pub async fn prompt(
        &mut self,
        prompt: &str,
        cancel: &CancellationToken,
    ) -> Result<PromptOutcome, AgentError> {
        (self.usage, self.calls) = (Usage::default(), 0);
        prompt.clone_into(&mut self.prompt);
        self.say(ChatMessage::text(Speaker::User, prompt)).await?;
        let mut turns = 0;
        let mut text = String::new();
        loop {
            if cancel.is_cancelled() {
                return Ok(self.outcome(End::Interrupted, text, turns));
            }
            if self.parts.max_turns.is_some_and(|most| turns >= most) {
                return Ok(self.outcome(End::MaxTurns, text, turns));
            }
            self.tell_notices().await?;
            self.compact_if_long(cancel).await?;
            turns += 1;
            let answered = tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    return Ok(self.outcome(End::Interrupted, text, turns));
                }
                answered = self.ask_fitting(cancel) => answered?,
            };
            text.clone_from(&answered.text);
            let calls = answered.calls.clone();
            let end = match answered.finish.stop_reason.as_deref() {
                Some("max_tokens" | "length") => End::CutOff,
                _ => End::Answered,
            };
            self.count(&answered.finish);
            self.say(message_of(answered)).await?;
            if calls.is_empty() {
                return Ok(self.outcome(end, text, turns));
            }
            self.calls += u64::try_from(calls.len()).unwrap_or(u64::MAX);
            self.run_calls(calls, cancel).await?;
        }
    }

    fn outcome(&self, end: End, text: String, turns: u32) -> PromptOutcome {
        PromptOutcome {
            end,
            text,
            turns,
            calls: self.calls,
            usage: self.usage,
        }
    }

    /// Stores a message, and adds it to the conversation. Consecutive messages of the user become
    /// one, because some models refuse two in a row.
    async fn say(&mut self, message: ChatMessage) -> Result<(), AgentError> {
        self.transcript.add(&message).await?;
        calls::push(&mut self.messages, message);
        Ok(())
    }

    async fn tell_notices(&mut self) -> Result<(), AgentError> {
        let notices = (self.parts.notices)();
        if notices.is_empty() {
            return Ok(());
        }
        let text = notices.join("\n");
        self.say(ChatMessage::text(Speaker::User, text)).await
    }

    fn count(&mut self, finish: &Finish) {
        let (read, wrote) = (finish.usage.input_tokens, finish.usage.output_tokens);
        self.usage.input_tokens = sum(self.usage.input_tokens, read);
        self.usage.output_tokens = sum(self.usage.output_tokens, wrote);
        self.context_tokens = sum(read, wrote).unwrap_or_default();
        self.event(&AgentEvent::Answered(finish.usage));
    }

    /// Asks the model. If the conversation is longer than its context window, a summary is sent
    /// instead.
    async fn ask_fitting(&mut self, cancel: &CancellationToken) -> Result<Answered, AgentError> {
        match self.ask().await {
            Err(AgentError::Model(error)) if error.is_about_context_length() => {
                self.compact(cancel).await?;
                self.ask().await
            }
            answered => answered,
        }
    }

    /// Asks the model, again with exponential backoff if it may succeed later. No call of a broken
    /// answer was carried out, so nothing is done twice.
    async fn ask(&self) -> Result<Answered, AgentError> {
        let mut retries = Retries::new();
        loop {
            let error = match self.ask_once(self.question()).await {
                Ok(answered) => return Ok(answered),
                Err(error) => error,
            };
            let Some(after) = retries.delay_after(&error) else {
                return Err(error.into());
            };
            tracing::info!(%error, ?after, "the model could not be asked; trying again");
            let error = error.to_string();
            self.event(&AgentEvent::Retrying { after, error });
            tokio::time::sleep(after).await;
        }
    }

    fn question(&self) -> Question {
        let model = &self.parts.model;
        Question {
            provider: model.provider,
            model: model.name.clone(),
            base_url: model.base_url.clone(),
            system: Some((self.parts.system)()).filter(|text| !text.is_empty()),
            tools: (self.parts.definitions)(),
            messages: self.messages.clone(),
            max_tokens: model.max_tokens,
        }
    }

    async fn ask_once(&self, question: Question) -> Result<Answered, ModelError> {
        self.event(&AgentEvent::Asked);
        let mut answer = self.parts.client.ask(question).await?;
        let (mut text, mut calls) = (String::new(), Vec::new());
        while let Some(part) = answer.next().await? {
            match part {
                AnswerPart::Text(piece) => {
                    text.push_str(&piece);
                    self.event(&AgentEvent::Text(piece));
                }
                AnswerPart::Call(call) => calls.push(call),
            }
        }
        let finish = answer.finish();
        Ok(Answered {
            text,
            calls,
            finish,
        })
    }

    fn event(&self, event: &AgentEvent) {
        self.parts.event(event);
    }
}

impl AgentParts {
    fn event(&self, event: &AgentEvent) {
        self.observer.event(&self.id, event);
    }
}

fn message_of(answered: Answered) -> ChatMessage {
    let text = Some(answered.text).filter(|text| !text.trim().is_empty());
    let calls = answered.calls.into_iter().map(MessagePart::ToolCall);
    let mut parts: Vec<_> = text
        .into_iter()
        .map(MessagePart::Text)
        .chain(calls)
        .collect();
    if parts.is_empty() {
        // Models refuse messages without content in the next request.
        parts.push(MessagePart::Text("(no answer)".to_owned()));
    }
    ChatMessage {
        speaker: Speaker::Assistant,
        parts,
    }
}

fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (None, None) => None,
        (one, other) => Some(
            one.unwrap_or_default()
                .saturating_add(other.unwrap_or_default()),
        ),
    }
}

impl std::fmt::Debug for AgentParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentParts")
            .field("id", &self.id)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent")
            .field("id", &self.parts.id)
            .field("messages", &self.messages.len())
            .finish_non_exhaustive()
    }
}
