use crate::address::Reach;
use crate::client_auth::{AuthMethod, ClientKey};
use crate::registration::Registration;
use crate::scopes::Scopes;
use crate::secret::Secret;

/// The server that a token is for, and how the token is obtained.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Plan {
    /// The URL of the MCP server.
    pub server: String,
    /// The networks that URLs named by the server may point to.
    pub reach: Reach,
    /// How the token is obtained.
    pub grant: Grant,
    /// The client that the user registered, if there is one.
    pub client: Option<Client>,
    /// The earlier automatic registrations, of any authorization server.
    pub registrations: Vec<Registration>,
    /// The scopes that were requested before; they are requested again (AUTH26-10).
    pub scopes: Scopes,
    /// The key for DPoP tokens, as text; `None` to generate one when needed.
    pub key: Option<Secret>,
    /// The protocol revision in the header of metadata requests (AUTH03-07).
    pub revision: Option<String>,
}

impl Plan {
    /// A plan to obtain a token for `server`.
    pub fn new(server: impl Into<String>, reach: Reach, grant: Grant) -> Self {
        Self {
            server: server.into(),
            reach,
            grant,
            client: None,
            registrations: Vec::new(),
            scopes: Scopes::default(),
            key: None,
            revision: None,
        }
    }
}

/// How a token is obtained.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Grant {
    /// A user signs in on a page (authorization code grant).
    User(UserGrant),
    /// The client authenticates as itself, without a user.
    ClientCredentials,
    /// The platform that runs this workload issues a JWT for it (RFC 7523).
    Workload {
        /// The JWT.
        assertion: Secret,
    },
    /// The identity provider of an enterprise authenticates the user (EMA-01).
    Enterprise {
        /// The token endpoint of the identity provider; configured, not discovered.
        token_endpoint: String,
        /// The client id at the identity provider.
        client_id: String,
        /// The ID token of the user's sign-in at the identity provider.
        id_token: Secret,
    },
    /// The caller's own token is exchanged for a token for the server (RFC 8693). It is sent only to the
    /// authorization server that [`Client::issuer`] names: an authorization server that the MCP server
    /// names could use the token to call Plexus.
    Exchange {
        /// The caller's token.
        subject_token: Secret,
        /// The server's name at the authorization server; `None` for its URL.
        audience: Option<String>,
    },
}

/// The parameters of a sign-in on a page.
#[derive(Debug, Clone)]
pub struct UserGrant {
    /// The redirect URI.
    pub redirect_uri: String,
    /// The name of this client that the page shows.
    pub client_name: String,
    /// The URL of the client metadata document. It is the client id, if the authorization server supports
    /// that.
    pub metadata_url: Option<String>,
}

/// A client that the user registered.
#[derive(Debug, Clone)]
pub struct Client {
    /// The client id.
    pub client_id: String,
    /// The client secret, if it has one.
    pub client_secret: Option<Secret>,
    /// The private key, if it has one.
    pub key: Option<ClientKey>,
    /// How it authenticates; `None` to choose automatically.
    pub method: Option<AuthMethod>,
    /// The issuer that it is registered at; `None` for any authorization server that the MCP server
    /// names.
    pub issuer: Option<String>,
}
