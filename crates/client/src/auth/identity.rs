//! Servers that are used in their callers' own names.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Method, Uri};
use plexus_oauth::{Grant, Secret};
use plexus_service::{Boxed, Credential, Peer, Principal};

use super::oauth::OAuth;
use super::options::{Means, OAuthOptions};
use super::{AuthError, Authorizer, MemoryVault, Refusal, concealed};
use crate::lock::lock;

/// How many principals are remembered.
const MAX_USERS: usize = 1024;

/// Gives callers credentials of their own.
pub trait Identities: fmt::Debug + Send + Sync {
    /// What the calls of `peer` carry; none if that is what the server is connected with.
    ///
    /// # Errors
    /// There is nothing that they could carry.
    fn of(&self, peer: &Peer) -> Result<Option<OwnIdentity>, AuthError>;
}

/// What the calls of one caller carry, and nobody else's.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OwnIdentity {
    /// Has or gets it.
    pub authorizer: Arc<dyn Authorizer>,
    /// The credential of the caller that it depends on, by its digest.
    pub credential: Option<[u8; 32]>,
}

/// In whose name a server is used.
#[derive(Clone)]
#[non_exhaustive]
pub enum Identity {
    /// Each principal signs in by itself, and its tokens are kept apart from all others. The user of
    /// this machine has those that the server is connected with.
    User(ForPrincipal),
    /// The token that a caller showed us is exchanged for one that is for the server.
    Exchange {
        /// What the authorization server calls the server, if not by its address.
        audience: Option<String>,
    },
    /// The token that a caller showed us is passed on, where it is for the server as well: its
    /// audience, which the server shares with us, must be this, byte by byte.
    Forward {
        /// The audience.
        audience: String,
    },
}

/// Says how a principal signs in, where it is otherwise than for the user of this machine: what it is
/// told, and where it is awaited. By itself, it is awaited nowhere.
pub type ForPrincipal = Arc<dyn Fn(&Principal, &mut OAuthOptions) + Send + Sync>;

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(_) => f.write_str("User"),
            Self::Exchange { audience } => write!(f, "Exchange({audience:?})"),
            Self::Forward { audience } => write!(f, "Forward({audience:?})"),
        }
    }
}

/// An [`Identity`], with how tokens are got for it otherwise.
#[derive(Debug)]
pub(super) struct Configured {
    identity: Identity,
    options: OAuthOptions,
    /// Principals that were here lately, so that what one of them begins is known to its next call.
    users: Mutex<HashMap<Principal, OAuth>>,
}

impl Identity {
    /// The identities of the callers of the server that `options` are for.
    pub fn with(self, options: OAuthOptions) -> Arc<dyn Identities> {
        Arc::new(Configured {
            identity: self,
            options,
            users: Mutex::default(),
        })
    }
}

impl Configured {
    fn user(&self, principal: &Principal, change: &ForPrincipal) -> OAuth {
        let mut users = lock(&self.users);
        if let Some(user) = users.get(principal) {
            return user.clone();
        }
        let mut options = self.options.clone();
        options.principal = principal.clone();
        options.landing = None;
        options.means = Means::page();
        change(principal, &mut options);
        let user = OAuth::new(options);
        if users.len() >= MAX_USERS {
            // Their tokens are in the vault.
            users.clear();
        }
        users.insert(principal.clone(), user.clone());
        user
    }
}

impl Identities for Configured {
    fn of(&self, peer: &Peer) -> Result<Option<OwnIdentity>, AuthError> {
        let called = &self.options.called;
        let shown = || {
            let credential = peer.credentials.latest();
            credential.ok_or_else(|| AuthError::Nameless(called.clone()))
        };
        match &self.identity {
            Identity::User(_) if peer.principal == self.options.principal => Ok(None),
            Identity::User(change) => Ok(Some(OwnIdentity {
                authorizer: Arc::new(self.user(&peer.principal, change)),
                credential: None,
            })),
            Identity::Exchange { audience } => {
                let credential = shown()?;
                let mut options = self.options.clone();
                options.vault = Arc::new(MemoryVault::default());
                options.principal = peer.principal.clone();
                options.landing = None;
                options.means = Means::Alone(Grant::Exchange {
                    subject_token: Secret::new(credential.expose()),
                    audience: audience.clone(),
                });
                Ok(Some(OwnIdentity {
                    authorizer: Arc::new(OAuth::new(options)),
                    credential: Some(credential.digest()),
                }))
            }
            Identity::Forward { audience } => {
                let credential = shown()?;
                if credential.audience() != audience {
                    return Err(AuthError::OtherAudience {
                        called: called.clone(),
                        shown: credential.audience().to_owned(),
                        wanted: audience.clone(),
                    });
                }
                let digest = credential.digest();
                let called = called.clone();
                Ok(Some(OwnIdentity {
                    authorizer: Arc::new(Forwarded { credential, called }),
                    credential: Some(digest),
                }))
            }
        }
    }
}

/// The caller's own token.
#[derive(Debug)]
struct Forwarded {
    credential: Credential,
    called: String,
}

impl Authorizer for Forwarded {
    fn headers(&self, _method: &Method, _url: &Uri) -> Boxed<Result<HeaderMap, AuthError>> {
        let refused = || AuthError::TokenRefused(self.called.clone());
        let value = HeaderValue::try_from(format!("Bearer {}", self.credential.expose()));
        let headers = value.map_err(|_unfit| refused()).map(|mut value| {
            value.set_sensitive(true);
            HeaderMap::from_iter([(AUTHORIZATION, value)])
        });
        Box::pin(std::future::ready(headers))
    }

    /// There is no other one to try.
    fn refused(&self, _refusal: Refusal) -> Boxed<Result<bool, AuthError>> {
        let refused = AuthError::TokenRefused(self.called.clone());
        Box::pin(std::future::ready(Err(refused)))
    }

    fn noted(&self, _headers: &HeaderMap) {}

    fn conceal(&self, text: String) -> String {
        concealed(text, self.credential.expose())
    }
}
