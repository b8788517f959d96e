//! The authorizer for MCP authorization (OAuth 2.1).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use plexus_mcp_core::{Boxed, EventSender, Principal};
use plexus_mcp_oauth::{
    Ambient as _, Challenges, Grant, OAuthError, Plan, Renewal, Scopes, Session, SignIn, UrlPolicy,
    UserGrant, revocation,
};
use plexus_mcp_protocol::Revision;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::flow_runner::{FlowRunner, System, reach_of};
use super::invitation::{self, Invitation};
use super::options::{OAuthOptions, SignInMethod};
use super::{AuthError, Authorizer, LockedTokens, Refusal, StoredTokens, UserAgent, masked};
use crate::lock::lock;

/// A request without effect, which a server that requires authorization refuses with a challenge.
const PING_REQUEST: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const DPOP_NONCE_HEADER: &str = "dpop-nonce";
/// How long an empty vault entry is not read again, unless the server requires authorization. Most
/// servers require none, and reading the vault takes longer than their requests.
const EMPTY_VAULT_RECHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How often a token is renewed for one request. Twice, because a short-lived token may expire again
/// meanwhile.
const MAX_RENEWALS_PER_REQUEST: u32 = 2;
/// How often one request may start a sign-in (AUTH26-18).
const MAX_SIGN_INS_PER_REQUEST: u32 = 3;

/// Obtains, stores and renews the tokens of one account at one server. Cheap to clone: clones share
/// their state.
#[derive(Debug, Clone)]
pub struct OAuth {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: OAuthOptions,
    runner: FlowRunner,
    /// Held while a token is obtained or renewed: one task at a time.
    renewing: AsyncMutex<()>,
    current: Mutex<Option<Session>>,
    /// When the vault was last found to have no token.
    found_empty: Mutex<Option<Instant>>,
    /// The DPoP nonce that the server last asked for.
    nonce: Mutex<Option<String>>,
    /// The sign-in that callers are invited to, if one is in progress.
    invitation: Mutex<Option<Invitation>>,
    tasks: TaskTracker,
}

impl OAuth {
    /// An authorizer that obtains its first token when the server requires one.
    pub fn new(options: OAuthOptions) -> Self {
        let inner = Inner {
            options,
            runner: FlowRunner::default(),
            renewing: AsyncMutex::default(),
            current: Mutex::default(),
            found_empty: Mutex::default(),
            nonce: Mutex::default(),
            invitation: Mutex::default(),
            tasks: TaskTracker::new(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Sends a request without a token, and returns the challenges of the refusal; `None` if the server
    /// requires no authorization.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn challenge(&self) -> Result<Option<Challenges>, AuthError> {
        let request = Request::post(&self.inner.options.server)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .body(Bytes::from_static(PING_REQUEST));
        let request = request.map_err(|error| AuthError::Http(error.to_string()))?;
        let response = self.inner.runner.send(request, None).await?;
        let is_refused = response.status() == StatusCode::UNAUTHORIZED;
        Ok(is_refused.then(|| Challenges::of(response.headers())))
    }

    /// Signs in again, even if there is a stored token.
    ///
    /// # Errors
    /// See [`AuthError`].
    pub async fn sign_in(&self, challenges: Challenges) -> Result<Session, AuthError> {
        self.sign_in_with(self.inner.options.method.clone(), challenges)
            .await
    }

    /// Like [`sign_in`](Self::sign_in), with `agent` to show the page.
    pub(super) async fn sign_in_with_agent(
        &self,
        agent: Arc<dyn UserAgent>,
        challenges: Challenges,
    ) -> Result<Session, AuthError> {
        let mut method = self.inner.options.method.clone();
        if let SignInMethod::Page { agent: own, .. } = &mut method {
            *own = Some(agent);
        }
        self.sign_in_with(method, challenges).await
    }

    async fn sign_in_with(
        &self,
        method: SignInMethod,
        challenges: Challenges,
    ) -> Result<Session, AuthError> {
        let inner = Arc::clone(&self.inner);
        self.run_uncancelled(async move {
            // The entry is not locked while the user signs in, because others need it meanwhile.
            let stored = inner
                .options
                .vault
                .read(&inner.options.storage_key())
                .await?;
            let signed_in = inner.sign_in(&method, challenges, stored.clone()).await;
            let declined = matches!(signed_in, Err(AuthError::Declined(_)));
            if declined || (signed_in.is_err() && stored.registrations.is_empty()) {
                return signed_in;
            }
            let mut locked = inner.lock_tokens().await?;
            if let Ok(session) = &signed_in {
                inner.store(session.clone(), &mut *locked).await?;
            } else {
                // The authorization server may have deleted the client: the next attempt registers a
                // new one.
                let mut tokens = locked.tokens().clone();
                tokens.registrations.clear();
                locked.replace(tokens).await?;
            }
            signed_in
        })
        .await
    }

    /// The stored session, renewed if its token is about to expire; `None` if there is no usable one.
    ///
    /// # Errors
    /// See [`AuthError`].
    pub async fn session(&self) -> Result<Option<Session>, AuthError> {
        let session = self.current_session().await?;
        let now = System.now();
        let has_expired = |session: &Session| session.expires_at.is_some_and(|end| end <= now);
        Ok(session.filter(|session| session.refresh_token.is_some() || !has_expired(session)))
    }

    /// The stored session, renewed if its token is about to expire and can be renewed. The server may
    /// still reject the token.
    async fn current_session(&self) -> Result<Option<Session>, AuthError> {
        let known = lock(&self.inner.current).clone();
        if let Some(session) = known
            && !should_renew(&session)
        {
            return Ok(Some(session));
        }
        let inner = Arc::clone(&self.inner);
        self.run_uncancelled(async move { inner.current_session().await })
            .await
    }

    /// Whether there is no token, and the vault was found to have none a short time ago.
    fn was_empty_lately(&self) -> bool {
        let found_empty = *lock(&self.inner.found_empty);
        found_empty.is_some_and(|since| since.elapsed() < EMPTY_VAULT_RECHECK_INTERVAL)
            && lock(&self.inner.current).is_none()
    }

    /// Deletes the stored session and client registrations, and revokes the token at the authorization
    /// server. Returns whether there was a session.
    ///
    /// # Errors
    /// See [`AuthError`]. A failed revocation is logged, and is no error.
    pub async fn sign_out(&self) -> Result<bool, AuthError> {
        let inner = Arc::clone(&self.inner);
        self.run_uncancelled(async move {
            let _renewing = inner.renewing.lock().await;
            let mut locked = inner.lock_tokens().await?;
            let session = locked.tokens().session.clone();
            locked.replace(StoredTokens::default()).await?;
            *lock(&inner.current) = None;
            let Some(session) = session else {
                return Ok(false);
            };
            let reach = reach_of(&inner.options.server).await;
            if let Ok(Some(request)) = revocation(&session, UrlPolicy::new(reach), &System)
                && let Err(error) = inner.runner.send(request, Some(reach)).await
            {
                tracing::debug!(%error, "a token could not be revoked");
            }
            Ok(true)
        })
        .await
    }

    /// Runs `work` in a task of its own.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.inner.tasks.spawn(work);
    }

    /// The sign-in that callers are invited to; a new one if none is in progress.
    fn invitation(&self, agent: &Arc<dyn UserAgent>) -> Invitation {
        let mut current = lock(&self.inner.invitation);
        match &*current {
            Some(invitation) if !invitation.is_over() => invitation.clone(),
            _ => current
                .insert(Invitation::begin(
                    self,
                    agent,
                    &self.inner.options.server_name,
                ))
                .clone(),
        }
    }

    /// Runs `work` to its end even if the caller is cancelled: a token that was rotated and not
    /// stored would be lost for all callers.
    async fn run_uncancelled<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, AuthError>> + Send + 'static,
    ) -> Result<T, AuthError> {
        let task = self.inner.tasks.spawn(work);
        task.await.unwrap_or_else(|error| {
            let text = format!("obtaining a token was interrupted: {error}");
            Err(AuthError::Http(text))
        })
    }
}

impl Inner {
    async fn lock_tokens(&self) -> Result<Box<dyn LockedTokens>, AuthError> {
        Ok(self.options.vault.lock(&self.options.storage_key()).await?)
    }

    async fn current_session(&self) -> Result<Option<Session>, AuthError> {
        let mut known = lock(&self.current).clone();
        if known.is_none() {
            let stored = self.options.vault.read(&self.options.storage_key()).await?;
            known = stored.session;
            lock(&self.current).clone_from(&known);
            *lock(&self.found_empty) = known.is_none().then(Instant::now);
        }
        if !known.as_ref().is_some_and(should_renew) {
            return Ok(known);
        }
        let _renewing = self.renewing.lock().await;
        let mut locked = self.lock_tokens().await?;
        // Another task or another process may have renewed the token meanwhile.
        let stored = locked.tokens().session.clone();
        match stored {
            Some(session) if should_renew(&session) => self.renew(session, &mut *locked).await,
            stored => {
                lock(&self.current).clone_from(&stored);
                Ok(stored)
            }
        }
    }

    /// Renews `session` with its refresh token, and stores the new one; `None` if only a new sign-in
    /// helps.
    async fn renew(
        &self,
        session: Session,
        locked: &mut dyn LockedTokens,
    ) -> Result<Option<Session>, AuthError> {
        let policy = UrlPolicy::new(reach_of(&self.options.server).await);
        let Some(renewal) = Renewal::new(&session, policy)? else {
            return Ok(None);
        };
        match self.runner.renew(renewal).await {
            Ok(session) => {
                self.store(session.clone(), locked).await?;
                Ok(Some(session))
            }
            Err(AuthError::Rules(error)) if error.is_invalid_grant() => {
                tracing::info!(%error, "a token cannot be renewed any more");
                let mut tokens = locked.tokens().clone();
                tokens.session = None;
                if is_unknown_client(&error) {
                    let issuer = &session.registration.issuer;
                    tokens.registrations.retain(|one| one.issuer != *issuer);
                }
                locked.replace(tokens).await?;
                *lock(&self.current) = None;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    async fn store(
        &self,
        session: Session,
        locked: &mut dyn LockedTokens,
    ) -> Result<(), AuthError> {
        let mut tokens = locked.tokens().clone();
        tokens.server = self.options.server.to_string();
        tokens.name.clone_from(&self.options.account);
        let principal = &self.options.principal;
        let is_named = *principal != Principal::anonymous();
        tokens.principal = is_named.then(|| principal.as_str().to_owned());
        tokens.set_session(session.clone());
        // The new session is used even if it cannot be stored: the old one is invalid already.
        *lock(&self.current) = Some(session);
        Ok(locked.replace(tokens).await?)
    }

    async fn sign_in(
        &self,
        method: &SignInMethod,
        challenges: Challenges,
        stored: StoredTokens,
    ) -> Result<Session, AuthError> {
        let options = &self.options;
        let (grant, visit) = match method {
            SignInMethod::Grant(grant) => (grant.clone(), None),
            SignInMethod::Provider(provider) => (provider.grant().await?, None),
            SignInMethod::Page {
                agent: Some(agent),
                client_name,
                metadata_url,
            } => {
                let visit = agent.begin().await?;
                let user = UserGrant {
                    redirect_uri: visit.redirect_uri().to_owned(),
                    client_name: client_name.clone(),
                    metadata_url: metadata_url.clone(),
                };
                (Grant::User(user), Some(visit))
            }
            SignInMethod::Page { agent: None, .. } => {
                return Err(AuthError::SignIn(options.sign_in_hint.clone()));
            }
        };
        let reach = reach_of(&options.server).await;
        let mut plan = Plan::new(options.server.to_string(), reach, grant);
        plan.client.clone_from(&options.client);
        plan.registrations = stored.registrations;
        plan.revision = Some(Revision::NEWEST_HANDSHAKE.as_str().to_owned());
        if let Some(session) = stored.session {
            plan.scopes = session.requested;
            plan.key = session.key;
        }
        plan.scopes = plan.scopes.union(&stored.wanted);
        let flow = SignIn::new(plan, challenges)?;
        self.runner.sign_in(flow, visit).await
    }

    async fn handle_refusal(&self, refusal: Refusal) -> Result<bool, AuthError> {
        let challenges = Challenges::of(&refusal.headers);
        let is_about_scopes = challenges.error() == Some("insufficient_scope");
        if refusal.status == StatusCode::FORBIDDEN && !is_about_scopes {
            return Ok(false);
        }
        // `inspect_response` has stored the nonce already.
        if challenges.error() == Some("use_dpop_nonce") && lock(&self.nonce).is_some() {
            return Ok(true);
        }
        let _renewing = self.renewing.lock().await;
        if matches!(self.options.method, SignInMethod::Page { agent: None, .. }) {
            let stored = self.options.vault.read(&self.options.storage_key()).await?;
            if stored.session.is_none() {
                *lock(&self.current) = None;
                return Err(AuthError::SignIn(self.options.sign_in_hint.clone()));
            }
        }
        let mut locked = self.lock_tokens().await?;
        let stored = locked.tokens().session.clone();
        if let Some(session) = &stored
            && !was_sent(session, refusal.sent.as_ref())
        {
            // Another task obtained a new token meanwhile.
            lock(&self.current).clone_from(&stored);
            return Ok(true);
        }
        if is_about_scopes {
            let wanted = challenges.scopes().unwrap_or_default();
            let requested = stored.map_or_else(Scopes::default, |session| session.requested);
            // Scopes that were requested and not granted are not requested again (AUTH11-12).
            if requested.covers(&wanted) {
                return Err(AuthError::StillRefused(wanted.to_string()));
            }
            if matches!(self.options.method, SignInMethod::Page { agent: None, .. }) {
                let mut tokens = locked.tokens().clone();
                tokens.wanted = tokens.wanted.union(&wanted);
                locked.replace(tokens).await?;
            }
        } else if let Some(session) = stored
            // A token that was just renewed for this request and is refused is not renewed again.
            && refusal.attempt < MAX_RENEWALS_PER_REQUEST
            && self.renew(session, &mut *locked).await?.is_some()
        {
            return Ok(true);
        }
        if refusal.attempt >= MAX_SIGN_INS_PER_REQUEST {
            let wanted = challenges.scopes().unwrap_or_default();
            return Err(AuthError::StillRefused(wanted.to_string()));
        }
        let stored = locked.tokens().clone();
        let session = self
            .sign_in(&self.options.method, challenges, stored)
            .await?;
        self.store(session, &mut *locked).await?;
        Ok(true)
    }
}

impl Authorizer for OAuth {
    fn headers(&self, method: &Method, url: &Uri) -> Boxed<Result<HeaderMap, AuthError>> {
        if self.was_empty_lately() {
            return Box::pin(std::future::ready(Ok(HeaderMap::new())));
        }
        let (oauth, method, url) = (self.clone(), method.clone(), url.to_string());
        Box::pin(async move {
            let Some(session) = oauth.current_session().await? else {
                return Ok(HeaderMap::new());
            };
            let nonce = lock(&oauth.inner.nonce).clone();
            Ok(session.headers(method.as_str(), &url, nonce.as_deref(), &System)?)
        })
    }

    fn handle_refusal(&self, refusal: Refusal) -> Boxed<Result<bool, AuthError>> {
        let oauth = self.clone();
        Box::pin(async move {
            let inner = Arc::clone(&oauth.inner);
            oauth
                .run_uncancelled(async move { inner.handle_refusal(refusal).await })
                .await
        })
    }

    fn inspect_response(&self, headers: &HeaderMap) {
        if let Some(Ok(nonce)) = headers.get(DPOP_NONCE_HEADER).map(HeaderValue::to_str) {
            *lock(&self.inner.nonce) = Some(nonce.to_owned());
        }
    }

    fn mask_credentials(&self, text: String) -> String {
        match &*lock(&self.inner.current) {
            Some(session) => masked(text, session.access_token.expose()),
            None => text,
        }
    }

    fn can_invite(&self) -> bool {
        self.inner.options.invitation_agent.is_some()
    }

    fn invite(&self, events: &EventSender) -> Boxed<Result<bool, AuthError>> {
        let (oauth, events) = (self.clone(), events.clone());
        Box::pin(async move {
            let options = &oauth.inner.options;
            let Some(agent) = &options.invitation_agent else {
                return Ok(false);
            };
            if !invitation::can_ask(options, &events) {
                return Ok(false);
            }
            oauth.invitation(agent).ask(&events, options).await?;
            Ok(true)
        })
    }
}

/// Whether a session should be renewed before it is used. A session without a refresh token is used
/// until the server refuses it.
fn should_renew(session: &Session) -> bool {
    session.refresh_token.is_some() && session.is_renewal_due(System.now())
}

/// Whether the refused request carried the token of `session`.
fn was_sent(session: &Session, sent: Option<&HeaderValue>) -> bool {
    let sent = sent.and_then(|value| value.to_str().ok());
    let token = sent.and_then(|value| value.split_once(' '));
    token.is_some_and(|(_, token)| token == session.access_token.expose())
}

fn is_unknown_client(error: &OAuthError) -> bool {
    matches!(error, OAuthError::Refused { code, .. } if code == "invalid_client")
}
