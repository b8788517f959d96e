//! Arguments and results of the tools. The doc comments are the descriptions in the schemas, which
//! models read.

use plexus_mcp_core::Raw;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::cone::{Cone, NewCone};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateCone {
    /// A name that no other conversation has
    #[schemars(length(min = 1, max = 100))]
    pub(super) name: String,
    /// The model: anthropic/NAME, openai/NAME for OpenAI or a compatible server, or sampling for
    /// the model of the client
    #[schemars(length(min = 1, max = 200))]
    pub(super) model_id: String,
    /// The system prompt
    pub(super) system_prompt: Option<String>,
    /// The metadata of the conversation
    #[schemars(with = "Option<Map<String, Value>>")]
    pub(super) metadata: Option<Raw>,
    /// The base URL of the model's API, if not that of its provider; the provider's key is not sent
    /// to another origin
    #[schemars(length(max = 2000))]
    pub(super) base_url: Option<String>,
    /// The maximum number of tokens of an answer
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(super) max_tokens: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ConeIdentifier {
    /// The conversation's name or id, or an unambiguous prefix of either
    pub(super) identifier: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ConeChatArguments {
    /// The conversation's name or id, or an unambiguous prefix of either
    pub(super) identifier: String,
    /// The message to the model
    pub(super) prompt: String,
    /// Whether to store neither the message nor the answer
    pub(super) ephemeral: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SetHead {
    /// The conversation's name or id, or an unambiguous prefix of either
    pub(super) identifier: String,
    /// A node of the conversation's tree
    pub(super) node_id: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct Created {
    /// The conversation's id.
    pub(super) cone_id: String,
    /// The tree that holds the messages.
    pub(super) tree_id: String,
    /// The root of the tree, where the conversation starts.
    pub(super) head: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct FoundCone {
    /// The conversation.
    pub(super) cone: Cone,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct ConeList {
    /// The conversations, by name.
    pub(super) cones: Vec<Cone>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct DeletedCone {
    /// The conversation's id.
    pub(super) cone_id: String,
    /// The tree that still holds the messages.
    pub(super) tree_id: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct Registry {
    /// The providers of models.
    pub(super) providers: Vec<ProviderStatus>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(super) struct ProviderStatus {
    /// The name of the provider, with which model ids begin.
    pub(super) name: String,
    /// Whether the provider can be used.
    pub(super) ready: bool,
    /// The base URL of the provider's API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) base_url: Option<String>,
    /// Why the provider cannot be used, or why its models are not listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) problem: Option<String>,
    /// The ids of the provider's models.
    pub(super) models: Vec<String>,
}

impl From<CreateCone> for NewCone {
    fn from(new: CreateCone) -> Self {
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

impl From<Cone> for DeletedCone {
    fn from(cone: Cone) -> Self {
        Self {
            cone_id: cone.id,
            tree_id: cone.tree_id,
        }
    }
}
