//! A sign-in on a page that the caller's own client shows, by way of an elicitation.
//!
//! The page is the authorization server's, and leads back to us, not to the client: what is got
//! there never passes through it (ELIC-14). It is shown only to whom the token will be kept for
//! (ELIC-12), and is worth nothing once it was declined or its time is over.

use std::sync::Arc;

use http::Uri;
use plexus_mcp::messages::{ClientCapability, ElicitAction, ElicitParams, ElicitResult};
use plexus_oauth::Challenges;
use plexus_service::{AskError, Boxed, EventSender, Question};
use plexus_wire::Raw;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::oauth::OAuth;
use super::options::{Means, OAuthOptions};
use super::{AuthError, UserAgent, Visit};

/// How far a sign-in got.
#[derive(Debug, Clone)]
enum Stage {
    Preparing,
    /// The user is to visit this page.
    Open(String),
    Over(Result<(), AuthError>),
}

/// A sign-in that was begun for some call, and is everybody's whom the token is for: whoever calls
/// meanwhile is shown the same page.
#[derive(Debug, Clone)]
pub(super) struct Invitation {
    stage: watch::Receiver<Stage>,
    withdrawn: CancellationToken,
}

impl Invitation {
    /// Whether nothing more will come of it.
    pub(super) fn is_over(&self) -> bool {
        matches!(*self.stage.borrow(), Stage::Over(_)) || self.stage.has_changed().is_err()
    }

    /// Begins a sign-in, which goes on whatever becomes of the call that it was begun for: the user
    /// may be typing already.
    pub(super) fn begin(oauth: &OAuth, landing: &Arc<dyn UserAgent>, called: &str) -> Self {
        let (sender, stage) = watch::channel(Stage::Preparing);
        let withdrawn = CancellationToken::new();
        let agent = Shown {
            landing: Arc::clone(landing),
            stage: sender.clone(),
            withdrawn: withdrawn.clone(),
            called: called.to_owned(),
        };
        let signing_in = oauth.clone();
        oauth.spawn(async move {
            let signed_in = async {
                let challenges = signing_in.challenge().await?;
                let challenges = challenges.unwrap_or_else(Challenges::default);
                signing_in.sign_in_on(Arc::new(agent), challenges).await
            };
            let outcome = signed_in.await.map(|_session| ());
            sender.send_replace(Stage::Over(outcome));
        });
        Self { stage, withdrawn }
    }

    /// Has the caller visit the page, and waits until somebody has.
    pub(super) async fn put(
        mut self,
        events: &EventSender,
        options: &OAuthOptions,
    ) -> Result<(), AuthError> {
        let url = {
            let is_ready = |stage: &Stage| !matches!(stage, Stage::Preparing);
            match self.stage.wait_for(is_ready).await.as_deref() {
                Ok(Stage::Open(url)) => url.clone(),
                Ok(Stage::Over(outcome)) => return outcome.clone(),
                Ok(Stage::Preparing) | Err(_) => return Err(broken_off()),
            }
        };
        let question = question(options, &url)?;
        tokio::select! {
            // Somebody else may have visited it meanwhile; the question is withdrawn then.
            outcome = over(self.stage.clone()) => return outcome,
            answer = events.ask(None, question) => self.answered(answer, options)?,
        }
        over(self.stage).await
    }

    /// A user who declines wants no other call to ask again now, nor the page to be of use.
    fn answered(
        &self,
        answer: Result<Raw, AskError>,
        options: &OAuthOptions,
    ) -> Result<(), AuthError> {
        let agrees = match answer {
            Ok(answer) => {
                let answer = answer.decode::<ElicitResult>();
                answer.is_ok_and(|answer| answer.action == ElicitAction::Accept)
            }
            // The client went away; the user may still be on the page.
            Err(AskError::Gone) => return Err(broken_off()),
            Err(_) => false,
        };
        if agrees {
            return Ok(());
        }
        self.withdrawn.cancel();
        Err(AuthError::Declined(options.called.clone()))
    }
}

/// Whether the caller may be shown a page: the one for whom tokens are kept here, if its client can
/// show it.
pub(super) fn is_for(options: &OAuthOptions, events: &EventSender) -> bool {
    let peer = events.peer();
    matches!(options.means, Means::Page { agent: None, .. })
        && peer.principal == options.principal
        && peer.supports(ClientCapability::ElicitationUrl)
}

async fn over(mut stage: watch::Receiver<Stage>) -> Result<(), AuthError> {
    let is_over = |stage: &Stage| matches!(stage, Stage::Over(_));
    match stage.wait_for(is_over).await.as_deref() {
        Ok(Stage::Over(outcome)) => outcome.clone(),
        _ => Err(broken_off()),
    }
}

fn question(options: &OAuthOptions, url: &str) -> Result<Question, AuthError> {
    let host = url.parse::<Uri>();
    let host = host.ok().and_then(|url| Some(url.authority()?.to_string()));
    let (called, host) = (&options.called, host.unwrap_or_default());
    let message = format!(
        "The server {called:?} wants you to sign in, on a page of {host}. What is got there stays with \
         Plexus on this machine; this client does not see it."
    );
    let params = Raw::encode(&ElicitParams::url(message, url));
    let params = params.map_err(|error| AuthError::Page(error.to_string()))?;
    Ok(Question::Elicit(params))
}

fn broken_off() -> AuthError {
    AuthError::Page("the sign-in was broken off".to_owned())
}

/// Lets calls show the page, and awaits the user where the landing does.
#[derive(Debug, Clone)]
struct Shown {
    landing: Arc<dyn UserAgent>,
    stage: watch::Sender<Stage>,
    withdrawn: CancellationToken,
    called: String,
}

impl UserAgent for Shown {
    fn begin(&self) -> Boxed<Result<Box<dyn Visit>, AuthError>> {
        let shown = self.clone();
        Box::pin(async move {
            let visit = shown.landing.begin().await?;
            Ok(Box::new(Page { visit, shown }) as Box<dyn Visit>)
        })
    }
}

struct Page {
    visit: Box<dyn Visit>,
    shown: Shown,
}

impl Visit for Page {
    fn redirect_uri(&self) -> &str {
        self.visit.redirect_uri()
    }

    fn show(self: Box<Self>, url: String) -> Boxed<Result<String, AuthError>> {
        let Self { visit, shown } = *self;
        Box::pin(async move {
            let opened = async {
                shown.stage.send_replace(Stage::Open(url.clone()));
                shown.withdrawn.cancelled().await;
            };
            tokio::select! {
                biased;
                // Who comes back is awaited before anybody is shown the page.
                query = visit.show(url.clone()) => query,
                () = opened => Err(AuthError::Declined(shown.called.clone())),
            }
        })
    }
}
