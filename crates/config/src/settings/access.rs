//! Access control for HTTP.

use serde::Deserialize;

use crate::secret::SecretSource;

/// Access control for HTTP: which tokens are required and accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Access {
    /// Whether a token is required on a loopback address as well.
    pub required: bool,
    /// The URL under which clients know the endpoint, exactly as tokens are issued for it.
    pub resource: Option<String>,
    /// The scopes that every token must have.
    pub scopes: Vec<String>,
    /// Whether every token of an issuer must be bound to a key (DPoP).
    pub dpop: bool,
    /// The issuers whose tokens are accepted.
    pub issuers: Vec<TokenIssuer>,
    /// Whether a file that may have required more than this could not be read.
    #[serde(skip)]
    pub is_uncertain: bool,
}

/// An authorization server whose tokens are accepted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TokenIssuer {
    /// The issuer, exactly as its tokens name it.
    pub issuer: String,
    /// The URL of its keys, if it cannot be discovered.
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

/// The client for token introspection (RFC 7662).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct IntrospectionClient {
    /// The introspection endpoint, if it cannot be discovered.
    pub endpoint: Option<String>,
    /// The client id.
    pub client_id: String,
    /// The reference to its secret.
    pub client_secret: SecretReference,
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
