//! The script of a scripted server, as data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Offer;

/// The line that the program sends to its test on [`Step::Mark`].
pub const MARK: &str = "mark";

/// The reactions of a program. Messages without a rule are not answered.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Script {
    /// The steps before it reads anything.
    #[serde(default)]
    pub start: Vec<Step>,
    /// The steps for a message with this method: for the first one, for the second one, and so on.
    /// The last entry applies to all further messages.
    #[serde(default)]
    pub on: BTreeMap<String, Vec<Vec<Step>>>,
}

/// A step of a script.
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
    /// Writes this line as it is. It may be an invalid message.
    Print(String),
    /// Writes this text without ending the line.
    Write(String),
    /// Writes this line to standard error.
    Complain(String),
    /// Sends this message repeatedly, concurrently with everything else.
    Flood(Value),
    /// Writes a line that never ends, and stops reading.
    EndlessLine,
    /// Closes its output.
    CloseOutput,
    /// Closes its input, and stops reading.
    CloseInput,
    /// Stops reading.
    Hang,
    /// Exits with this code.
    Exit(i32),
    /// Sends [`MARK`] to the test, after everything that was sent before. For steps from a test
    /// only.
    Mark,
}

impl Script {
    /// A program that never answers.
    pub fn silent() -> Self {
        Self::default()
    }

    /// Adds steps before it reads anything.
    #[must_use]
    pub fn start(mut self, steps: impl IntoIterator<Item = Step>) -> Self {
        self.start.extend(steps);
        self
    }

    /// Sets the steps for every message with `method`, and replaces earlier ones.
    #[must_use]
    pub fn on(mut self, method: &str, steps: impl IntoIterator<Item = Step>) -> Self {
        let steps = steps.into_iter().collect();
        self.on.insert(method.to_owned(), vec![steps]);
        self
    }

    /// Adds steps for the next message with `method`, and for all later ones.
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
    /// A program that offers this and answers correctly.
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
