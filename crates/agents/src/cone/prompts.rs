//! Cones as prompts (S003-25): `cone:NAME` adds the cone's system prompt to a question. Cones
//! without a system prompt are not listed.

use plexus_mcp_core::{
    Builder, Context, Fault, LocalService, Prompt, PromptArgument, PromptMessage, Section,
};
use serde::Deserialize;

use super::cones::{Cone, Cones};
use super::error::ConeError;
use super::tables;
use plexus_mcp_builtins::support::catalogue_diff;

const PREFIX: &str = "cone:";

/// Adds a prompt for each existing cone. Later, the tools update the prompts.
pub(super) fn prompts(builder: Builder, cones: &Cones) -> Builder {
    let builder = builder.expecting_prompts();
    let now = cones.trees.now();
    let known = cones.trees.store().read_blocking(|db| tables::all(db, now));
    match known {
        Ok(known) => prompted(&known).fold(builder, |builder, cone| with(builder, cones, cone)),
        Err(error) => {
            tracing::warn!(%error, "cannot offer cones as prompts until one is created");
            builder
        }
    }
}

impl Cones {
    /// Updates the prompts of `service`, one for each cone, and its list of trees.
    pub(crate) async fn refresh_lists(&self, service: &LocalService) {
        self.trees.refresh_lists(service).await;
        let _turn = self.listing.lock().await;
        let known = match self.list().await {
            Ok(known) => known,
            Err(error) => {
                tracing::warn!(%error, "cannot update the list of prompts");
                return;
            }
        };
        let definitions = prompted(&known).map(|cone| (name(cone), definition(cone).to_raw()));
        let definitions = definitions.collect();
        let Some(catalogue_diff) = catalogue_diff(service, Section::Prompts, PREFIX, definitions)
        else {
            return;
        };
        let edited = service.edit(|builder| {
            let gone = catalogue_diff.removed.iter();
            let builder = gone.fold(builder, |builder, name| builder.remove_prompt(name));
            let new = prompted(&known).filter(|cone| catalogue_diff.added.contains(&name(cone)));
            new.fold(builder, |builder, cone| with(builder, self, cone))
        });
        if let Err(error) = edited {
            tracing::error!(%error, "cannot offer the cones as prompts");
        }
    }
}

#[derive(Deserialize)]
struct PromptArguments {
    query: String,
}

fn prompted(cones: &[Cone]) -> impl Iterator<Item = &Cone> {
    cones.iter().filter(|cone| cone.system_prompt.is_some())
}

fn name(cone: &Cone) -> String {
    format!("{PREFIX}{}", cone.name)
}

fn definition(cone: &Cone) -> Prompt {
    Prompt::new(name(cone))
        .title(cone.name.as_str())
        .description(format!(
            "Ask {} a question, with its system prompt",
            cone.name
        ))
        .argument(
            PromptArgument::new("query")
                .description("The question")
                .required(),
        )
}

fn with(builder: Builder, cones: &Cones, cone: &Cone) -> Builder {
    let cones = cones.notifying(None);
    let prompt = definition(cone);
    let cone = cone.name.clone();
    builder.prompt(
        prompt,
        move |PromptArguments { query }: PromptArguments, _: Context| {
            let (cones, cone) = (cones.clone(), cone.clone());
            async move { message(&cones, cone, &query).await }
        },
    )
}

/// The messages of the prompt. The cone is read again, since it may have changed or been deleted
/// since the prompt was listed.
async fn message(cones: &Cones, cone: String, query: &str) -> Result<PromptMessage, Fault> {
    let found = match cones.get(cone.as_str()).await {
        Ok(found) if found.name == cone => found,
        Ok(_) | Err(ConeError::NotFound(_) | ConeError::Ambiguous { .. }) => {
            return Err(Fault::UnknownPrompt(format!("{PREFIX}{cone}")));
        }
        Err(error) => return Err(Fault::Internal(error.to_string())),
    };
    let instructions = found.system_prompt.unwrap_or_default();
    Ok(PromptMessage::user(format!("{instructions}\n\n{query}")))
}
