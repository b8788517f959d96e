//! The OAuth 2.0 resource server of MCP authorization: verifies the token of each request.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderName, HeaderValue, StatusCode};
use plexus_mcp_client::http::HttpClientError;
use plexus_mcp_core::Credential;
use plexus_mcp_oauth::metadata::ResourceMetadata;
use plexus_mcp_oauth::well_known;
use plexus_mcp_server::CallerIdentity;
use plexus_mcp_server::http::{Access, AccessDenied};
use serde::Deserialize;
use url::Url;

use crate::challenge::Challenge;
use crate::credentials::{Credentials, NoCredentials, Scheme};
use crate::issuer::{Issuer, TokenVerifier};
use crate::proofs::{ALGORITHMS, ProofError, Proofs};
use crate::tokens::{TokenFile, is_scope};
use crate::verified::{Rejected, Verified};
use crate::web::Web;

const DPOP_HEADER: HeaderName = HeaderName::from_static("dpop");
const DPOP_NONCE_HEADER: HeaderName = HeaderName::from_static("dpop-nonce");
/// The longest token that is parsed.
const MAX_TOKEN_BYTES: usize = 16 * 1024;

/// The options of a [`ResourceServer`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Options {
    /// The URL of the server, exactly as in the audience of its tokens (RFC 8707).
    pub resource: String,
    /// The scopes that every token must have.
    pub scopes: Vec<String>,
    /// The authorization servers whose tokens are accepted.
    pub issuers: Vec<Issuer>,
    /// The file of static tokens.
    pub tokens: Option<TokenFile>,
    /// Whether every token of an issuer must be bound to a key (DPoP). A token that is bound to a key
    /// needs a proof in any case.
    pub requires_dpop: bool,
}

impl Options {
    /// Options for the server at the URL `resource`, without issuers and static tokens yet.
    pub fn new(resource: impl Into<String>) -> Self {
        Self {
            resource: resource.into(),
            scopes: Vec::new(),
            issuers: Vec::new(),
            tokens: None,
            requires_dpop: false,
        }
    }
}

/// Why the [`Options`] are invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A URL is malformed or must not be used.
    #[error("the {what} {address:?} cannot be used: {reason}")]
    Address {
        /// Which URL of the options it is.
        what: &'static str,
        /// The URL as given.
        address: String,
        /// Why the URL is invalid.
        reason: String,
    },
    /// A scope is malformed.
    #[error("invalid scope {0:?}: a scope is one word without quotes and backslashes")]
    Scope(String),
    /// There is neither an issuer nor a token file.
    #[error("configure an issuer or a token file: without either, no request can be authorized")]
    NoIssuer,
    /// The HTTP client for requests to issuers cannot be made.
    #[error(transparent)]
    Http(#[from] HttpClientError),
    /// The operating system has no random numbers.
    #[error("the operating system has no random numbers")]
    Randomness(#[source] getrandom::Error),
}

/// Verifies the token of each request, and tells clients without a valid token how to get one.
#[derive(Debug)]
pub struct ResourceServer {
    resource: String,
    /// Scheme, host and port of the resource, without a path.
    origin: String,
    /// The required scopes as one string, for challenges; `None` if no scope is required.
    scope: Option<String>,
    scopes: Vec<String>,
    verifiers: Vec<TokenVerifier>,
    tokens: Option<TokenFile>,
    proofs: Proofs,
    requires_dpop: bool,
    metadata: Option<Metadata>,
}

/// The protected resource metadata, which names the issuers (RFC 9728).
#[derive(Debug)]
struct Metadata {
    document: Bytes,
    /// The paths at which the document is served.
    paths: Vec<String>,
    /// The URL of the document for challenges.
    url: String,
}

/// Why a request is refused.
#[derive(Debug)]
enum Refusal {
    Missing,
    Malformed(&'static str),
    Rejected(Rejected),
    Scope,
    Proof(ProofError),
}

impl ResourceServer {
    /// Creates a resource server.
    ///
    /// The platform's certificates are read here, which blocks for a few milliseconds.
    ///
    /// # Errors
    /// The options are invalid, the HTTP client cannot be built, or the system has no random numbers.
    pub fn new(options: Options) -> Result<Self, SettingsError> {
        let url = parse_resource(&options.resource)?;
        if let Some(wrong) = options.scopes.iter().find(|scope| !is_scope(scope)) {
            return Err(SettingsError::Scope(wrong.clone()));
        }
        if options.issuers.is_empty() && options.tokens.is_none() {
            return Err(SettingsError::NoIssuer);
        }
        let web = Web::new()?;
        let verifiers = options
            .issuers
            .iter()
            .map(|issuer| TokenVerifier::new(issuer, &web));
        let verifiers = verifiers.collect::<Result<Vec<_>, _>>()?;
        let metadata = (!verifiers.is_empty()).then(|| Metadata::new(&url, &options));
        Ok(Self {
            origin: url.origin().ascii_serialization(),
            scope: (!options.scopes.is_empty()).then(|| options.scopes.join(" ")),
            scopes: options.scopes,
            resource: options.resource,
            verifiers,
            tokens: options.tokens,
            proofs: Proofs::new().map_err(SettingsError::Randomness)?,
            requires_dpop: options.requires_dpop,
            metadata,
        })
    }

    /// Verifies token, proof and scopes of a request.
    async fn check(&self, head: &Parts) -> Result<CallerIdentity, Refusal> {
        let credentials = Credentials::from_request(head)?;
        let token = credentials.token;
        if token.len() > MAX_TOKEN_BYTES {
            let rejected = Rejected::invalid("the token is too long");
            return Err(Refusal::Rejected(rejected));
        }
        let (verified, is_static) = self.verify(token).await?;
        match (credentials.scheme, &verified.bound_to) {
            (Scheme::Dpop, Some(jkt)) => self.check_proof(head, token, jkt)?,
            (Scheme::Bearer, None) if is_static || !self.requires_dpop => {}
            // A token that is bound to a key needs a proof: a stolen one must not pass as a bearer token.
            (Scheme::Bearer, Some(_)) => {
                return Err(Rejected::invalid(
                    "the token is bound to a key, but was sent as a bearer token",
                )
                .into());
            }
            (_, None) => return Err(Rejected::invalid("the token is not bound to a key").into()),
        }
        let granted = verified.identity.scopes.as_ref();
        let allows = |scope: &String| granted.is_some_and(|granted| granted.contains(scope));
        if !self.scopes.iter().all(allows) {
            return Err(Refusal::Scope);
        }
        let identity = verified.identity;
        if is_static {
            return Ok(identity);
        }
        // The service behind this server decides whether it can act for the caller with the token.
        Ok(identity.showing(Credential::new(token, &self.resource)))
    }

    /// Verifies a token, and says whether it is a static token of the token file.
    async fn verify(&self, token: &str) -> Result<(Verified, bool), Refusal> {
        let static_token = self.tokens.as_ref().and_then(|tokens| tokens.verify(token));
        if let Some(verified) = static_token {
            return Ok((verified?, true));
        }
        // A token is sent to no issuer but its own.
        let mut verifiers = self.verifiers.iter();
        let verifier = match unverified_issuer(token) {
            Some(named) => verifiers.find(|verifier| verifier.issuer == named),
            None => verifiers.find(|verifier| verifier.accepts_opaque_tokens()),
        };
        let verifier =
            verifier.ok_or_else(|| Rejected::invalid("the token has an unknown issuer"))?;
        Ok((verifier.verify(token, &self.resource).await?, false))
    }

    fn check_proof(&self, head: &Parts, token: &str, jkt: &str) -> Result<(), Refusal> {
        let mut proofs = head.headers.get_all(DPOP_HEADER).iter();
        let (proof, second) = (proofs.next(), proofs.next());
        let proof = proof.filter(|_| second.is_none());
        let proof = proof.and_then(|proof| proof.to_str().ok());
        let invalid = ProofError::Invalid("there must be exactly one DPoP header");
        let proof = proof.ok_or(Refusal::Proof(invalid))?;
        // A reverse proxy may have changed the path, so the configured URL is accepted as well.
        let urls = [
            self.resource.clone(),
            format!("{}{}", self.origin, head.uri.path()),
        ];
        let checked = self
            .proofs
            .check(proof, head.method.as_str(), &urls, token, jkt);
        checked.map_err(Refusal::Proof)
    }

    /// The HTTP response for a refused request (AUTH03-12, AUTH06-03, AUTH06-15, AUTH11-03, AUTH11-11).
    fn deny(&self, refused: Refusal) -> AccessDenied {
        let unauthorized = |error, text: &'static str| {
            let denied = AccessDenied::new(StatusCode::UNAUTHORIZED, text);
            self.with_challenge(denied, error)
        };
        match refused {
            Refusal::Missing => unauthorized(
                None,
                "this server requires an access token in the Authorization header",
            ),
            Refusal::Malformed(text) => {
                let denied = AccessDenied::new(StatusCode::BAD_REQUEST, text);
                self.with_challenge(denied, Some("invalid_request"))
            }
            Refusal::Scope => {
                let text = "the access token lacks a required scope";
                let denied = AccessDenied::new(StatusCode::FORBIDDEN, text);
                self.with_challenge(denied, Some("insufficient_scope"))
            }
            Refusal::Rejected(Rejected::Invalid(_)) => unauthorized(
                Some("invalid_token"),
                "the access token is expired, revoked, or not for this server",
            ),
            Refusal::Rejected(Rejected::Unknown(_)) => {
                let text = "the access token cannot be verified at the moment; try again";
                let mut denied = AccessDenied::new(StatusCode::SERVICE_UNAVAILABLE, text);
                let seconds = HeaderValue::from_static("5");
                denied.headers.insert(RETRY_AFTER, seconds);
                denied
            }
            Refusal::Proof(error) => {
                let (code, nonce) = match error {
                    ProofError::Nonce(nonce) => ("use_dpop_nonce", nonce),
                    ProofError::Invalid(_) => ("invalid_dpop_proof", self.proofs.nonce()),
                };
                let text = "the DPoP proof is missing or invalid";
                let mut denied = AccessDenied::new(StatusCode::UNAUTHORIZED, text);
                let challenge = self.challenge("DPoP", Some(code));
                denied.headers.insert(WWW_AUTHENTICATE, challenge);
                if let Ok(nonce) = HeaderValue::try_from(nonce) {
                    denied.headers.insert(DPOP_NONCE_HEADER, nonce);
                }
                denied
            }
        }
    }

    fn with_challenge(&self, mut denied: AccessDenied, error: Option<&str>) -> AccessDenied {
        let scheme = if self.requires_dpop { "DPoP" } else { "Bearer" };
        let challenge = self.challenge(scheme, error);
        denied.headers.insert(WWW_AUTHENTICATE, challenge);
        denied
    }

    fn challenge(&self, scheme: &str, error: Option<&str>) -> HeaderValue {
        let metadata = self.metadata.as_ref().map(|metadata| metadata.url.as_str());
        let algorithms = (scheme == "DPoP").then(|| ALGORITHMS.join(" "));
        Challenge::new(scheme)
            .with("error", error)
            .with("scope", self.scope.as_deref())
            .with("algs", algorithms.as_deref())
            .with("resource_metadata", metadata)
            .header()
    }
}

impl Access for ResourceServer {
    fn admit<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Result<CallerIdentity, AccessDenied>> {
        async move {
            self.check(head).await.map_err(|refused| {
                tracing::debug!(?refused, "refused a request");
                self.deny(refused)
            })
        }
        .boxed()
    }

    /// The token alone is verified: a proof of possession is accepted only once.
    fn is_still_valid<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, bool> {
        async move {
            let Ok(credentials) = Credentials::from_request(head) else {
                return false;
            };
            let verified = self.verify(credentials.token).await;
            !matches!(verified, Err(Refusal::Rejected(Rejected::Invalid(_))))
        }
        .boxed()
    }

    /// AUTH11-01: the metadata for the path of the resource, and for its whole origin.
    fn document(&self, path: &str) -> Option<Bytes> {
        let metadata = self.metadata.as_ref()?;
        let is_metadata = metadata.paths.iter().any(|known| known == path);
        is_metadata.then(|| metadata.document.clone())
    }
}

impl From<NoCredentials> for Refusal {
    fn from(none: NoCredentials) -> Self {
        match none {
            NoCredentials::Missing => Self::Missing,
            NoCredentials::Malformed(text) => Self::Malformed(text),
        }
    }
}

impl From<Rejected> for Refusal {
    fn from(rejected: Rejected) -> Self {
        Self::Rejected(rejected)
    }
}

impl Metadata {
    fn new(resource: &Url, options: &Options) -> Self {
        let mut metadata = ResourceMetadata::default();
        metadata.resource.clone_from(&options.resource);
        let issuers = options.issuers.iter().map(|issuer| issuer.issuer.clone());
        metadata.authorization_servers = issuers.collect();
        metadata.scopes_supported = (!options.scopes.is_empty()).then(|| options.scopes.clone());
        metadata.bearer_methods_supported = Some(vec!["header".to_owned()]);
        if options.requires_dpop {
            let algorithms = ALGORITHMS.map(str::to_owned).to_vec();
            metadata.dpop_signing_alg_values_supported = Some(algorithms);
            metadata.dpop_bound_access_tokens_required = Some(true);
        }
        let urls = well_known::of_resource(resource);
        let url = urls.first().map(ToString::to_string);
        Self {
            document: serde_json::to_vec(&metadata).unwrap_or_default().into(),
            paths: urls.iter().map(|url| url.path().to_owned()).collect(),
            url: url.unwrap_or_default(),
        }
    }
}

/// Parses the URL of a resource (RFC 8707 §2, RFC 9728 §1.2).
fn parse_resource(text: &str) -> Result<Url, SettingsError> {
    let invalid = |reason: &str| SettingsError::Address {
        what: "resource",
        address: text.to_owned(),
        reason: reason.to_owned(),
    };
    let url = Url::parse(text).map_err(|error| invalid(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || !text.chars().all(|c| c.is_ascii_graphic()) {
        return Err(invalid("it must be the http or https URL of the server"));
    }
    if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() {
        return Err(invalid("it must have no query, fragment or user name"));
    }
    Ok(url)
}

/// The `iss` claim of a JWT, without verification; `None` for an opaque token.
fn unverified_issuer(token: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct IssuerClaim {
        iss: String,
    }
    let mut parts = token.split('.');
    let (_, payload, _) = (parts.next()?, parts.next()?, parts.next()?);
    let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
    Some(serde_json::from_slice::<IssuerClaim>(&payload).ok()?.iss)
}
