//! Cones as prompts (S003-25): `cone:NAME` puts a question the way that the cone would put it to its
//! model. Only cones with a system prompt have something to add to a question.

use plexus_service::{
    Builder, Context, Fault, LocalService, Prompt, PromptArgument, PromptMessage, Section,
};
use serde::Deserialize;

use super::cones::{Cone, Cones};
use super::error::ConeError;
use super::tables;
use crate::listed::difference;

const PREFIX: &str = "cone:";

/// Adds a prompt for each cone that there is. Later, tools keep them up to date.
pub(super) fn prompts(builder: Builder, cones: &Cones) -> Builder {
    let builder = builder.expecting_prompts();
    let now = cones.trees.now();
    let known = cones.trees.store().read_blocking(|db| tables::all(db, now));
    match known {
        Ok(known) => prompted(&known).fold(builder, |builder, cone| with(builder, cones, cone)),
        Err(error) => {
            tracing::warn!(%error, "cones are no prompts until one is created");
            builder
        }
    }
}

impl Cones {
    /// Offers those cones as prompts of `service` that are there now, and lists their trees.
    pub(crate) async fn offer(&self, service: &LocalService) {
        self.trees.offer(service).await;
        let _turn = self.listing.lock().await;
        let known = match self.list().await {
            Ok(known) => known,
            Err(error) => {
                tracing::warn!(%error, "the list of prompts is out of date");
                return;
            }
        };
        let definitions = prompted(&known).map(|cone| (name(cone), definition(cone).to_raw()));
        let definitions = definitions.collect();
        let Some(difference) = difference(service, Section::Prompts, PREFIX, definitions) else {
            return;
        };
        let edited = service.edit(|builder| {
            let gone = difference.gone.iter();
            let builder = gone.fold(builder, |builder, name| builder.remove_prompt(name));
            let new = prompted(&known).filter(|cone| difference.new.contains(&name(cone)));
            new.fold(builder, |builder, cone| with(builder, self, cone))
        });
        if let Err(error) = edited {
            tracing::error!(%error, "the cones cannot be offered as prompts");
        }
    }
}

#[derive(Deserialize)]
struct Asked {
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
            "Ask as {} is asked, with its instructions",
            cone.name
        ))
        .argument(
            PromptArgument::new("query")
                .description("What to ask")
                .required(),
        )
}

fn with(builder: Builder, cones: &Cones, cone: &Cone) -> Builder {
    let cones = cones.announcing_to(None);
    let prompt = definition(cone);
    let cone = cone.name.clone();
    builder.prompt(prompt, move |Asked { query }: Asked, _: Context| {
        let (cones, cone) = (cones.clone(), cone.clone());
        async move { asked(&cones, cone, &query).await }
    })
}

/// The cone may have gone, or changed, since the prompt was listed.
async fn asked(cones: &Cones, cone: String, query: &str) -> Result<PromptMessage, Fault> {
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
