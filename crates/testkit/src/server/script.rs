//! What a scripted program does, as data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Offer;

/// What a program tells its test on [`Step::Mark`].
pub const MARK: &str = "mark";

/// How a program reacts. What it has no rule for, it leaves unanswered.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Script {
    /// What it does before it reads anything.
    #[serde(default)]
    pub start: Vec<Step>,
    /// What it does on a message with this method: the first time, the second time, and so on. The
    /// last holds for all further times.
    #[serde(default)]
    pub on: BTreeMap<String, Vec<Vec<Step>>>,
}

/// One thing that a program does.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Step {
    /// Answers the request with this result.
    Result(Value),
    /// Answers the request with this error object.
    Error(Value),
    /// Answers the request with its own parameters, as the member `echo` of the result.
    Echo,
    /// Sends this message.
    Say(Value),
    /// Writes this line, message or not.
    Print(String),
    /// Writes this without ending the line.
    Write(String),
    /// Writes this line to standard error.
    Complain(String),
    /// Sends this message over and over, beside everything else.
    Flood(Value),
    /// Writes a line that never ends, and reads no more.
    EndlessLine,
    /// Closes its output.
    CloseOutput,
    /// Closes its input, and reads no more.
    CloseInput,
    /// Reads no more.
    Hang,
    /// Ends with this code.
    Exit(i32),
    /// Tells the test [`MARK`], after all that it was told before. Only a test can have this done.
    Mark,
}

impl Script {
    /// A program that never answers.
    pub fn silent() -> Self {
        Self::default()
    }

    /// Does this before it reads anything.
    #[must_use]
    pub fn start(mut self, steps: impl IntoIterator<Item = Step>) -> Self {
        self.start.extend(steps);
        self
    }

    /// Does this whenever a message with `method` comes, instead of what it would have done.
    #[must_use]
    pub fn on(mut self, method: &str, steps: impl IntoIterator<Item = Step>) -> Self {
        let steps = steps.into_iter().collect();
        self.on.insert(method.to_owned(), vec![steps]);
        self
    }

    /// Does this the next time, and from then on.
    #[must_use]
    pub fn then(mut self, method: &str, steps: impl IntoIterator<Item = Step>) -> Self {
        let steps = steps.into_iter().collect();
        self.on.entry(method.to_owned()).or_default().push(steps);
        self
    }

    /// Leaves messages with `method` unanswered.
    #[must_use]
    pub fn ignoring(self, method: &str) -> Self {
        self.on(method, [])
    }
}

impl From<&Offer> for Script {
    /// A program that offers this, and does all it should.
    fn from(offer: &Offer) -> Self {
        let mut script = Self::silent();
        for method in Offer::METHODS {
            let step = match offer.answer(method) {
                Ok(result) => Step::Result(result),
                Err(error) => Step::Error(error),
            };
            script = script.on(method, [step]);
        }
        script
    }
}
