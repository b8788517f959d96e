//! Chooses the model of an agent.

use anyhow::bail;
use plexus_mcp_agents::model::{ModelId, Models, Provider};
use plexus_mcp_host::agent::ModelChoice;

/// The model of each provider that is used if none is named.
const DEFAULT_MODELS: [(Provider, &str); 2] = [
    (Provider::Anthropic, "claude-sonnet-4-5"),
    (Provider::OpenAi, "gpt-5"),
];
/// The context window that is assumed, in tokens. If it is smaller, the provider says so, and the
/// conversation is summarised then.
const CONTEXT_WINDOW_TOKENS: u64 = 200_000;
/// The maximum number of tokens of an answer.
const MAX_ANSWER_TOKENS: u32 = 16_384;

/// The model of this name, or the default one of a provider that can be used.
pub(super) fn choose(name: Option<&str>, models: &Models) -> anyhow::Result<ModelChoice> {
    let (provider, name) = match name {
        Some(name) => match ModelId::parse(name)? {
            ModelId::Provided { provider, name } => (provider, name),
            ModelId::Sampled(_) => bail!("{name:?}: an agent has no client whose model it could use"),
        },
        None => {
            let mut defaults = DEFAULT_MODELS.into_iter();
            match defaults.find(|(provider, _)| models.can_ask(*provider, None)) {
                Some((provider, name)) => (provider, name.to_owned()),
                None => bail!(
                    "no model can be used: there is no key\n\n  tip: set {} or {}, or name a server \
                     that needs no key with {}",
                    Provider::Anthropic.key_variable(),
                    Provider::OpenAi.key_variable(),
                    "OPENAI_BASE_URL and --model openai/NAME",
                ),
            }
        }
    };
    if !models.can_ask(provider, None) {
        bail!(
            "the model {name:?} cannot be used: there is no key\n\n  tip: set {}",
            provider.key_variable()
        );
    }
    Ok(ModelChoice {
        provider,
        name,
        base_url: None,
        max_tokens: Some(MAX_ANSWER_TOKENS),
        context_window_tokens: CONTEXT_WINDOW_TOKENS,
    })
}
