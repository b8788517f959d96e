//! Credentials for each caller, for servers that are called on behalf of callers.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Method, Uri};
use plexus_mcp_core::{Boxed, Credential, Peer, Principal};
use plexus_mcp_oauth::{Grant, Secret};

use super::oauth::OAuth;
use super::options::{OAuthOptions, SignInMethod};
use super::{AuthError, Authorizer, MemoryVault, Refusal, masked};
use crate::lock::lock;

/// How many principals have their authorizer cached.
const MAX_CACHED_PRINCIPALS: usize = 1024;

/// Supplies the credentials of callers, for servers that are called on behalf of their callers.
pub trait Identities: fmt::Debug + Send + Sync {
    /// The credentials for the calls of `peer`; `None` if they are those of the server's own connection.
    ///
    /// # Errors
    /// The caller has shown no token that could be used.
    fn identity_of(&self, peer: &Peer) -> Result<Option<OwnIdentity>, AuthError>;
}

/// The credentials for the calls of one caller only.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OwnIdentity {
    /// Supplies the credentials.
    pub authorizer: Arc<dyn Authorizer>,
    /// The digest of the caller's token, if the credentials were derived from it.
    pub credential: Option<[u8; 32]>,
}

/// How the credentials for a caller's calls are obtained.
#[derive(Clone)]
#[non_exhaustive]
pub enum Identity {
    /// Each principal signs in and has tokens of its own. The user of this machine has those of the
    /// server's own connection.
    User(CustomizePrincipal),
    /// The caller's token is exchanged for a token for the server (RFC 8693).
    Exchange {
        /// The name of the server at the authorization server; `None` for the server's URL.
        audience: Option<String>,
    },
    /// The caller's token is forwarded to the server, if it was issued for the server as well.
    Forward {
        /// The audience that the token must have, compared byte by byte. Plexus and the server share it.
        audience: String,
    },
}

/// Changes the options for the sign-in of one principal: its hint, and the agent that receives its
/// redirect. Without a change, a principal has no such agent and is not asked to sign in.
pub type CustomizePrincipal = Arc<dyn Fn(&Principal, &mut OAuthOptions) + Send + Sync>;

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(_) => f.write_str("User"),
            Self::Exchange { audience } => write!(f, "Exchange({audience:?})"),
            Self::Forward { audience } => write!(f, "Forward({audience:?})"),
        }
    }
}

/// Supplies the credentials that an [`Identity`] describes.
#[derive(Debug)]
pub(super) struct ConfiguredIdentities {
    identity: Identity,
    options: OAuthOptions,
    /// The authorizers of principals that called lately. A sign-in that one call of a principal began
    /// is found by its next call.
    users: Mutex<HashMap<Principal, OAuth>>,
}

impl Identity {
    /// Supplies the credentials of the callers of the server that `options` are for.
    pub fn with_options(self, options: OAuthOptions) -> Arc<dyn Identities> {
        Arc::new(ConfiguredIdentities {
            identity: self,
            options,
            users: Mutex::default(),
        })
    }
}

impl ConfiguredIdentities {
    fn user(&self, principal: &Principal, change: &CustomizePrincipal) -> OAuth {
        let mut users = lock(&self.users);
        if let Some(user) = users.get(principal) {
            return user.clone();
        }
        let mut options = self.options.clone();
        options.principal = principal.clone();
        options.invitation_agent = None;
        options.method = SignInMethod::stored_tokens_only();
        change(principal, &mut options);
        let user = OAuth::new(options);
        if users.len() >= MAX_CACHED_PRINCIPALS {
            // Their tokens stay in the vault.
            users.clear();
        }
        users.insert(principal.clone(), user.clone());
        user
    }
}

impl Identities for ConfiguredIdentities {
    fn identity_of(&self, peer: &Peer) -> Result<Option<OwnIdentity>, AuthError> {
        let server = &self.options.server_name;
        let caller_token = || {
            let credential = peer.credentials.latest();
            credential.ok_or_else(|| AuthError::UnknownCaller(server.clone()))
        };
        match &self.identity {
            Identity::User(_) if peer.principal == self.options.principal => Ok(None),
            Identity::User(change) => Ok(Some(OwnIdentity {
                authorizer: Arc::new(self.user(&peer.principal, change)),
                credential: None,
            })),
            Identity::Exchange { audience } => {
                let credential = caller_token()?;
                let mut options = self.options.clone();
                options.vault = Arc::new(MemoryVault::default());
                options.principal = peer.principal.clone();
                options.invitation_agent = None;
                options.method = SignInMethod::Grant(Grant::Exchange {
                    subject_token: Secret::new(credential.expose()),
                    audience: audience.clone(),
                });
                Ok(Some(OwnIdentity {
                    authorizer: Arc::new(OAuth::new(options)),
                    credential: Some(credential.digest()),
                }))
            }
            Identity::Forward { audience } => {
                let credential = caller_token()?;
                if credential.audience() != audience {
                    return Err(AuthError::OtherAudience {
                        server: server.clone(),
                        audience: credential.audience().to_owned(),
                        required: audience.clone(),
                    });
                }
                let digest = credential.digest();
                let server = server.clone();
                Ok(Some(OwnIdentity {
                    authorizer: Arc::new(ForwardedToken { credential, server }),
                    credential: Some(digest),
                }))
            }
        }
    }
}

/// Sends the caller's own token to the server.
#[derive(Debug)]
struct ForwardedToken {
    credential: Credential,
    server: String,
}

impl Authorizer for ForwardedToken {
    fn headers(&self, _method: &Method, _url: &Uri) -> Boxed<Result<HeaderMap, AuthError>> {
        let refused = || AuthError::TokenRefused(self.server.clone());
        let value = HeaderValue::try_from(format!("Bearer {}", self.credential.expose()));
        let headers = value.map_err(|_unfit| refused()).map(|mut value| {
            value.set_sensitive(true);
            HeaderMap::from_iter([(AUTHORIZATION, value)])
        });
        Box::pin(std::future::ready(headers))
    }

    /// Always an error: there is no other token to try.
    fn handle_refusal(&self, _refusal: Refusal) -> Boxed<Result<bool, AuthError>> {
        let refused = AuthError::TokenRefused(self.server.clone());
        Box::pin(std::future::ready(Err(refused)))
    }

    fn inspect_response(&self, _headers: &HeaderMap) {}

    fn mask_credentials(&self, text: String) -> String {
        masked(text, self.credential.expose())
    }
}
