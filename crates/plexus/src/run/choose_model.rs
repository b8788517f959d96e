//! Chooses the model of an agent.

use anyhow::bail;
use plexus_mcp_agents::model::{ModelId, Models, Provider};
use plexus_mcp_host::agent::ModelChoice;

/// The model of each provider that is used if none is named: those that Claude Code 2.1.325 and
/// Codex 0.166.0 prefer.
const DEFAULT_MODELS: [(Provider, &str); 2] = [
    (Provider::Anthropic, "claude-sonnet-5-5"),
    (Provider::OpenAi, "gpt-6.1-sol"),
];
/// The context window that is assumed, in tokens. If it is smaller, the provider says so, and the
/// conversation is summarised then.
const CONTEXT_WINDOW_TOKENS: u64 = 200_000;
/// The maximum number of tokens of an answer.
const MAX_ANSWER_TOKENS: u32 = 16_384;

/// The default model of the first provider that can be used.
fn default_model(models: &Models) -> anyhow::Result<(Provider, String)> {
    let mut defaults = DEFAULT_MODELS.into_iter();
    let usable = defaults.find(|(provider, _)| models.can_ask(*provider, None));
    let Some((provider, name)) = usable else {
        bail!(
            "no model can be used: there is no key\n\n  tip: set {} or {}, or name a server that needs \
             no key with OPENAI_BASE_URL and --model openai/NAME",
            Provider::Anthropic.key_variable(),
            Provider::OpenAi.key_variable(),
        );
    };
    Ok((provider, name.to_owned()))
}

/// The model of this name, or the default one of a provider that can be used.
pub(super) fn choose(name: Option<&str>, models: &Models) -> anyhow::Result<ModelChoice> {
    let (provider, name) = match name.map(ModelId::parse) {
        Some(parsed) => match parsed? {
            ModelId::Provided { provider, name } => (provider, name),
            ModelId::Sampled(_) => bail!("an agent has no client whose model it could use"),
        },
        None => default_model(models)?,
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
