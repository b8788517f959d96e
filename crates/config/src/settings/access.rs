//! Access control for HTTP.

use serde::Deserialize;

use crate::secret::SecretSource;

/// Access control for HTTP: which tokens are required and accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Access {
    /// Require a token on a loopback address as well. On other addresses it is always required.
    #[cfg_attr(test, schemars(extend("examples" = [true])))]
    pub required: bool,
    /// The URL under which clients know the endpoint, exactly as tokens are issued for it. With an
    /// issuer it is required, unless the address is a loopback address.
    #[cfg_attr(test, schemars(extend("x-default" = "on a loopback address the URL that is served", "examples" = ["https://plexus.example.com/mcp"])))]
    pub resource: Option<String>,
    /// Scopes that every token must have.
    #[cfg_attr(test, schemars(extend("examples" = [["mcp"]])))]
    pub scopes: Vec<String>,
    /// Require that every token of an issuer is bound to a key (DPoP, RFC 9449).
    #[cfg_attr(test, schemars(extend("examples" = [true])))]
    pub dpop: bool,
    /// The authorization servers whose tokens are accepted.
    #[cfg_attr(test, schemars(extend("default" = [], "examples" = [[{"issuer": "https://auth.example.com"}]])))]
    pub issuers: Vec<TokenIssuer>,
    /// Whether a file that may have required more than this could not be read.
    #[serde(skip)]
    pub is_uncertain: bool,
}

/// An authorization server whose tokens are accepted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TokenIssuer {
    /// The issuer, exactly as its tokens name it.
    #[cfg_attr(test, schemars(extend("examples" = ["https://auth.example.com"])))]
    pub issuer: String,
    /// The URL of its keys, if it cannot be discovered.
    #[cfg_attr(test, schemars(extend("x-default" = "discovered from the issuer's metadata", "examples" = ["https://auth.example.com/keys"])))]
    pub jwks_uri: Option<String>,
    /// The client for token introspection, if signatures are not enough.
    pub introspection: Option<IntrospectionClient>,
}

impl TokenIssuer {
    /// An issuer whose tokens are verified by their signature.
    pub fn new(issuer: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            jwks_uri: None,
            introspection: None,
        }
    }
}

/// The client for token introspection (RFC 7662). Without this table, tokens are verified by their
/// signature.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct IntrospectionClient {
    /// The client id.
    #[cfg_attr(test, schemars(extend("examples" = ["plexus"])))]
    pub client_id: String,
    /// A reference to the secret of the client: `{ env = "NAME" }`, `{ command = ["program",
    /// "argument"] }` or `{ keyring = { service = "…", account = "…" } }`.
    #[cfg_attr(test, schemars(extend("examples" = [{"env": "PLEXUS_CLIENT_SECRET"}])))]
    pub client_secret: SecretReference,
    /// The introspection endpoint, if it cannot be discovered.
    #[cfg_attr(test, schemars(extend("x-default" = "discovered from the issuer's metadata", "examples" = ["https://auth.example.com/introspect"])))]
    pub endpoint: Option<String>,
}

/// A reference to a secret. The secret itself is never in a settings file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "ReferenceTable")]
#[expect(
    clippy::exhaustive_enums,
    reason = "a secret is in the environment, or it has to be fetched"
)]
pub enum SecretReference {
    /// The environment variable that holds it.
    Variable(String),
    /// A program or keyring that it is fetched from.
    Source(SecretSource),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReferenceTable {
    env: Option<String>,
    command: Option<Vec<String>>,
    keyring: Option<KeyringTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyringTable {
    service: String,
    account: String,
}

impl TryFrom<ReferenceTable> for SecretReference {
    type Error = &'static str;

    fn try_from(table: ReferenceTable) -> Result<Self, Self::Error> {
        let unknown = "a secret is { env = \"NAME\" }, { command = [\"program\", \"argument\"] } or \
             { keyring = { service = \"…\", account = \"…\" } }";
        match (table.env, table.command, table.keyring) {
            (Some(name), None, None) => Ok(Self::Variable(name)),
            (None, Some(words), None) => {
                let (command, args) = words.split_first().ok_or(unknown)?;
                Ok(Self::Source(SecretSource::Command {
                    command: command.clone(),
                    args: args.to_vec(),
                }))
            }
            (None, None, Some(KeyringTable { service, account })) => {
                Ok(Self::Source(SecretSource::Keyring { service, account }))
            }
            _ => Err(unknown),
        }
    }
}

#[cfg(test)]
impl schemars::JsonSchema for SecretReference {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SecretReference".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let only = |key: &str, value: serde_json::Value| {
            serde_json::json!({
                "type": "object",
                "properties": { key: value },
                "required": [key],
                "additionalProperties": false,
            })
        };
        let words =
            serde_json::json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 });
        let keyring = serde_json::json!({
            "type": "object",
            "properties": { "service": { "type": "string" }, "account": { "type": "string" } },
            "required": ["service", "account"],
            "additionalProperties": false,
        });
        schemars::json_schema!({
            "x-type": "reference to a secret",
            "oneOf": [
                only("env", serde_json::json!({ "type": "string" })),
                only("command", words),
                only("keyring", keyring),
            ],
        })
    }
}
