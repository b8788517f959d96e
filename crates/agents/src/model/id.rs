//! Model ids and providers.

use std::fmt;

use super::error::ModelError;

/// A provider of models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "these are the supported APIs")]
pub enum Provider {
    /// The Messages API of Anthropic.
    Anthropic,
    /// The chat completions API of OpenAI and of compatible servers.
    OpenAi,
}

impl Provider {
    /// All providers.
    pub const ALL: [Self; 2] = [Self::Anthropic, Self::OpenAi];

    /// The name that model ids begin with.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
        }
    }

    /// The environment variable that holds the key.
    pub fn key_variable(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_API_KEY",
            Self::OpenAi => "OPENAI_API_KEY",
        }
    }

    pub(super) fn base_variable(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_BASE_URL",
            Self::OpenAi => "OPENAI_BASE_URL",
        }
    }

    pub(super) fn default_base(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::OpenAi => "https://api.openai.com/v1",
        }
    }

    pub(super) fn models_path(self) -> &'static str {
        match self {
            Self::Anthropic => "/v1/models?limit=1000",
            Self::OpenAi => "/models",
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The id of a model: its provider and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a model is served by a provider or by the client"
)]
pub enum ModelId {
    /// A model of a provider.
    Provided {
        /// The provider.
        provider: Provider,
        /// The provider's name of the model.
        name: String,
    },
    /// The client's own model, used by sampling; optionally with the name of a preferred model.
    Sampled(Option<String>),
}

impl ModelId {
    /// Parses `anthropic/NAME`, `openai/NAME`, `sampling` and `sampling/NAME`, and well-known model
    /// names without a provider.
    ///
    /// # Errors
    /// The id does not determine the provider.
    pub fn parse(id: &str) -> Result<Self, ModelError> {
        let unknown = || ModelError::UnknownModel(id.chars().take(100).collect());
        if id == "sampling" {
            return Ok(Self::Sampled(None));
        }
        if let Some(("sampling", name)) = id.split_once('/') {
            return Ok(Self::Sampled(Some(name.to_owned())));
        }
        let prefixed = id.split_once('/').and_then(|(prefix, name)| {
            let has_prefix = |provider: &Provider| provider.as_str() == prefix;
            Some((Provider::ALL.into_iter().find(has_prefix)?, name))
        });
        let known = || {
            let begins = |beginnings: &[&str]| beginnings.iter().any(|known| id.starts_with(known));
            if begins(&["claude-"]) {
                Some((Provider::Anthropic, id))
            } else if begins(&["gpt-", "chatgpt-", "o1", "o3", "o4"]) {
                Some((Provider::OpenAi, id))
            } else {
                None
            }
        };
        let (provider, name) = prefixed.or_else(known).ok_or_else(unknown)?;
        if name.is_empty() {
            return Err(unknown());
        }
        let name = name.to_owned();
        Ok(Self::Provided { provider, name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_ids_select_the_provider() {
        let provided = |provider, name: &str| ModelId::Provided {
            provider,
            name: name.to_owned(),
        };
        let (anthropic, openai) = (Provider::Anthropic, Provider::OpenAi);
        for (id, expected) in [
            ("claude-sonnet-5", provided(anthropic, "claude-sonnet-5")),
            ("anthropic/x", provided(anthropic, "x")),
            ("gpt-6", provided(openai, "gpt-6")),
            ("openai/meta/llama:8b", provided(openai, "meta/llama:8b")),
            ("sampling", ModelId::Sampled(None)),
            ("sampling/fast", ModelId::Sampled(Some("fast".to_owned()))),
        ] {
            assert_eq!(ModelId::parse(id).unwrap(), expected);
        }
        for id in ["", "llama", "anthropic/", "mistral/large", "Claude-x"] {
            let error = ModelId::parse(id).unwrap_err().to_string();
            assert!(error.contains("anthropic/NAME"), "{error}");
        }
    }
}
