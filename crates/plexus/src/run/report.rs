//! What a run prints: the answer on standard output, refused calls on standard error.

use std::sync::{Arc, Mutex, PoisonError};

use clap::ValueEnum;
use plexus_mcp_agents::model::Usage;
use plexus_mcp_host::agent::{Agent, AgentError, End, PromptOutcome};
use plexus_mcp_host::observer::{AgentEvent, AgentId, Observer};
use serde::Serialize;
use tokio::time::Instant;

use crate::output::{as_json, print, print_data, say};
use crate::session::Session;

/// The form of the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The text of the answer.
    #[default]
    Text,
    /// One JSON object when the run has ended.
    Json,
    /// One JSON object in each line, as events happen.
    StreamJson,
}

/// Prints the events of a run.
pub(super) struct Reporter {
    format: Format,
    began: Instant,
    /// Why standard output failed.
    failure: Mutex<Option<std::io::Error>>,
}

/// A line of `stream-json`.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line<'a> {
    Init {
        session_id: &'a str,
        model: &'a str,
        mcp_servers: Vec<ServerLine>,
    },
    Text {
        #[serde(skip_serializing_if = "str::is_empty")]
        agent: &'a str,
        text: &'a str,
    },
    ToolCall {
        #[serde(skip_serializing_if = "str::is_empty")]
        agent: &'a str,
        id: &'a str,
        name: &'a str,
        input: &'a str,
    },
    ToolResult {
        #[serde(skip_serializing_if = "str::is_empty")]
        agent: &'a str,
        id: &'a str,
        is_error: bool,
        text: &'a str,
    },
    Retry {
        after_ms: u128,
        error: &'a str,
    },
    Compacted,
    Result(ResultLine<'a>),
}

#[derive(Serialize)]
struct ServerLine {
    name: String,
    status: &'static str,
}

/// The outcome of a run.
#[derive(Serialize)]
struct ResultLine<'a> {
    is_error: bool,
    end: &'a str,
    result: &'a str,
    session_id: &'a str,
    num_turns: u32,
    tool_calls: u64,
    duration_ms: u128,
    usage: Usage,
}

impl Reporter {
    pub(super) fn new(format: Format) -> Self {
        Self {
            format,
            began: Instant::now(),
            failure: Mutex::default(),
        }
    }

    pub(super) fn observer(self: &Arc<Self>) -> Arc<dyn Observer> {
        Arc::clone(self) as Arc<dyn Observer>
    }

    pub(super) fn begins(&self, agent: &Agent, session: &Session) -> anyhow::Result<()> {
        let members = session.hub.status().into_iter();
        let servers = members.filter(|member| member.status.is_some());
        self.line(&Line::Init {
            session_id: agent.transcript().id(),
            model: &agent.model().name,
            mcp_servers: servers
                .map(|member| ServerLine {
                    status: member.state().as_str(),
                    name: member.name.to_string(),
                })
                .collect(),
        });
        self.check()
    }

    pub(super) fn ends(&self, session_id: &str, outcome: &PromptOutcome) -> anyhow::Result<()> {
        let end = match outcome.end {
            End::Answered => "answered",
            End::CutOff => "cut_off",
            End::MaxTurns => "max_turns",
            End::Interrupted => "interrupted",
        };
        let result = ResultLine {
            is_error: outcome.end != End::Answered,
            end,
            result: &outcome.text,
            session_id,
            num_turns: outcome.turns,
            tool_calls: outcome.calls,
            duration_ms: self.began.elapsed().as_millis(),
            usage: outcome.usage,
        };
        match self.format {
            Format::Text => print_data(&format!("{}\n", outcome.text.trim_end()))?,
            Format::Json => print(as_json(&result)?)?,
            Format::StreamJson => self.line(&Line::Result(result)),
        }
        self.check()
    }

    pub(super) fn fails(&self, session_id: &str, error: &AgentError) -> anyhow::Result<()> {
        let error = error.to_string();
        let result = ResultLine {
            is_error: true,
            end: "failed",
            result: &error,
            session_id,
            num_turns: 0,
            tool_calls: 0,
            duration_ms: self.began.elapsed().as_millis(),
            usage: Usage::default(),
        };
        match self.format {
            Format::Text => {}
            Format::Json => print(as_json(&result)?)?,
            Format::StreamJson => self.line(&Line::Result(result)),
        }
        self.check()
    }

    /// Prints a line of `stream-json`.
    fn line(&self, line: &Line<'_>) {
        if self.format != Format::StreamJson {
            return;
        }
        let printed = serde_json::to_string(line)
            .map_err(std::io::Error::from)
            .and_then(|json| print(json + "\n"));
        if let Err(error) = printed {
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    }

    fn check(&self) -> anyhow::Result<()> {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        match failure.take() {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }
}

impl Observer for Reporter {
    fn event(&self, agent: &AgentId, event: &AgentEvent) {
        let agent = &*agent.description;
        match event {
            AgentEvent::Text(text) => self.line(&Line::Text { agent, text }),
            AgentEvent::CallBegan(call) => self.line(&Line::ToolCall {
                agent,
                id: &call.id,
                name: &call.name,
                input: &call.input,
            }),
            AgentEvent::CallEnded { id, output } => {
                if output.is_refused {
                    say(&output.text);
                }
                self.line(&Line::ToolResult {
                    agent,
                    id,
                    is_error: output.is_error,
                    text: &output.text,
                });
            }
            AgentEvent::Retrying { after, error } => {
                say(format!("{error}; trying again in {after:.1?}"));
                let after_ms = after.as_millis();
                self.line(&Line::Retry { after_ms, error });
            }
            AgentEvent::Compacted => self.line(&Line::Compacted),
            _ => {}
        }
    }
}
