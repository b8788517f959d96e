use crate::address::Reach;
use crate::client_auth::{AuthMethod, ClientKey};
use crate::registration::Registration;
use crate::scopes::Scopes;
use crate::secret::Secret;

/// What a token is wanted for, and with what it may be got.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Plan {
    /// The address of the MCP server, as it is visited.
    pub server: String,
    /// How far what it names may lead.
    pub reach: Reach,
    /// How the token is got.
    pub grant: Grant,
    /// The client that was registered by hand, if there is one.
    pub client: Option<Client>,
    /// What clients we are already, at whichever authorization servers.
    pub registrations: Vec<Registration>,
    /// What was asked for before, which a new token is to allow as well (AUTH26-10).
    pub scopes: Scopes,
    /// The key that tokens are bound to where that is wanted, as text; a new one if there is none.
    pub key: Option<Secret>,
    /// The revision named when metadata is fetched (AUTH03-07).
    pub revision: Option<String>,
}

impl Plan {
    /// A token for `server`.
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

/// How a token is got.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Grant {
    /// A user signs in on a page.
    User(UserGrant),
    /// The client is its own user.
    ClientCredentials,
    /// Whoever runs this workload vouches for it with a JWT (RFC 7523).
    Workload {
        /// That JWT.
        assertion: Secret,
    },
    /// The identity provider of an enterprise vouches for its user (EMA-01).
    Enterprise {
        /// Where it issues tokens; configured, not discovered.
        token_endpoint: String,
        /// Who we are there.
        client_id: String,
        /// That the user has signed in there.
        id_token: Secret,
    },
    /// Somebody who called us has shown a token of theirs, which is exchanged for one that is for
    /// the server (RFC 8693). Only the authorization server that [`Client::issuer`] names is shown
    /// it: whoever a server names could use it with us.
    Exchange {
        /// That token.
        subject_token: Secret,
        /// What the authorization server calls the server, if not by its address.
        audience: Option<String>,
    },
}

/// What a sign-in on a page takes.
#[derive(Debug, Clone)]
pub struct UserGrant {
    /// Where the user is sent back to.
    pub redirect_uri: String,
    /// What the user is shown as the name of this client.
    pub client_name: String,
    /// The address of a document about this client, which is its id where that is understood.
    pub metadata_url: Option<String>,
}

/// A client that somebody registered by hand.
#[derive(Debug, Clone)]
pub struct Client {
    /// Its name.
    pub client_id: String,
    /// Its secret, if it has one.
    pub client_secret: Option<Secret>,
    /// Its key, if it has one.
    pub key: Option<ClientKey>,
    /// How it proves itself; chosen if it is not said.
    pub method: Option<AuthMethod>,
    /// Where it is registered; the first authorization server that is met if it is not said.
    pub issuer: Option<String>,
}
