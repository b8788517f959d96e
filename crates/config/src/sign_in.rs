//! How to sign in to a remote server, as its definition says.

use super::secret::{MASK, Value};

/// How to sign in to a remote server. Its debug form shows no secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignIn {
    /// The account to use, of the user's accounts at this server; `None` for the default one.
    pub account: Option<String>,
    /// The identity that is used at the server.
    pub identity: Identity,
    /// How tokens are obtained.
    pub grant: Grant,
    /// The id of a registered client.
    pub client_id: Option<String>,
    /// The client's secret.
    pub client_secret: Option<Value>,
    /// The client's private key, instead of a secret.
    pub private_key: Option<PrivateKey>,
    /// The authorization server at which the client is registered.
    pub issuer: Option<String>,
    /// The port of the redirect URI, if it is fixed by the registration.
    pub callback_port: Option<u16>,
}

/// The identity that is used at a server: that of the user, or of the caller.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "each gives callers something else to show"
)]
pub enum Identity {
    /// The user of this machine, for all callers.
    #[default]
    Shared,
    /// Each caller, who signs in once.
    User,
    /// Each caller, whose token is exchanged (RFC 8693).
    Exchange {
        /// The audience at the authorization server, if it is not the server's URL.
        audience: Option<String>,
    },
    /// Each caller, whose token is forwarded if it is for exactly this audience.
    Forward {
        /// The audience that the server shares with Plexus.
        audience: String,
    },
}

/// How tokens are obtained.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "each is carried out in its own way"
)]
pub enum Grant {
    /// A user signs in on a page.
    #[default]
    User,
    /// Client credentials: the client acts for itself.
    ClientCredentials,
    /// A workload identity: the platform that runs this workload issues an assertion (RFC 7523).
    Workload {
        /// The assertion, a JWT; fetched each time that it is needed.
        assertion: Value,
    },
    /// The enterprise's identity provider vouches for its user (ID-JAG).
    Enterprise {
        /// Its token endpoint.
        token_endpoint: String,
        /// The client id of Plexus at the identity provider.
        client_id: String,
        /// The user's id token of the identity provider; fetched each time that it is needed.
        id_token: Value,
    },
}

/// The private key of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrivateKey {
    /// The key in PEM.
    pub pem: Value,
    /// The algorithm to sign with.
    pub algorithm: String,
    /// The key id at the authorization server.
    pub key_id: Option<String>,
}

impl PrivateKey {
    /// The key in `pem`, to sign with `algorithm`.
    pub fn new(pem: Value, algorithm: impl Into<String>, key_id: Option<String>) -> Self {
        Self {
            pem,
            algorithm: algorithm.into(),
            key_id,
        }
    }
}

/// A key of a definition, by its name in a file.
pub(super) enum Member<'a> {
    Plain(String),
    Secret(&'a Value),
}

impl Member<'_> {
    /// The value with secrets masked.
    pub(super) fn shown(&self) -> &str {
        match self {
            Self::Plain(text) => text,
            Self::Secret(_) => MASK,
        }
    }
}

type Members<'a> = Vec<(&'static str, Member<'a>)>;

impl SignIn {
    /// Whether a program must be run to fetch part of it.
    pub fn needs_programs(&self) -> bool {
        let mut members = self.oauth_members().into_iter();
        members.any(|(_, member)| matches!(member, Member::Secret(Value::Fetched { .. })))
    }

    /// The keys in the definition itself.
    pub(super) fn members(&self) -> Members<'_> {
        let mut members = Members::new();
        add(&mut members, "account", self.account.as_ref());
        let (identity, audience) = match &self.identity {
            Identity::Shared => (None, None),
            Identity::User => (Some("user"), None),
            Identity::Exchange { audience } => (Some("exchange"), audience.as_ref()),
            Identity::Forward { audience } => (Some("forward"), Some(audience)),
        };
        add(&mut members, "identity", identity);
        add(&mut members, "audience", audience);
        members
    }

    /// The keys under `oauth`.
    pub(super) fn oauth_members(&self) -> Members<'_> {
        let mut members = Members::new();
        add(&mut members, "clientId", self.client_id.as_ref());
        add_secret(&mut members, "clientSecret", self.client_secret.as_ref());
        if let Some(key) = &self.private_key {
            add_secret(&mut members, "privateKey", Some(&key.pem));
            add(&mut members, "algorithm", Some(&key.algorithm));
            add(&mut members, "keyId", key.key_id.as_ref());
        }
        add(&mut members, "issuer", self.issuer.as_ref());
        add(&mut members, "callbackPort", self.callback_port);
        match &self.grant {
            Grant::User => {}
            Grant::ClientCredentials => add(&mut members, "grant", Some("client_credentials")),
            Grant::Workload { assertion } => {
                add(&mut members, "grant", Some("workload"));
                add_secret(&mut members, "assertion", Some(assertion));
            }
            Grant::Enterprise {
                token_endpoint,
                client_id,
                id_token,
            } => {
                add(&mut members, "grant", Some("enterprise"));
                add(&mut members, "idpTokenEndpoint", Some(token_endpoint));
                add(&mut members, "idpClientId", Some(client_id));
                add_secret(&mut members, "idToken", Some(id_token));
            }
        }
        members
    }
}

fn add(members: &mut Members<'_>, key: &'static str, value: Option<impl ToString>) {
    if let Some(value) = value {
        members.push((key, Member::Plain(value.to_string())));
    }
}

fn add_secret<'a>(members: &mut Members<'a>, key: &'static str, value: Option<&'a Value>) {
    if let Some(value) = value {
        members.push((key, Member::Secret(value)));
    }
}
