//! How a server on the web is signed in to, as its definition says.

use super::secret::{MASK, Value};

/// How a server on the web is signed in to. Its debug form shows no secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignIn {
    /// Which of its user's accounts is used; the usual one if none is named.
    pub account: Option<String>,
    /// In whose name the server is used.
    pub identity: Identity,
    /// How tokens are got.
    pub grant: Grant,
    /// The client that somebody registered.
    pub client_id: Option<String>,
    /// Its secret.
    pub client_secret: Option<Value>,
    /// Or the key that it proves itself with.
    pub private_key: Option<PrivateKey>,
    /// The authorization server that it is registered at.
    pub issuer: Option<String>,
    /// The port that users come back to from the sign-in page, where it must be one.
    pub callback_port: Option<u16>,
}

/// In whose name a server is used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "each gives callers something else to show"
)]
pub enum Identity {
    /// In that of the user of this machine, whoever calls.
    #[default]
    Shared,
    /// In that of each caller, who signs in once.
    User,
    /// In that of each caller, whose token is exchanged (RFC 8693).
    Exchange {
        /// What the authorization server calls the server, if not by its address.
        audience: Option<String>,
    },
    /// In that of each caller, whose token is passed on if it is for this audience, byte by byte.
    Forward {
        /// The audience that the server shares with us.
        audience: String,
    },
}

/// How tokens are got.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "each is carried out in its own way"
)]
pub enum Grant {
    /// A user signs in on a page.
    #[default]
    User,
    /// The client is its own user.
    ClientCredentials,
    /// Whoever runs this workload vouches for it (RFC 7523).
    Workload {
        /// The JWT with which it does; fetched each time that it is needed.
        assertion: Value,
    },
    /// The identity provider of an enterprise vouches for its user (ID-JAG).
    Enterprise {
        /// Where it issues tokens.
        token_endpoint: String,
        /// Who we are there.
        client_id: String,
        /// That the user has signed in there; fetched each time that it is needed.
        id_token: Value,
    },
}

/// A key that a client proves itself with.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrivateKey {
    /// The key in PEM.
    pub pem: Value,
    /// The algorithm to sign with.
    pub algorithm: String,
    /// The name under which the authorization server knows it.
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

/// A member of a definition, by the name that it has in a file.
pub(super) enum Member<'a> {
    Plain(String),
    Secret(&'a Value),
}

impl Member<'_> {
    /// What may be seen of it.
    pub(super) fn shown(&self) -> &str {
        match self {
            Self::Plain(text) => text,
            Self::Secret(_) => MASK,
        }
    }
}

type Members<'a> = Vec<(&'static str, Member<'a>)>;

impl SignIn {
    /// Whether something of it must be fetched by a program before it can be used.
    pub fn needs_programs(&self) -> bool {
        let mut members = self.oauth_members().into_iter();
        members.any(|(_, member)| matches!(member, Member::Secret(Value::Fetched { .. })))
    }

    /// What stands in the definition itself.
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

    /// What stands under `oauth`.
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
