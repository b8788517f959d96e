mod client;
mod discovery;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use bytes::Bytes;
use http::{Request, Response};
use url::{Url, form_urlencoded};

use crate::address::{AddressError, Guard, Reach};
use crate::ambient::{Ambient, unguessable};
use crate::answer::malformed;
use crate::challenge::Challenges;
use crate::error::{OAuthError, presentable};
use crate::keys::SigningKey;
use crate::metadata::{ResourceMetadata, ServerMetadata};
use crate::pkce::{code_challenge, code_verifier};
use crate::plan::{Grant, Plan};
use crate::registration::{ClientMetadata, Registration};
use crate::scopes::Scopes;
use crate::secret::Secret;
use crate::session::{Session, TokenKind};
use crate::token::{Answered, Form, TokenCall};
use crate::well_known;

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
const JWT: &str = "urn:ietf:params:oauth:token-type:jwt";
const OFFLINE: &str = "offline_access";

/// What is to be done next.
#[expect(
    clippy::exhaustive_enums,
    reason = "whoever drives must be able to do all of it"
)]
pub enum Step {
    /// Send this, follow no redirect, and say what came: [`SignIn::answered`].
    Send {
        /// What to send.
        request: Request<Bytes>,
        /// How far its host's name may lead; none if the user chose the address.
        reach: Option<Reach>,
    },
    /// Have the user visit this page, and say with which query they came back:
    /// [`SignIn::returned`].
    Visit {
        /// The page.
        url: Url,
    },
    /// It is over, and this came of it.
    Done(Box<Session>),
}

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            // Its body and its headers hold secrets.
            Self::Send { request, .. } => write!(f, "Send({} {})", request.method(), request.uri()),
            Self::Visit { .. } => f.write_str("Visit(…)"),
            Self::Done(session) => f.debug_tuple("Done").field(session).finish(),
        }
    }
}

/// From a challenge to a token, in steps. Begin with [`start`](Self::start).
#[derive(Debug)]
pub struct SignIn {
    plan: Plan,
    challenges: Challenges,
    server: Url,
    guard: Guard,
    found: Found,
    phase: Phase,
}

/// What was found out.
#[derive(Debug, Default)]
struct Found {
    resource: Option<ResourceMetadata>,
    server: ServerMetadata,
    /// There is no resource metadata, so that the server is one of 2025-03-26.
    is_old: bool,
}

#[derive(Debug)]
enum Phase {
    Resource(VecDeque<Url>),
    Server {
        issuer: String,
        places: VecDeque<Url>,
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
    /// At the identity provider of the enterprise.
    Exchange {
        registration: Box<Registration>,
        call: Box<TokenCall>,
    },
    Token {
        session: Box<Session>,
        call: Box<TokenCall>,
    },
    Over,
}

impl SignIn {
    /// Begins to carry out `plan`, after a server has refused a request with these challenges.
    ///
    /// # Errors
    /// The server's address is none.
    pub fn new(plan: Plan, challenges: Challenges) -> Result<Self, OAuthError> {
        let server = Url::parse(&plan.server);
        let server = server.map_err(|error| malformed("address of the server", &error))?;
        Ok(Self {
            guard: Guard::new(plan.reach),
            plan,
            challenges,
            server,
            found: Found::default(),
            phase: Phase::Over,
        })
    }

    /// The first step.
    ///
    /// # Errors
    /// See [`OAuthError`].
    pub fn start(&mut self, ambient: &dyn Ambient) -> Result<Step, OAuthError> {
        let mut places = VecDeque::new();
        if let Some(named) = self.challenges.resource_metadata() {
            places.push_back(self.checked("metadata of the server", named)?);
        }
        for place in well_known::of_resource(&self.server) {
            if !places.contains(&place) {
                places.push_back(place);
            }
        }
        self.ask_resource(places, ambient)
    }

    /// What comes after the answer to the last step.
    ///
    /// # Errors
    /// See [`OAuthError`].
    pub fn answered(
        &mut self,
        response: &Response<Bytes>,
        ambient: &dyn Ambient,
    ) -> Result<Step, OAuthError> {
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Resource(places) => self.resource_answered(response, places, ambient),
            Phase::Server { issuer, places } => {
                self.server_answered(response, issuer, places, ambient)
            }
            Phase::Register { endpoint, metadata } => {
                self.register_answered(response, endpoint, *metadata, ambient)
            }
            Phase::Exchange { registration, call } => {
                self.exchange_answered(response, *registration, *call, ambient)
            }
            Phase::Token { session, call } => {
                self.token_answered(response, session, *call, ambient)
            }
            Phase::Visit { .. } | Phase::Over => Err(malformed("sign-in", &"nothing was asked")),
        }
    }

    /// What comes after the user came back from the page, with this query.
    ///
    /// # Errors
    /// See [`OAuthError`].
    pub fn returned(&mut self, query: &str, ambient: &dyn Ambient) -> Result<Step, OAuthError> {
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
                code: presentable(&code),
                description: field("error_description").as_deref().map(presentable),
            });
        }
        let code = field("code");
        let code =
            code.ok_or_else(|| malformed("answer of the sign-in page", &"it has no code"))?;
        let Grant::User(user) = &self.plan.grant else {
            return Err(OAuthError::WrongState);
        };
        let mut form = Form::of_grant("authorization_code");
        form.add("code", &code);
        form.add("redirect_uri", &user.redirect_uri);
        form.add("code_verifier", verifier.expose());
        self.ask_token(form, *registration, ambient)
    }

    /// RFC 9207: who answers must be who was asked, compared byte by byte (AUTH26-04, AUTH26-05).
    fn check_iss(&self, iss: Option<&str>) -> Result<(), OAuthError> {
        let server = &self.found.server;
        let is_promised = server.authorization_response_iss_parameter_supported == Some(true);
        match iss {
            Some(iss) if iss == server.issuer => Ok(()),
            None if !is_promised => Ok(()),
            _ => Err(OAuthError::WrongIssuer),
        }
    }

    /// All metadata is there; what comes next depends on how the token is got.
    fn discovered(&mut self, ambient: &dyn Ambient) -> Result<Step, OAuthError> {
        match self.plan.grant.clone() {
            Grant::User(user) => {
                if !self.found.server.supports_pkce() && !self.found.is_old {
                    return Err(self.unsupported("PKCE with S256"));
                }
                self.as_some_client(&user, ambient)
            }
            Grant::ClientCredentials => {
                let registration = self.by_hand()?;
                self.ask_token(Form::of_grant("client_credentials"), registration, ambient)
            }
            Grant::Workload { assertion } => {
                let registration = self.by_hand()?;
                let mut form = Form::of_grant(JWT_BEARER);
                form.add("assertion", assertion.expose());
                self.ask_token(form, registration, ambient)
            }
            Grant::Exchange {
                subject_token,
                audience,
            } => {
                let registration = self.by_hand()?;
                if !self.is_configured() {
                    let issuer = registration.issuer;
                    return Err(OAuthError::Untrusted { issuer });
                }
                let mut form = Form::of_grant(TOKEN_EXCHANGE);
                form.add("requested_token_type", ACCESS_TOKEN);
                form.add("subject_token", subject_token.expose());
                form.add("subject_token_type", ACCESS_TOKEN);
                form.add_some("audience", audience.as_deref());
                self.ask_token(form, registration, ambient)
            }
            Grant::Enterprise {
                token_endpoint,
                client_id,
                id_token,
            } => {
                let registration = self.by_hand()?;
                let mut form = Form::of_grant(TOKEN_EXCHANGE);
                form.add("requested_token_type", ID_JAG);
                form.add("audience", &self.found.server.issuer);
                form.add_some("resource", self.resource());
                form.add("subject_token", id_token.expose());
                form.add("subject_token_type", ID_TOKEN);
                form.add("client_id", &client_id);
                let scopes = self.scopes();
                form.add_some("scope", scopes.map(|scopes| scopes.to_string()).as_deref());
                let endpoint = Url::parse(&token_endpoint);
                let call = TokenCall {
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
        let endpoint = self.found.server.authorization_endpoint.as_deref();
        let endpoint = endpoint.ok_or_else(|| self.unsupported("signing in on a page"))?;
        let mut url = self.checked("sign-in page", endpoint)?;
        let verifier = code_verifier(ambient);
        let state = Secret::new(unguessable(ambient));
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
                // OpenID Connect Core §11 gives no refresh token without it.
                if scopes.contains(OFFLINE) {
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

    fn exchange_answered(
        &mut self,
        response: &Response<Bytes>,
        registration: Registration,
        mut call: TokenCall,
        ambient: &dyn Ambient,
    ) -> Result<Step, OAuthError> {
        let Answered::Token(answer) = call.answered(response, ambient)? else {
            return Err(malformed("identity provider", &"it wants proofs"));
        };
        if answer.issued_token_type.as_deref() != Some(ID_JAG) {
            return Err(malformed(
                "identity provider",
                &"it gave another kind of token",
            ));
        }
        let mut form = Form::of_grant(JWT_BEARER);
        form.add("assertion", answer.access_token.expose());
        self.ask_token(form, registration, ambient)
    }

    /// The last request: for the token itself.
    fn ask_token(
        &mut self,
        mut form: Form,
        registration: Registration,
        ambient: &dyn Ambient,
    ) -> Result<Step, OAuthError> {
        let server = &self.found.server;
        let token_endpoint = server.token_endpoint.clone();
        let token_endpoint = token_endpoint.ok_or_else(|| self.unsupported("token requests"))?;
        let endpoint = self.checked("token endpoint", &token_endpoint)?;
        form.add_some("resource", self.resource());
        let requested = self.scopes().unwrap_or_default();
        if !matches!(self.plan.grant, Grant::User(_)) && !requested.is_empty() {
            form.add("scope", &requested.to_string());
        }
        let takes_dpop = self
            .found
            .resource
            .as_ref()
            .is_some_and(ResourceMetadata::takes_dpop);
        let wants_dpop = (takes_dpop || self.challenges.wants_dpop()) && server.supports_dpop();
        let key = match &self.plan.key {
            _ if !wants_dpop => None,
            Some(text) => Some((SigningKey::restore(text)?, text.clone())),
            None => Some(SigningKey::generate()?),
        };
        let (key, key_text) = key.unzip();
        let call = TokenCall {
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

    fn token_answered(
        &mut self,
        response: &Response<Bytes>,
        mut session: Box<Session>,
        mut call: TokenCall,
        ambient: &dyn Ambient,
    ) -> Result<Step, OAuthError> {
        match call.answered(response, ambient)? {
            Answered::Again(request) => {
                let call = Box::new(call);
                self.phase = Phase::Token { session, call };
                Ok(self.send(*request))
            }
            Answered::Token(answer) => {
                let kind = answer.issued_token_type.as_deref();
                if kind.is_some_and(|kind| kind != ACCESS_TOKEN && kind != JWT) {
                    return Err(malformed(
                        "token",
                        &"it is of another kind than was asked for",
                    ));
                }
                session.take(*answer, ambient.now())?;
                Ok(Step::Done(session))
            }
        }
    }

    /// What the token is for, exactly as the resource names itself (AUTH06-06). Servers of
    /// 2025-03-26 do not know the parameter.
    fn resource(&self) -> Option<&str> {
        self.found
            .resource
            .as_ref()
            .map(|one| one.resource.as_str())
    }

    /// What to ask for: what the request needs, else all there is, else what the server thinks
    /// right (AUTH11-10); and what was asked for before (AUTH26-10).
    fn scopes(&self) -> Option<Scopes> {
        let listed = self.found.resource.as_ref();
        let listed = listed.and_then(|resource| resource.scopes_supported.as_ref());
        let listed = listed.map(|scopes| scopes.iter().map(String::as_str).collect());
        let wanted = self.challenges.scopes().or(listed).unwrap_or_default();
        let mut wanted = wanted.union(&self.plan.scopes);
        if wanted.is_empty() {
            return None;
        }
        // AUTH26-14: only where it is known.
        let offers = self.found.server.scopes_supported.as_deref();
        let is_for_user = matches!(self.plan.grant, Grant::User(_));
        if is_for_user && crate::metadata::lists(offers, OFFLINE) {
            wanted.insert(OFFLINE);
        }
        Some(wanted)
    }

    fn send(&self, request: Request<Bytes>) -> Step {
        Step::Send {
            request,
            reach: Some(self.plan.reach),
        }
    }

    /// An address that may be visited. In a network of one's own, a server that is spoken to in
    /// plain text anyway may also have its metadata so.
    fn checked(&self, what: &'static str, address: &str) -> Result<Url, OAuthError> {
        let checked = self.guard.check(address);
        if checked == Err(AddressError::Plain)
            && self.plan.reach >= Reach::Private
            && let Ok(url) = Url::parse(address)
            && url.origin() == self.server.origin()
        {
            return Ok(url);
        }
        checked.map_err(|reason| OAuthError::Address { what, reason })
    }

    /// Whether the authorization server is the one that was configured. That it is no other was
    /// checked with the client.
    fn is_configured(&self) -> bool {
        let client = self.plan.client.as_ref();
        client.is_some_and(|client| client.issuer.is_some())
    }

    fn unsupported(&self, what: &'static str) -> OAuthError {
        let issuer = self.found.server.issuer.clone();
        OAuthError::Unsupported { issuer, what }
    }
}
