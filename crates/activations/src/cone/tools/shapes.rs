//! What the tools are given, and give. Models read the comments.

use plexus_service::Raw;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::cone::{Cone, NewCone};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Create {
    /// A name that no other conversation has
    #[schemars(length(min = 1, max = 100))]
    pub(super) name: String,
    /// The model: anthropic/NAME, openai/NAME for OpenAI or a server that does as it does, or
    /// sampling for the model of the client
    #[schemars(length(min = 1, max = 200))]
    pub(super) model_id: String,
    /// How the model is to answer
    pub(super) system_prompt: Option<String>,
    /// What else is known of the conversation
    #[schemars(with = "Option<Map<String, Value>>")]
    pub(super) metadata: Option<Raw>,
    /// Where the model is served, if not where its provider usually is; another origin is not shown
    /// the provider's key
    #[schemars(length(max = 2000))]
    pub(super) base_url: Option<String>,
    /// How many tokens the model may write at once
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(super) max_tokens: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct One {
    /// The conversation's name or id, or an unmistakable beginning of either
    pub(super) identifier: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Chat {
    /// The conversation's name or id, or an unmistakable beginning of either
    pub(super) identifier: String,
    /// What to say
    pub(super) prompt: String,
    /// Whether to forget the question and the answer at once
    pub(super) ephemeral: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SetHead {
    /// The conversation's name or id, or an unmistakable beginning of either
    pub(super) identifier: String,
    /// A node of the conversation's tree
    pub(super) node_id: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct Created {
    /// The conversation's id.
    pub(super) cone_id: String,
    /// The tree that has what is said.
    pub(super) tree_id: String,
    /// The node where the conversation begins.
    pub(super) head: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct Got {
    /// The conversation.
    pub(super) cone: Cone,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct Listed {
    /// The conversations, by name.
    pub(super) cones: Vec<Cone>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct Deleted {
    /// The conversation's id.
    pub(super) cone_id: String,
    /// The tree that still has what was said.
    pub(super) tree_id: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct Registry {
    /// Who can be asked.
    pub(super) providers: Vec<Known>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(super) struct Known {
    /// What model ids begin with.
    pub(super) name: String,
    /// Whether it can be asked.
    pub(super) ready: bool,
    /// Where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) base_url: Option<String>,
    /// What is missing, if it cannot be asked or did not name its models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) problem: Option<String>,
    /// The ids of its models.
    pub(super) models: Vec<String>,
}

impl From<Create> for NewCone {
    fn from(new: Create) -> Self {
        Self {
            name: new.name,
            model_id: new.model_id,
            system_prompt: new.system_prompt,
            base_url: new.base_url,
            max_tokens: new.max_tokens,
            metadata: new.metadata,
        }
    }
}

impl From<Cone> for Created {
    fn from(cone: Cone) -> Self {
        Self {
            cone_id: cone.id,
            tree_id: cone.tree_id,
            head: cone.head,
        }
    }
}

impl From<Cone> for Deleted {
    fn from(cone: Cone) -> Self {
        Self {
            cone_id: cone.id,
            tree_id: cone.tree_id,
        }
    }
}
