//! Invitations: a call asks its caller, with a URL elicitation, to sign in on a page that the caller's
//! own client shows.
//!
//! The page is the authorization server's and redirects to Plexus, not to the client, so the token never
//! passes through the client (ELIC-14). Only the caller that the token will be stored for is asked
//! (ELIC-12). A page that was declined or has timed out cannot be used any more.

use std::sync::Arc;

use http::Uri;
use plexus_mcp_core::{AskError, Boxed, EventSender, Question};
use plexus_mcp_oauth::Challenges;
use plexus_mcp_protocol::messages::{ClientCapability, ElicitAction, ElicitParams, ElicitResult};
use plexus_mcp_wire::Raw;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::oauth::OAuth;
use super::options::{OAuthOptions, SignInMethod};
use super::{AuthError, UserAgent, Visit};

/// The progress of a sign-in.
#[derive(Debug, Clone)]
enum InvitationStage {
    Preparing,
    /// The sign-in page at this URL can be shown.
    Open(String),
    Over(Result<(), AuthError>),
}

/// A sign-in that a call began. Concurrent calls that need the same token show the same page.
#[derive(Debug, Clone)]
pub(super) struct Invitation {
    stage: watch::Receiver<InvitationStage>,
    withdrawn: CancellationToken,
}

impl Invitation {
    /// Whether the sign-in has succeeded or failed.
    pub(super) fn is_over(&self) -> bool {
        matches!(*self.stage.borrow(), InvitationStage::Over(_))
            || self.stage.has_changed().is_err()
    }

    /// Begins a sign-in in a task of its own. It continues when the call is cancelled, because the user
    /// may be on the page already.
    pub(super) fn begin(oauth: &OAuth, agent: &Arc<dyn UserAgent>, server_name: &str) -> Self {
        let (sender, stage) = watch::channel(InvitationStage::Preparing);
        let withdrawn = CancellationToken::new();
        let agent = InvitationAgent {
            agent: Arc::clone(agent),
            stage: sender.clone(),
            withdrawn: withdrawn.clone(),
            server_name: server_name.to_owned(),
        };
        let signing_in = oauth.clone();
        oauth.spawn(async move {
            let signed_in = async {
                let challenges = signing_in.challenge().await?;
                let challenges = challenges.unwrap_or_else(Challenges::default);
                signing_in
                    .sign_in_with_agent(Arc::new(agent), challenges)
                    .await
            };
            let outcome = signed_in.await.map(|_session| ());
            sender.send_replace(InvitationStage::Over(outcome));
        });
        Self { stage, withdrawn }
    }

    /// Asks the caller's client to show the page, and waits until the sign-in is done.
    pub(super) async fn ask(
        mut self,
        events: &EventSender,
        options: &OAuthOptions,
    ) -> Result<(), AuthError> {
        let url = {
            let is_ready = |stage: &InvitationStage| !matches!(stage, InvitationStage::Preparing);
            match self.stage.wait_for(is_ready).await.as_deref() {
                Ok(InvitationStage::Open(url)) => url.clone(),
                Ok(InvitationStage::Over(outcome)) => return outcome.clone(),
                Ok(InvitationStage::Preparing) | Err(_) => return Err(interrupted()),
            }
        };
        let question = question(options, &url)?;
        tokio::select! {
            // Another caller may complete the sign-in meanwhile; the question is withdrawn then.
            outcome = finished(self.stage.clone()) => return outcome,
            answer = events.ask(None, question) => self.handle_answer(answer, options)?,
        }
        finished(self.stage).await
    }

    /// Handles the answer to the elicitation. A user who declines ends the sign-in for all calls that
    /// share it.
    fn handle_answer(
        &self,
        answer: Result<Raw, AskError>,
        options: &OAuthOptions,
    ) -> Result<(), AuthError> {
        let is_accepted = match answer {
            Ok(answer) => {
                let answer = answer.decode::<ElicitResult>();
                answer.is_ok_and(|answer| answer.action == ElicitAction::Accept)
            }
            // The client went away; the user may still be on the page.
            Err(AskError::Gone) => return Err(interrupted()),
            Err(_) => false,
        };
        if is_accepted {
            return Ok(());
        }
        self.withdrawn.cancel();
        Err(AuthError::Declined(options.server_name.clone()))
    }
}

/// Whether the caller may be asked to sign in: the tokens are stored for it, and its client can show
/// a page.
pub(super) fn can_ask(options: &OAuthOptions, events: &EventSender) -> bool {
    let peer = events.peer();
    matches!(options.method, SignInMethod::Page { agent: None, .. })
        && peer.principal == options.principal
        && peer.supports(ClientCapability::ElicitationUrl)
}

/// Waits until the sign-in has succeeded or failed.
async fn finished(mut stage: watch::Receiver<InvitationStage>) -> Result<(), AuthError> {
    let is_over = |stage: &InvitationStage| matches!(stage, InvitationStage::Over(_));
    match stage.wait_for(is_over).await.as_deref() {
        Ok(InvitationStage::Over(outcome)) => outcome.clone(),
        _ => Err(interrupted()),
    }
}

/// The URL elicitation for the page at `url`.
fn question(options: &OAuthOptions, url: &str) -> Result<Question, AuthError> {
    let host = url.parse::<Uri>();
    let host = host.ok().and_then(|url| Some(url.authority()?.to_string()));
    let (server, host) = (&options.server_name, host.unwrap_or_default());
    let message = format!(
        "The server {server:?} wants you to sign in, on a page of {host}. The token stays with Plexus \
         on this machine; this client does not see it."
    );
    let params = Raw::encode(&ElicitParams::url(message, url));
    let params = params.map_err(|error| AuthError::Page(error.to_string()))?;
    Ok(Question::Elicit(params))
}

fn interrupted() -> AuthError {
    AuthError::Page("the sign-in was interrupted".to_owned())
}

/// The user agent of an invitation: calls show the page, and the inner agent receives the redirect.
#[derive(Debug, Clone)]
struct InvitationAgent {
    agent: Arc<dyn UserAgent>,
    stage: watch::Sender<InvitationStage>,
    withdrawn: CancellationToken,
    server_name: String,
}

impl UserAgent for InvitationAgent {
    fn begin(&self) -> Boxed<Result<Box<dyn Visit>, AuthError>> {
        let invitation = self.clone();
        Box::pin(async move {
            let visit = invitation.agent.begin().await?;
            Ok(Box::new(InvitationVisit { visit, invitation }) as Box<dyn Visit>)
        })
    }
}

struct InvitationVisit {
    visit: Box<dyn Visit>,
    invitation: InvitationAgent,
}

impl Visit for InvitationVisit {
    fn redirect_uri(&self) -> &str {
        self.visit.redirect_uri()
    }

    fn show(self: Box<Self>, url: String) -> Boxed<Result<String, AuthError>> {
        let Self { visit, invitation } = *self;
        Box::pin(async move {
            let opened = async {
                invitation
                    .stage
                    .send_replace(InvitationStage::Open(url.clone()));
                invitation.withdrawn.cancelled().await;
            };
            tokio::select! {
                biased;
                // Polled first: the redirect is listened for before any caller is shown the page.
                query = visit.show(url.clone()) => query,
                () = opened => Err(AuthError::Declined(invitation.server_name.clone())),
            }
        })
    }
}
