//! Tokens by the rules of MCP authorization.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use plexus_mcp::Revision;
use plexus_oauth::{
    Ambient as _, Challenges, Grant, Guard, OAuthError, Plan, Renewal, Scopes, Session, SignIn,
    UserGrant, revocation,
};
use plexus_service::{Boxed, EventSender, Principal};
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::carry::{Carrier, System, reach_of};
use super::invitation::{self, Invitation};
use super::options::{Means, OAuthOptions};
use super::{AuthError, Authorizer, Drawer, Holding, Refusal, UserAgent, concealed};
use crate::lock::lock;

/// What harms nobody, and is answered only to those who may ask.
const PING: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const NONCE: &str = "dpop-nonce";
/// How soon after nothing was found to be kept it is looked for again, unless the server asks for it.
/// Most servers want no token, and a look takes longer than they do.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How often a token is renewed for one request. Twice, since it may end again meanwhile.
const MAX_RENEWALS: u32 = 2;
/// How often one request may have somebody sign in (AUTH26-18).
const MAX_SIGN_INS: u32 = 3;

/// Gets tokens, keeps them, and renews them, one at a time. Cheap to clone: all clones are one.
#[derive(Debug, Clone)]
pub struct OAuth {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: OAuthOptions,
    carrier: Carrier,
    /// One gets or renews a token at a time.
    turn: AsyncMutex<()>,
    current: Mutex<Option<Session>>,
    /// When nothing was found to be kept.
    found_nothing: Mutex<Option<Instant>>,
    /// What the server last wanted to see in a proof.
    nonce: Mutex<Option<String>>,
    /// The sign-in that callers are shown the page of, if there is one.
    invitation: Mutex<Option<Invitation>>,
    tasks: TaskTracker,
}

impl OAuth {
    /// Gets tokens as `options` say, when the first one is needed.
    pub fn new(options: OAuthOptions) -> Self {
        let inner = Inner {
            options,
            carrier: Carrier::default(),
            turn: AsyncMutex::default(),
            current: Mutex::default(),
            found_nothing: Mutex::default(),
            nonce: Mutex::default(),
            invitation: Mutex::default(),
            tasks: TaskTracker::new(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// What the server wants to see, if it wants anything.
    ///
    /// # Errors
    /// It cannot be reached.
    pub async fn challenge(&self) -> Result<Option<Challenges>, AuthError> {
        let asked = Request::post(&self.inner.options.server)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .body(Bytes::from_static(PING));
        let asked = asked.map_err(|error| AuthError::Http(error.to_string()))?;
        let answer = self.inner.carrier.send(asked, None).await?;
        let wants = answer.status() == StatusCode::UNAUTHORIZED;
        Ok(wants.then(|| Challenges::of(answer.headers())))
    }

    /// Signs in anew, whatever is kept.
    ///
    /// # Errors
    /// See [`AuthError`].
    pub async fn sign_in(&self, challenges: Challenges) -> Result<Session, AuthError> {
        self.sign_in_by(self.inner.options.means.clone(), challenges)
            .await
    }

    /// The same, with pages shown by `agent`.
    pub(super) async fn sign_in_on(
        &self,
        agent: Arc<dyn UserAgent>,
        challenges: Challenges,
    ) -> Result<Session, AuthError> {
        let mut means = self.inner.options.means.clone();
        if let Means::Page { agent: own, .. } = &mut means {
            *own = Some(agent);
        }
        self.sign_in_by(means, challenges).await
    }

    async fn sign_in_by(&self, means: Means, challenges: Challenges) -> Result<Session, AuthError> {
        let inner = Arc::clone(&self.inner);
        self.to_the_end(async move {
            // A user takes their time, and others need the drawer meanwhile.
            let kept = inner.options.vault.read(&inner.options.drawer()).await?;
            let signed_in = inner.sign_in(&means, challenges, kept.clone()).await;
            let declined = matches!(signed_in, Err(AuthError::Declined(_)));
            if declined || (signed_in.is_err() && kept.registrations.is_empty()) {
                return signed_in;
            }
            let mut drawer = inner.open().await?;
            if let Ok(session) = &signed_in {
                inner.keep(session.clone(), &mut *drawer).await?;
            } else {
                // Perhaps the client was forgotten there, so that the next attempt registers anew.
                let mut holding = drawer.holding().clone();
                holding.registrations.clear();
                drawer.put(holding).await?;
            }
            signed_in
        })
        .await
    }

    /// The session that is kept, renewed if its token is used up; none if there is none that can be
    /// used.
    ///
    /// # Errors
    /// See [`AuthError`].
    pub async fn session(&self) -> Result<Option<Session>, AuthError> {
        let session = self.newest().await?;
        let now = System.now();
        let is_over = |session: &Session| session.expires_at.is_some_and(|end| end <= now);
        Ok(session.filter(|session| session.refresh_token.is_some() || !is_over(session)))
    }

    /// The session that is kept, renewed if its token is used up and that is possible. Whether it is
    /// good for anything, the server says.
    async fn newest(&self) -> Result<Option<Session>, AuthError> {
        let known = lock(&self.inner.current).clone();
        if let Some(session) = known
            && !is_to_be_renewed(&session)
        {
            return Ok(Some(session));
        }
        let inner = Arc::clone(&self.inner);
        self.to_the_end(async move { inner.newest().await }).await
    }

    /// Whether nothing is kept, as far as was seen lately.
    fn has_nothing(&self) -> bool {
        let found_nothing = *lock(&self.inner.found_nothing);
        found_nothing.is_some_and(|since| since.elapsed() < LOOK_AGAIN)
            && lock(&self.inner.current).is_none()
    }

    /// Gives the session back, and forgets it, and what we were registered as.
    ///
    /// # Errors
    /// See [`AuthError`]. That the authorization server could not be told is none.
    pub async fn sign_out(&self) -> Result<bool, AuthError> {
        let inner = Arc::clone(&self.inner);
        self.to_the_end(async move {
            let _turn = inner.turn.lock().await;
            let mut drawer = inner.open().await?;
            let session = drawer.holding().session.clone();
            drawer.put(Holding::default()).await?;
            *lock(&inner.current) = None;
            let Some(session) = session else {
                return Ok(false);
            };
            let reach = reach_of(&inner.options.server).await;
            if let Ok(Some(request)) = revocation(&session, Guard::new(reach), &System)
                && let Err(error) = inner.carrier.send(request, Some(reach)).await
            {
                tracing::debug!(%error, "a token could not be given back");
            }
            Ok(true)
        })
        .await
    }

    /// Runs `work`, whoever waits for it.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.inner.tasks.spawn(work);
    }

    /// The sign-in that callers are shown the page of; a new one if there is none.
    fn invitation(&self, landing: &Arc<dyn UserAgent>) -> Invitation {
        let mut current = lock(&self.inner.invitation);
        match &*current {
            Some(invitation) if !invitation.is_over() => invitation.clone(),
            _ => current
                .insert(Invitation::begin(self, landing, &self.inner.options.called))
                .clone(),
        }
    }

    /// Runs `work` to its end even if nobody waits for it any more: a token that was rotated and
    /// not kept would be lost for all.
    async fn to_the_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, AuthError>> + Send + 'static,
    ) -> Result<T, AuthError> {
        let task = self.inner.tasks.spawn(work);
        task.await.unwrap_or_else(|error| {
            let text = format!("getting a token was broken off: {error}");
            Err(AuthError::Http(text))
        })
    }
}

impl Inner {
    async fn open(&self) -> Result<Box<dyn Drawer>, AuthError> {
        Ok(self.options.vault.open(&self.options.drawer()).await?)
    }

    async fn newest(&self) -> Result<Option<Session>, AuthError> {
        let mut known = lock(&self.current).clone();
        if known.is_none() {
            let kept = self.options.vault.read(&self.options.drawer()).await?;
            known = kept.session;
            lock(&self.current).clone_from(&known);
            *lock(&self.found_nothing) = known.is_none().then(Instant::now);
        }
        if !known.as_ref().is_some_and(is_to_be_renewed) {
            return Ok(known);
        }
        let _turn = self.turn.lock().await;
        let mut drawer = self.open().await?;
        // Another session or another process may have been faster.
        let kept = drawer.holding().session.clone();
        match kept {
            Some(session) if is_to_be_renewed(&session) => {
                self.renewed(session, &mut *drawer).await
            }
            kept => {
                lock(&self.current).clone_from(&kept);
                Ok(kept)
            }
        }
    }

    /// The session that comes after `session`; none if only a new sign-in helps.
    async fn renewed(
        &self,
        session: Session,
        drawer: &mut dyn Drawer,
    ) -> Result<Option<Session>, AuthError> {
        let guard = Guard::new(reach_of(&self.options.server).await);
        let Some(renewal) = Renewal::new(&session, guard)? else {
            return Ok(None);
        };
        match self.carrier.renew(renewal).await {
            Ok(session) => {
                self.keep(session.clone(), drawer).await?;
                Ok(Some(session))
            }
            Err(AuthError::Rules(error)) if error.is_invalid_grant() => {
                tracing::info!(%error, "a token cannot be renewed any more");
                let mut holding = drawer.holding().clone();
                holding.session = None;
                if is_unknown_client(&error) {
                    let issuer = &session.registration.issuer;
                    holding.registrations.retain(|one| one.issuer != *issuer);
                }
                drawer.put(holding).await?;
                *lock(&self.current) = None;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    async fn keep(&self, session: Session, drawer: &mut dyn Drawer) -> Result<(), AuthError> {
        let mut holding = drawer.holding().clone();
        holding.server = self.options.server.to_string();
        holding.name.clone_from(&self.options.account);
        let principal = &self.options.principal;
        let is_named = *principal != Principal::anonymous();
        holding.principal = is_named.then(|| principal.as_str().to_owned());
        holding.keep(session.clone());
        // It is used even if it cannot be kept: the old one is gone already.
        *lock(&self.current) = Some(session);
        Ok(drawer.put(holding).await?)
    }

    async fn sign_in(
        &self,
        means: &Means,
        challenges: Challenges,
        kept: Holding,
    ) -> Result<Session, AuthError> {
        let options = &self.options;
        let (grant, visit) = match means {
            Means::Alone(grant) => (grant.clone(), None),
            Means::Afresh(grants) => (grants.now().await?, None),
            Means::Page {
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
            Means::Page { agent: None, .. } => {
                return Err(AuthError::SignIn(options.advice.clone()));
            }
        };
        let reach = reach_of(&options.server).await;
        let mut plan = Plan::new(options.server.to_string(), reach, grant);
        plan.client.clone_from(&options.client);
        plan.registrations = kept.registrations;
        plan.revision = Some(Revision::NEWEST_HANDSHAKE.as_str().to_owned());
        if let Some(session) = kept.session {
            plan.scopes = session.requested;
            plan.key = session.key;
        }
        plan.scopes = plan.scopes.union(&kept.wanted);
        let flow = SignIn::new(plan, challenges)?;
        self.carrier.sign_in(flow, visit).await
    }

    async fn refused(&self, refusal: Refusal) -> Result<bool, AuthError> {
        let challenges = Challenges::of(&refusal.headers);
        let is_about_scopes = challenges.error() == Some("insufficient_scope");
        if refusal.status == StatusCode::FORBIDDEN && !is_about_scopes {
            return Ok(false);
        }
        // The nonce itself was noted already.
        if challenges.error() == Some("use_dpop_nonce") && lock(&self.nonce).is_some() {
            return Ok(true);
        }
        let _turn = self.turn.lock().await;
        if matches!(self.options.means, Means::Page { agent: None, .. }) {
            let kept = self.options.vault.read(&self.options.drawer()).await?;
            if kept.session.is_none() {
                *lock(&self.current) = None;
                return Err(AuthError::SignIn(self.options.advice.clone()));
            }
        }
        let mut drawer = self.open().await?;
        let kept = drawer.holding().session.clone();
        if let Some(session) = &kept
            && !was_sent(session, refusal.sent.as_ref())
        {
            // Somebody else got another one meanwhile.
            lock(&self.current).clone_from(&kept);
            return Ok(true);
        }
        if is_about_scopes {
            let wanted = challenges.scopes().unwrap_or_default();
            let asked = kept.map_or_else(Scopes::default, |session| session.requested);
            // What was asked for and is still wanting will not come by asking again (AUTH11-12).
            if asked.covers(&wanted) {
                return Err(AuthError::StillRefused(wanted.to_string()));
            }
            if matches!(self.options.means, Means::Page { agent: None, .. }) {
                let mut holding = drawer.holding().clone();
                holding.wanted = holding.wanted.union(&wanted);
                drawer.put(holding).await?;
            }
        } else if let Some(session) = kept
            // One that is refused although it was renewed for this request will not get better.
            && refusal.attempt < MAX_RENEWALS
            && self.renewed(session, &mut *drawer).await?.is_some()
        {
            return Ok(true);
        }
        if refusal.attempt >= MAX_SIGN_INS {
            let wanted = challenges.scopes().unwrap_or_default();
            return Err(AuthError::StillRefused(wanted.to_string()));
        }
        let kept = drawer.holding().clone();
        let session = self.sign_in(&self.options.means, challenges, kept).await?;
        self.keep(session, &mut *drawer).await?;
        Ok(true)
    }
}

impl Authorizer for OAuth {
    fn headers(&self, method: &Method, url: &Uri) -> Boxed<Result<HeaderMap, AuthError>> {
        if self.has_nothing() {
            return Box::pin(std::future::ready(Ok(HeaderMap::new())));
        }
        let (oauth, method, url) = (self.clone(), method.clone(), url.to_string());
        Box::pin(async move {
            let Some(session) = oauth.newest().await? else {
                return Ok(HeaderMap::new());
            };
            let nonce = lock(&oauth.inner.nonce).clone();
            Ok(session.headers(method.as_str(), &url, nonce.as_deref(), &System)?)
        })
    }

    fn refused(&self, refusal: Refusal) -> Boxed<Result<bool, AuthError>> {
        let oauth = self.clone();
        Box::pin(async move {
            let inner = Arc::clone(&oauth.inner);
            oauth
                .to_the_end(async move { inner.refused(refusal).await })
                .await
        })
    }

    fn noted(&self, headers: &HeaderMap) {
        if let Some(Ok(nonce)) = headers.get(NONCE).map(HeaderValue::to_str) {
            *lock(&self.inner.nonce) = Some(nonce.to_owned());
        }
    }

    fn conceal(&self, text: String) -> String {
        match &*lock(&self.inner.current) {
            Some(session) => concealed(text, session.access_token.expose()),
            None => text,
        }
    }

    fn invites(&self) -> bool {
        self.inner.options.landing.is_some()
    }

    fn invite(&self, events: &EventSender) -> Boxed<Result<bool, AuthError>> {
        let (oauth, events) = (self.clone(), events.clone());
        Box::pin(async move {
            let options = &oauth.inner.options;
            let Some(landing) = &options.landing else {
                return Ok(false);
            };
            if !invitation::is_for(options, &events) {
                return Ok(false);
            }
            oauth.invitation(landing).put(&events, options).await?;
            Ok(true)
        })
    }
}

/// Whether a session should get a new token before it is used. One that cannot is used to its end.
fn is_to_be_renewed(session: &Session) -> bool {
    session.refresh_token.is_some() && session.is_used_up(System.now())
}

/// Whether it was this session's token that was refused.
fn was_sent(session: &Session, sent: Option<&HeaderValue>) -> bool {
    let sent = sent.and_then(|value| value.to_str().ok());
    let token = sent.and_then(|value| value.split_once(' '));
    token.is_some_and(|(_, token)| token == session.access_token.expose())
}

fn is_unknown_client(error: &OAuthError) -> bool {
    matches!(error, OAuthError::Refused { code, .. } if code == "invalid_client")
}
