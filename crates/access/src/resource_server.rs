//! A server that wants tokens.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderName, HeaderValue, StatusCode};
use plexus_client::http::HttpClientError;
use plexus_oauth::metadata::ResourceMetadata;
use plexus_oauth::well_known;
use plexus_server::http::{Access, AccessDenied, Admitted};
use plexus_service::Credential;
use serde::Deserialize;
use url::Url;

use crate::challenge::Challenge;
use crate::credentials::{Credentials, NoCredentials, Scheme};
use crate::issuer::{Issuer, Judge};
use crate::proofs::{ALGORITHMS, ProofError, Proofs};
use crate::tokens::{TokenFile, is_scope};
use crate::verified::{Rejected, Verified};
use crate::web::Web;

const DPOP: HeaderName = HeaderName::from_static("dpop");
const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");
/// The longest token that is looked at.
const LONGEST: usize = 16 * 1024;

/// What a server wants of those it lets in.
#[derive(Debug)]
#[non_exhaustive]
pub struct Options {
    /// The address of the server, exactly as tokens must be issued for it (RFC 8707).
    pub resource: String,
    /// What every token must allow.
    pub scopes: Vec<String>,
    /// Who issues tokens.
    pub issuers: Vec<Issuer>,
    /// Tokens of our own.
    pub tokens: Option<TokenFile>,
    /// Whether every token of an issuer must be bound to a key. One that is bound is checked as such
    /// in any case.
    pub requires_dpop: bool,
}

impl Options {
    /// Tokens for `resource`, which nobody issues yet.
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

/// Why nobody can be let in like this.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// An address is none, or must not be used.
    #[error("the {what} {address:?} cannot be used: {reason}")]
    Address {
        /// What it is the address of.
        what: &'static str,
        /// The address.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A scope is none.
    #[error("{0:?} is no scope; a scope is one word without quotes and backslashes")]
    Scope(String),
    /// There is nobody who could issue a token.
    #[error("there is no issuer and no file of tokens, so that nobody could be let in")]
    Nobody,
    /// Issuers cannot be asked.
    #[error(transparent)]
    Http(#[from] HttpClientError),
    /// The system has no randomness.
    #[error("the system gives no random numbers")]
    Randomness(#[source] getrandom::Error),
}

/// Lets in who has a token, and tells everybody else how to get one.
#[derive(Debug)]
pub struct ResourceServer {
    resource: String,
    /// Before the path of an address of this server.
    origin: String,
    /// What every token must allow, as it is told; none if it is nothing.
    scope: Option<String>,
    scopes: Vec<String>,
    judges: Vec<Judge>,
    tokens: Option<TokenFile>,
    proofs: Proofs,
    requires_dpop: bool,
    metadata: Option<Metadata>,
}

/// What says who issues tokens (RFC 9728).
#[derive(Debug)]
struct Metadata {
    document: Bytes,
    /// Where we have it, and where clients are told to look.
    paths: Vec<String>,
    url: String,
}

/// Why a request is refused.
#[derive(Debug)]
enum Refused {
    Missing,
    Malformed(&'static str),
    Rejected(Rejected),
    Scope,
    Proof(ProofError),
}

impl ResourceServer {
    /// Lets in whom `options` say.
    ///
    /// The platform's certificates are read here, which blocks for a few milliseconds.
    ///
    /// # Errors
    /// The options cannot be meant.
    pub fn new(options: Options) -> Result<Self, SettingsError> {
        let url = resource(&options.resource)?;
        if let Some(wrong) = options.scopes.iter().find(|scope| !is_scope(scope)) {
            return Err(SettingsError::Scope(wrong.clone()));
        }
        if options.issuers.is_empty() && options.tokens.is_none() {
            return Err(SettingsError::Nobody);
        }
        let web = Web::new()?;
        let judges = options
            .issuers
            .iter()
            .map(|issuer| Judge::new(issuer, &web));
        let judges = judges.collect::<Result<Vec<_>, _>>()?;
        let metadata = (!judges.is_empty()).then(|| Metadata::new(&url, &options));
        Ok(Self {
            origin: url.origin().ascii_serialization(),
            scope: (!options.scopes.is_empty()).then(|| options.scopes.join(" ")),
            scopes: options.scopes,
            resource: options.resource,
            judges,
            tokens: options.tokens,
            proofs: Proofs::new().map_err(SettingsError::Randomness)?,
            requires_dpop: options.requires_dpop,
            metadata,
        })
    }

    async fn check(&self, head: &Parts) -> Result<Admitted, Refused> {
        let credentials = Credentials::of(head)?;
        let token = credentials.token;
        if token.len() > LONGEST {
            let rejected = Rejected::invalid("it is too long");
            return Err(Refused::Rejected(rejected));
        }
        let (verified, is_ours) = self.verify(token).await?;
        match (credentials.scheme, &verified.bound_to) {
            (Scheme::Dpop, Some(jkt)) => self.check_proof(head, token, jkt)?,
            (Scheme::Bearer, None) if is_ours || !self.requires_dpop => {}
            // A key that nobody shows is no key: a stolen token must not pass as a plain one.
            (Scheme::Bearer, Some(_)) => {
                return Err(Rejected::invalid("it is bound to a key").into());
            }
            (_, None) => return Err(Rejected::invalid("it is bound to no key").into()),
        }
        let granted = verified.admitted.scopes.as_ref();
        let allows = |scope: &String| granted.is_some_and(|granted| granted.contains(scope));
        if !self.scopes.iter().all(allows) {
            return Err(Refused::Scope);
        }
        let admitted = verified.admitted;
        if is_ours {
            return Ok(admitted);
        }
        // Whoever acts for the caller further on decides whether it is of any use there.
        Ok(admitted.showing(Credential::new(token, &self.resource)))
    }

    /// What a token is worth, and whether it is one of our own.
    async fn verify(&self, token: &str) -> Result<(Verified, bool), Refused> {
        let own = self.tokens.as_ref().and_then(|tokens| tokens.verify(token));
        if let Some(verdict) = own {
            return Ok((verdict?, true));
        }
        // Nobody is shown a token that is not their own.
        let judge = match named_issuer(token) {
            Some(named) => self.judges.iter().find(|judge| judge.issuer == named),
            None => self.judges.iter().find(|judge| judge.takes_opaque()),
        };
        let judge = judge.ok_or_else(|| Rejected::invalid("it is of nobody we know"))?;
        Ok((judge.verify(token, &self.resource).await?, false))
    }

    fn check_proof(&self, head: &Parts, token: &str, jkt: &str) -> Result<(), Refused> {
        let mut proofs = head.headers.get_all(DPOP).iter();
        let (proof, second) = (proofs.next(), proofs.next());
        let proof = proof.filter(|_| second.is_none());
        let proof = proof.and_then(|proof| proof.to_str().ok());
        let invalid = ProofError::Invalid("there must be exactly one");
        let proof = proof.ok_or(Refused::Proof(invalid))?;
        // A proxy in front may have changed the path of the endpoint itself.
        let urls = [
            self.resource.clone(),
            format!("{}{}", self.origin, head.uri.path()),
        ];
        let checked = self
            .proofs
            .check(proof, head.method.as_str(), &urls, token, jkt);
        checked.map_err(Refused::Proof)
    }

    /// AUTH03-12, AUTH06-03, AUTH06-15, AUTH11-03, AUTH11-11
    fn deny(&self, refused: Refused) -> AccessDenied {
        let unauthorized = |error, text: &'static str| {
            let denied = AccessDenied::new(StatusCode::UNAUTHORIZED, text);
            self.challenging(denied, error)
        };
        match refused {
            Refused::Missing => unauthorized(
                None,
                "this server wants an access token in the Authorization header",
            ),
            Refused::Malformed(text) => {
                let denied = AccessDenied::new(StatusCode::BAD_REQUEST, text);
                self.challenging(denied, Some("invalid_request"))
            }
            Refused::Scope => {
                let text = "the access token does not allow enough";
                let denied = AccessDenied::new(StatusCode::FORBIDDEN, text);
                self.challenging(denied, Some("insufficient_scope"))
            }
            Refused::Rejected(Rejected::Invalid(_)) => unauthorized(
                Some("invalid_token"),
                "the access token is expired, was taken back, or is not for this server",
            ),
            Refused::Rejected(Rejected::Unknown(_)) => {
                let text = "nobody can tell just now what the access token is worth; try again";
                let mut denied = AccessDenied::new(StatusCode::SERVICE_UNAVAILABLE, text);
                let soon = HeaderValue::from_static("5");
                denied.headers.insert(RETRY_AFTER, soon);
                denied
            }
            Refused::Proof(error) => {
                let (code, nonce) = match error {
                    ProofError::Nonce(nonce) => ("use_dpop_nonce", nonce),
                    ProofError::Invalid(_) => ("invalid_dpop_proof", self.proofs.nonce()),
                };
                let text = "the proof that the access token is yours is missing or not good enough";
                let mut denied = AccessDenied::new(StatusCode::UNAUTHORIZED, text);
                let challenge = self.challenge("DPoP", Some(code));
                denied.headers.insert(WWW_AUTHENTICATE, challenge);
                if let Ok(nonce) = HeaderValue::try_from(nonce) {
                    denied.headers.insert(DPOP_NONCE, nonce);
                }
                denied
            }
        }
    }

    fn challenging(&self, mut denied: AccessDenied, error: Option<&str>) -> AccessDenied {
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
    fn admit<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Result<Admitted, AccessDenied>> {
        async move {
            self.check(head).await.map_err(|refused| {
                tracing::debug!(?refused, "refused a request");
                self.deny(refused)
            })
        }
        .boxed()
    }

    /// AUTH11-01: for the path of the resource, and for all of its origin.
    fn document(&self, path: &str) -> Option<Bytes> {
        let metadata = self.metadata.as_ref()?;
        let is_here = metadata.paths.iter().any(|place| place == path);
        is_here.then(|| metadata.document.clone())
    }
}

impl From<NoCredentials> for Refused {
    fn from(none: NoCredentials) -> Self {
        match none {
            NoCredentials::Missing => Self::Missing,
            NoCredentials::Malformed(text) => Self::Malformed(text),
        }
    }
}

impl From<Rejected> for Refused {
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
        let places = well_known::of_resource(resource);
        let url = places.first().map(ToString::to_string);
        Self {
            document: serde_json::to_vec(&metadata).unwrap_or_default().into(),
            paths: places.iter().map(|place| place.path().to_owned()).collect(),
            url: url.unwrap_or_default(),
        }
    }
}

/// The address of a resource (RFC 8707 §2, RFC 9728 §1.2).
fn resource(text: &str) -> Result<Url, SettingsError> {
    let wrong = |reason: &str| SettingsError::Address {
        what: "resource",
        address: text.to_owned(),
        reason: reason.to_owned(),
    };
    let url = Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || !text.chars().all(|c| c.is_ascii_graphic()) {
        return Err(wrong("it must be the http or https address of the server"));
    }
    if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() {
        return Err(wrong("it must have no query, fragment or user name"));
    }
    Ok(url)
}

/// The issuer that a signed token names, whether it is true or not; `None` if it is none.
fn named_issuer(token: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        iss: String,
    }
    let mut parts = token.split('.');
    let (_, payload, _) = (parts.next()?, parts.next()?, parts.next()?);
    let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
    Some(serde_json::from_slice::<Named>(&payload).ok()?.iss)
}
