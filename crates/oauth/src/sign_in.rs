mod client;
mod discovery;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use bytes::Bytes;
use http::{Request, Response};
use url::{Url, form_urlencoded};

use crate::address::{AddressError, Reach, UrlPolicy};
use crate::ambient::{Ambient, random_token};
use crate::challenge::Challenges;
use crate::error::{OAuthError, sanitized};
use crate::http_exchange::malformed;
use crate::keys::SigningKey;
use crate::metadata::{ResourceMetadata, ServerMetadata};
use crate::pkce::{code_challenge, code_verifier};
use crate::plan::{Grant, Plan};
use crate::registration::{ClientMetadata, Registration};
use crate::scopes::Scopes;
use crate::secret::Secret;
use crate::session::{Session, TokenKind};
use crate::token::{Form, TokenOutcome, TokenRequest};
use crate::well_known;

const JWT_BEARER_GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TOKEN_EXCHANGE_GRANT: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_JAG_TOKEN_TYPE: &str = "urn:ietf:params:oauth:token-type:id-jag";
const ID_TOKEN_TYPE: &str = "urn:ietf:params:oauth:token-type:id_token";
const ACCESS_TOKEN_TYPE: &str = "urn:ietf:params:oauth:token-type:access_token";
const JWT_TOKEN_TYPE: &str = "urn:ietf:params:oauth:token-type:jwt";
const OFFLINE_ACCESS_SCOPE: &str = "offline_access";

/// The next action of the caller that runs a flow.
#[expect(
    clippy::exhaustive_enums,
    reason = "the caller must be able to do every step"
)]
pub enum Step {
    /// Send this request without following redirects, and pass the response to [`SignIn::handle_response`].
    Send {
        /// The request.
        request: Request<Bytes>,
        /// The networks that the host name may resolve to; `None` if the user configured the URL.
        reach: Option<Reach>,
    },
    /// Show this page to the user, and pass the query of the redirect to [`SignIn::handle_redirect`].
    Visit {
        /// The URL of the page.
        url: Url,
    },
    /// The flow has succeeded with this session.
    Done(Box<Session>),
}

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            // The body and the headers contain secrets.
            Self::Send { request, .. } => write!(f, "Send({} {})", request.method(), request.uri()),
            Self::Visit { .. } => f.write_str("Visit(…)"),
            Self::Done(session) => f.debug_tuple("Done").field(session).finish(),
        }
    }
}

/// A sign-in as a sans-I/O state machine: discovery, client registration, sign-in page and token request.
/// Begin with [`start`](Self::start).
#[derive(Debug)]
pub struct SignIn {
    plan: Plan,
    challenges: Challenges,
    server: Url,
    policy: UrlPolicy,
    discovered: DiscoveredMetadata,
    phase: Phase,
}

/// The discovered metadata.
#[derive(Debug, Default)]
struct DiscoveredMetadata {
    resource: Option<ResourceMetadata>,
    server: ServerMetadata,
    /// The server has no resource metadata, so it is treated as one of 2025-03-26.
    is_2025_03: bool,
}

#[derive(Debug)]
enum Phase {
    Resource(VecDeque<Url>),
    Server {
        issuer: String,
        urls: VecDeque<Url>,
    },
    Register {
        endpoint: Url,
        metadata: Box<ClientMetadata>,
    },
    Visit {
        registration: Box<Registration>,
        verifier: Secret,
        state: Secret,
    },
    /// Waits for the identity provider of the enterprise.
    Exchange {
        registration: Box<Registration>,
        call: Box<TokenRequest>,
    },
    Token {
        session: Box<Session>,
        call: Box<TokenRequest>,
    },
    Over,
}

impl SignIn {
    /// A sign-in for `plan`, after a server has refused a request with these challenges.
    ///
    /// # Errors
    /// The server's URL is malformed.
    pub fn new(plan: Plan, challenges: Challenges) -> Result<Self, OAuthError> {
        let server = Url::parse(&plan.server);
        let server = server.map_err(|error| malformed("URL of the server", &error))?;
        Ok(Self {
            policy: UrlPolicy::new(plan.reach),
            plan,
            challenges,
            server,
            discovered: DiscoveredMetadata::default(),
            phase: Phase::Over,
        })
    }

    /// The first step.
    ///
    /// # Errors
    /// See [`OAuthError`].
    pub fn start(&mut self, ambient: &dyn Ambient) -> Result<Step, OAuthError> {
        let mut urls = VecDeque::new();
        if let Some(named) = self.challenges.resource_metadata() {
            urls.push_back(self.checked_url("metadata of the server", named)?);
        }
        for url in well_known::of_resource(&self.server) {
            if !urls.contains(&url) {
                urls.push_back(url);
            }
        }
        self.fetch_resource_metadata(urls, ambient)
    }

    /// Handles the response to the request of the last step, and returns the next step.
    ///
    /// # Errors
    /// See [`OAuthError`].
    pub fn handle_response(
        &mut self,
        response: &Response<Bytes>,
        ambient: &dyn Ambient,
    ) -> Result<Step, OAuthError> {
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Resource(urls) => self.handle_resource_response(response, urls, ambient),
            Phase::Server { issuer, urls } => {
                self.handle_server_response(response, issuer, urls, ambient)
            }
            Phase::Register { endpoint, metadata } => {
                self.handle_registration_response(response, endpoint, *metadata, ambient)
            }
            Phase::Exchange { registration, call } => {
                self.handle_exchange_response(response, *registration, *call, ambient)
            }
            Phase::Token { session, call } => {
                self.handle_token_response(response, session, *call, ambient)
            }
            Phase::Visit { .. } | Phase::Over => {
                Err(malformed("sign-in", &"a response came without a request"))
            }
        }
    }

    /// Handles the redirect from the sign-in page, which has this query, and returns the next step.
    ///
    /// # Errors
    /// See [`OAuthError`].
    pub fn handle_redirect(
        &mut self,
        query: &str,
        ambient: &dyn Ambient,
    ) -> Result<Step, OAuthError> {
        let Phase::Visit {
            registration,
            verifier,
            state,
        } = std::mem::replace(&mut self.phase, Phase::Over)
        else {
            return Err(OAuthError::WrongState);
        };
        let field = |name: &str| {
            let mut pairs = form_urlencoded::parse(query.as_bytes());
            pairs.find_map(|(key, value)| (key == name).then(|| value.into_owned()))
        };
        if field("state").as_deref() != Some(state.expose()) {
            return Err(OAuthError::WrongState);
        }
        self.check_iss(field("iss").as_deref())?;
        if let Some(code) = field("error") {
            return Err(OAuthError::Refused {
                code: sanitized(&code),
                description: field("error_description").as_deref().map(sanitized),
            });
        }
        let code = field("code");
        let code =
            code.ok_or_else(|| malformed("redirect from the sign-in page", &"it has no code"))?;
        let Grant::User(user) = &self.plan.grant else {
            return Err(OAuthError::WrongState);
        };
        let mut form = Form::of_grant("authorization_code");
        form.add("code", &code);
        form.add("redirect_uri", &user.redirect_uri);
        form.add("code_verifier", verifier.expose());
        self.request_token(form, *registration, ambient)
    }

    /// RFC 9207: the redirect must name the issuer of the sign-in page, compared byte by byte (AUTH26-04,
    /// AUTH26-05).
    fn check_iss(&self, iss: Option<&str>) -> Result<(), OAuthError> {
        let server = &self.discovered.server;
        let is_required = server.authorization_response_iss_parameter_supported == Some(true);
        match iss {
            Some(iss) if iss == server.issuer => Ok(()),
            None if !is_required => Ok(()),
            _ => Err(OAuthError::WrongIssuer),
        }
    }

    /// Continues after discovery: chooses the client, and makes the first request of the grant.
    fn begin_grant(&mut self, ambient: &dyn Ambient) -> Result<Step, OAuthError> {
        match self.plan.grant.clone() {
            Grant::User(user) => {
                if !self.discovered.server.supports_pkce() && !self.discovered.is_2025_03 {
                    return Err(self.unsupported("PKCE with S256"));
                }
                self.choose_client(&user, ambient)
            }
            Grant::ClientCredentials => {
                let registration = self.configured_client()?;
                self.request_token(Form::of_grant("client_credentials"), registration, ambient)
            }
            Grant::Workload { assertion } => {
                let registration = self.configured_client()?;
                let mut form = Form::of_grant(JWT_BEARER_GRANT);
                form.add("assertion", assertion.expose());
                self.request_token(form, registration, ambient)
            }
            Grant::Exchange {
                subject_token,
                audience,
            } => {
                let registration = self.configured_client()?;
                if !self.is_configured() {
                    let issuer = registration.issuer;
                    return Err(OAuthError::Untrusted { issuer });
                }
                let mut form = Form::of_grant(TOKEN_EXCHANGE_GRANT);
                form.add("requested_token_type", ACCESS_TOKEN_TYPE);
                form.add("subject_token", subject_token.expose());
                form.add("subject_token_type", ACCESS_TOKEN_TYPE);
                form.add_some("audience", audience.as_deref());
                self.request_token(form, registration, ambient)
            }
            Grant::Enterprise {
                token_endpoint,
                client_id,
                id_token,
            } => {
                let registration = self.configured_client()?;
                let mut form = Form::of_grant(TOKEN_EXCHANGE_GRANT);
                form.add("requested_token_type", ID_JAG_TOKEN_TYPE);
                form.add("audience", &self.discovered.server.issuer);
                form.add_some("resource", self.resource());
                form.add("subject_token", id_token.expose());
                form.add("subject_token_type", ID_TOKEN_TYPE);
                form.add("client_id", &client_id);
                let scopes = self.scopes();
                form.add_some("scope", scopes.map(|scopes| scopes.to_string()).as_deref());
                let endpoint = Url::parse(&token_endpoint);
                let call = TokenRequest {
                    endpoint: endpoint.map_err(|error| malformed("identity provider", &error))?,
                    form,
                    client: None,
                    key: None,
                    nonce: None,
                };
                let request = call.request(ambient)?;
                self.phase = Phase::Exchange {
                    registration: Box::new(registration),
                    call: Box::new(call),
                };
                Ok(Step::Send {
                    request,
                    reach: None,
                })
            }
        }
    }

    fn visit(
        &mut self,
        registration: Registration,
        ambient: &dyn Ambient,
    ) -> Result<Step, OAuthError> {
        let Grant::User(user) = &self.plan.grant else {
            return Err(OAuthError::WrongState);
        };
        let endpoint = self.discovered.server.authorization_endpoint.as_deref();
        let endpoint = endpoint.ok_or_else(|| self.unsupported("signing in on a page"))?;
        let mut url = self.checked_url("sign-in page", endpoint)?;
        let verifier = code_verifier(ambient);
        let state = Secret::new(random_token(ambient));
        let scopes = self.scopes();
        {
            let mut query = url.query_pairs_mut();
            query
                .append_pair("response_type", "code")
                .append_pair("client_id", &registration.client_id)
                .append_pair("redirect_uri", &user.redirect_uri)
                .append_pair("state", state.expose())
                .append_pair("code_challenge", &code_challenge(verifier.expose()))
                .append_pair("code_challenge_method", "S256");
            if let Some(resource) = self.resource() {
                query.append_pair("resource", resource);
            }
            if let Some(scopes) = &scopes {
                query.append_pair("scope", &scopes.to_string());
                // OpenID Connect Core §11: without it, no refresh token is issued.
                if scopes.contains(OFFLINE_ACCESS_SCOPE) {
                    query.append_pair("prompt", "consent");
                }
            }
        }
        self.phase = Phase::Visit {
            registration: Box::new(registration),
            verifier,
            state,
        };
        Ok(Step::Visit { url })
    }

    fn handle_exchange_response(
        &mut self,
        response: &Response<Bytes>,
        registration: Registration,
        mut call: TokenRequest,
        ambient: &dyn Ambient,
    ) -> Result<Step, OAuthError> {
        let TokenOutcome::Token(answer) = call.handle_response(response, ambient)? else {
            return Err(malformed("identity provider", &"it requires DPoP proofs"));
        };
        if answer.issued_token_type.as_deref() != Some(ID_JAG_TOKEN_TYPE) {
            return Err(malformed(
                "identity provider",
                &"it issued another type of token",
            ));
        }
        let mut form = Form::of_grant(JWT_BEARER_GRANT);
        form.add("assertion", answer.access_token.expose());
        self.request_token(form, registration, ambient)
    }

    /// Makes the last request, for the token.
    fn request_token(
        &mut self,
        mut form: Form,
        registration: Registration,
        ambient: &dyn Ambient,
    ) -> Result<Step, OAuthError> {
        let server = &self.discovered.server;
        let token_endpoint = server.token_endpoint.clone();
        let token_endpoint = token_endpoint.ok_or_else(|| self.unsupported("token requests"))?;
        let endpoint = self.checked_url("token endpoint", &token_endpoint)?;
        form.add_some("resource", self.resource());
        let requested = self.scopes().unwrap_or_default();
        if !matches!(self.plan.grant, Grant::User(_)) && !requested.is_empty() {
            form.add("scope", &requested.to_string());
        }
        let accepts_dpop = self
            .discovered
            .resource
            .as_ref()
            .is_some_and(ResourceMetadata::accepts_dpop);
        let wants_dpop = (accepts_dpop || self.challenges.wants_dpop()) && server.supports_dpop();
        let key = match &self.plan.key {
            _ if !wants_dpop => None,
            Some(text) => Some((SigningKey::restore(text)?, text.clone())),
            None => Some(SigningKey::generate()?),
        };
        let (key, key_text) = key.unzip();
        let call = TokenRequest {
            endpoint,
            form,
            client: Some(registration.clone()),
            key,
            nonce: None,
        };
        let request = call.request(ambient)?;
        let session = Session {
            registration,
            token_endpoint,
            revocation_endpoint: server.revocation_endpoint.clone(),
            resource: self.resource().map(str::to_owned),
            access_token: Secret::new(""),
            kind: TokenKind::Bearer,
            expires_at: None,
            renew_at: None,
            refresh_token: None,
            requested,
            granted: None,
            key: key_text,
        };
        self.phase = Phase::Token {
            session: Box::new(session),
            call: Box::new(call),
        };
        Ok(self.send(request))
    }

    fn handle_token_response(
        &mut self,
        response: &Response<Bytes>,
        mut session: Box<Session>,
        mut call: TokenRequest,
        ambient: &dyn Ambient,
    ) -> Result<Step, OAuthError> {
        match call.handle_response(response, ambient)? {
            TokenOutcome::Retry(request) => {
                let call = Box::new(call);
                self.phase = Phase::Token { session, call };
                Ok(self.send(*request))
            }
            TokenOutcome::Token(answer) => {
                let kind = answer.issued_token_type.as_deref();
                if kind.is_some_and(|kind| kind != ACCESS_TOKEN_TYPE && kind != JWT_TOKEN_TYPE) {
                    return Err(malformed(
                        "token",
                        &"it has another type than the requested one",
                    ));
                }
                session.apply(*answer, ambient.now())?;
                Ok(Step::Done(session))
            }
        }
    }

    /// The resource that the token is for, as its metadata names it (AUTH06-06). `None` for servers of
    /// 2025-03-26, which do not know the parameter.
    fn resource(&self) -> Option<&str> {
        self.discovered
            .resource
            .as_ref()
            .map(|one| one.resource.as_str())
    }

    /// The scopes to request: those of the challenge, else all that the resource supports (AUTH11-10),
    /// and those that were requested before (AUTH26-10). `None` leaves the choice to the authorization
    /// server.
    fn scopes(&self) -> Option<Scopes> {
        let listed = self.discovered.resource.as_ref();
        let listed = listed.and_then(|resource| resource.scopes_supported.as_ref());
        let listed = listed.map(|scopes| scopes.iter().map(String::as_str).collect());
        let wanted = self.challenges.scopes().or(listed).unwrap_or_default();
        let mut wanted = wanted.union(&self.plan.scopes);
        if wanted.is_empty() {
            return None;
        }
        // AUTH26-14: only if the authorization server lists it.
        let supported = self.discovered.server.scopes_supported.as_deref();
        let is_for_user = matches!(self.plan.grant, Grant::User(_));
        if is_for_user && crate::metadata::lists(supported, OFFLINE_ACCESS_SCOPE) {
            wanted.insert(OFFLINE_ACCESS_SCOPE);
        }
        Some(wanted)
    }

    fn send(&self, request: Request<Bytes>) -> Step {
        Step::Send {
            request,
            reach: Some(self.plan.reach),
        }
    }

    /// Checks a URL. Plain http is allowed in a private network for the origin of the server, which is
    /// called over plain http anyway.
    fn checked_url(&self, what: &'static str, address: &str) -> Result<Url, OAuthError> {
        let checked = self.policy.check(address);
        if checked == Err(AddressError::Plain)
            && self.plan.reach >= Reach::Private
            && let Ok(url) = Url::parse(address)
            && url.origin() == self.server.origin()
        {
            return Ok(url);
        }
        checked.map_err(|reason| OAuthError::Address { what, reason })
    }

    /// Whether the authorization server is configured. `configured_client` has checked that it is the
    /// configured one.
    fn is_configured(&self) -> bool {
        let client = self.plan.client.as_ref();
        client.is_some_and(|client| client.issuer.is_some())
    }

    fn unsupported(&self, what: &'static str) -> OAuthError {
        let issuer = self.discovered.server.issuer.clone();
        OAuthError::Unsupported { issuer, what }
    }
}
