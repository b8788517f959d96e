//! Who is let in over HTTP.

use serde::Deserialize;

use crate::config::secret::SecretSource;

/// Who is let in over HTTP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Access {
    /// Whether callers are asked for a token on a loopback address, too, if nothing else says so.
    pub required: bool,
    /// The address under which clients know the endpoint, to the letter as tokens are issued for it.
    pub resource: Option<String>,
    /// What every token must allow.
    pub scopes: Vec<String>,
    /// Whether every token of an issuer must be bound to a key.
    pub dpop: bool,
    /// Whose tokens are taken.
    pub issuers: Vec<TokenIssuer>,
    /// Whether a file could not be read that may have asked for more than this.
    #[serde(skip)]
    pub is_uncertain: bool,
}

/// An authorization server whose tokens are taken.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TokenIssuer {
    /// Who it is, to the letter as its tokens name it.
    pub issuer: String,
    /// Where its keys are, if that cannot be found out.
    pub jwks_uri: Option<String>,
    /// How it is asked about tokens, if signatures are not enough.
    pub introspection: Option<IntrospectionClient>,
}

impl TokenIssuer {
    /// One whose tokens are checked by their signature.
    pub fn new(issuer: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            jwks_uri: None,
            introspection: None,
        }
    }
}

/// As whom an issuer is asked about tokens (RFC 7662).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct IntrospectionClient {
    /// Where, if that cannot be found out.
    pub endpoint: Option<String>,
    /// The client that may ask.
    pub client_id: String,
    /// Where its secret is kept.
    pub client_secret: SecretReference,
}

/// Where a secret is kept that a settings file refers to. The secret itself never stands there.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "ReferenceTable")]
#[expect(
    clippy::exhaustive_enums,
    reason = "a secret is in the environment, or it has to be fetched"
)]
pub enum SecretReference {
    /// An environment variable holds it.
    Variable(String),
    /// It is fetched.
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
