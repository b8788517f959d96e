//! Questions to the caller.

use plexus_mcp_protocol::messages::{
    CreateMessageParams, CreateMessageResult, ElicitAction, ElicitParams, ElicitResult,
    ListRootsResult, Root,
};
use plexus_mcp_wire::Raw;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Context;
use crate::event::{AskError, Question};
use crate::form::{self, Form};

/// Each method sends a question to the caller and waits for the response. Dropping the future
/// withdraws it. A question may have a `key`, unique and stable within its call; a stateless client
/// may send the answer under that key in advance (`inputResponses`).
impl Context {
    /// Asks the user to fill in a form with the fields of `T`, a flat struct. `None` means that the
    /// user declined, or closed it without a choice.
    ///
    /// The form is generated from the Rust type: doc comments become descriptions, an [`Option`] is
    /// an optional field, `#[serde(default)]` gives a field its default, an enum without data is a
    /// choice and a [`Vec`] of it a choice of several.
    ///
    /// ```
    /// # use plexus_mcp_core::{AskError, Context};
    /// /// This doc comment is not part of the form.
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Order {
    ///     /// How many to send.
    ///     #[schemars(range(min = 1, max = 99))]
    ///     count: u8,
    ///     gift_note: Option<String>,
    /// }
    ///
    /// async fn order(ctx: &Context) -> Result<String, AskError> {
    ///     Ok(match ctx.fill_in("What may we send you?").await? {
    ///         Some(Order { count, .. }) => format!("{count} are on their way"),
    ///         None => "perhaps another time".to_owned(),
    ///     })
    /// }
    /// ```
    ///
    /// # Errors
    /// See [`AskError`]. An answer that violates the form's schema is [`AskError::Malformed`].
    pub async fn fill_in<T>(&self, message: impl Into<String>) -> Result<Option<T>, AskError>
    where
        T: DeserializeOwned + JsonSchema,
    {
        self.fill_in_as(None, message).await
    }

    /// As [`Context::fill_in`], with a key for the answer.
    ///
    /// # Errors
    /// See [`Context::fill_in`].
    pub async fn fill_in_as<'a, T>(
        &self,
        key: impl Into<Option<&'a str>>,
        message: impl Into<String>,
    ) -> Result<Option<T>, AskError>
    where
        T: DeserializeOwned + JsonSchema,
    {
        let form = ElicitParams::form(message, form::schema_of::<T>());
        let ElicitResult { action, content } = self.elicit_as(key, form).await?;
        match action {
            ElicitAction::Accept => decode(&content.unwrap_or_else(Raw::empty_object)).map(Some),
            ElicitAction::Decline | ElicitAction::Cancel => Ok(None),
        }
    }

    /// Asks the user to visit a URL, or to fill in a form that is described by hand; for most forms
    /// [`Context::fill_in`] is simpler. A declined form is an answer, not an error.
    ///
    /// # Errors
    /// See [`AskError`]. An answer that violates the form's schema is [`AskError::Malformed`].
    pub async fn elicit(&self, params: ElicitParams) -> Result<ElicitResult, AskError> {
        self.elicit_as(None, params).await
    }

    /// As [`Context::elicit`], with a key for the answer.
    ///
    /// # Errors
    /// See [`Context::elicit`].
    pub async fn elicit_as<'a>(
        &self,
        key: impl Into<Option<&'a str>>,
        params: ElicitParams,
    ) -> Result<ElicitResult, AskError> {
        let form = match &params {
            ElicitParams::Form(form) => Some(Form::new(&form.requested_schema)?),
            ElicitParams::Url(_) => None,
        };
        let question = Question::Elicit(encode(&params)?);
        let answer = self.ask(key.into(), question).await?;
        if let Some(form) = form {
            form.check(&answer)?;
        }
        Ok(answer)
    }

    /// Sends a sampling request to the caller's model.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn sample(
        &self,
        params: CreateMessageParams,
    ) -> Result<CreateMessageResult, AskError> {
        self.sample_as(None, params).await
    }

    /// As [`Context::sample`], with a key for the answer.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn sample_as<'a>(
        &self,
        key: impl Into<Option<&'a str>>,
        params: CreateMessageParams,
    ) -> Result<CreateMessageResult, AskError> {
        self.ask(key.into(), Question::Sample(encode(&params)?))
            .await
    }

    /// Requests the list of the caller's roots.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn roots(&self) -> Result<Vec<Root>, AskError> {
        self.roots_as(None).await
    }

    /// As [`Context::roots`], with a key for the answer.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn roots_as<'a>(
        &self,
        key: impl Into<Option<&'a str>>,
    ) -> Result<Vec<Root>, AskError> {
        let answer: ListRootsResult = self.ask(key.into(), Question::Roots).await?;
        Ok(answer.roots)
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        key: Option<&str>,
        question: Question,
    ) -> Result<T, AskError> {
        let key = key.map(str::to_owned);
        decode(&self.inner.events.ask(key, question).await?)
    }
}

fn encode<T: Serialize>(params: &T) -> Result<Raw, AskError> {
    Raw::encode(params).map_err(|error| AskError::Unaskable(error.to_string()))
}

fn decode<T: DeserializeOwned>(answer: &Raw) -> Result<T, AskError> {
    answer
        .decode()
        .map_err(|error| AskError::Malformed(error.to_string()))
}
