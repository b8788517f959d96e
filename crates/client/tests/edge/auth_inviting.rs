//! Sign-in through a URL elicitation, which the caller's own client shows.

use std::sync::Arc;

use plexus_mcp_client::auth::{AuthError, OAuth, OAuthOptions, UserAgent, Visit};
use plexus_mcp_client::{ServerState, Upstream};
use plexus_mcp_core::{Ask, Boxed, Fault, Outcome};
use plexus_testkit::authorization_server::{Behaviour, TokenRequirements};
use plexus_testkit::within;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::auth::answering_calls;
use crate::auth_fixture::{BACK, Protected, led_to};
use crate::support::{Caller, asked, raw, refused, status, value};

/// The redirect target of the sign-in page, controlled by the test.
#[derive(Debug, Clone, Default)]
struct ControlledRedirect {
    back: watch::Sender<Option<String>>,
}

impl ControlledRedirect {
    /// The user visits the page, and agrees.
    async fn visit(&self, page: &str) {
        self.back.send_replace(Some(led_to(page).await));
    }

    /// Waits until no sign-in is pending.
    async fn is_left(&self) {
        within("the sign-in to end", self.back.closed()).await;
    }
}

impl UserAgent for ControlledRedirect {
    fn begin(&self) -> Boxed<Result<Box<dyn Visit>, AuthError>> {
        let awaited = AwaitedRedirect(self.back.subscribe());
        Box::pin(async { Ok(Box::new(awaited) as Box<dyn Visit>) })
    }
}

struct AwaitedRedirect(watch::Receiver<Option<String>>);

impl Visit for AwaitedRedirect {
    fn redirect_uri(&self) -> &str {
        BACK
    }

    fn show(mut self: Box<Self>, url: String) -> Boxed<Result<String, AuthError>> {
        Box::pin(async move {
            let state = url.split('&').find(|field| field.starts_with("state="));
            let state = state.unwrap().to_owned();
            let is_mine = |back: &Option<String>| back.as_ref().is_some_and(|q| q.contains(&state));
            let back = self.0.wait_for(is_mine).await;
            Ok(back.unwrap().clone().unwrap())
        })
    }
}

struct World {
    protected: Protected,
    redirect: ControlledRedirect,
    upstream: Upstream,
}

impl World {
    /// A server that requires a sign-in, after a first attempt that was refused.
    async fn start() -> Self {
        Self::with(|_options| {}).await
    }

    async fn with(change: impl Fn(&mut OAuthOptions)) -> Self {
        let behaviour = Behaviour::default();
        let protected =
            Protected::answering(behaviour, TokenRequirements::default(), answering_calls()).await;
        let redirect = ControlledRedirect::default();
        let mut options = protected.options();
        options.server_name = "example".to_owned();
        options.sign_in_hint = "sign in with: plexus auth login example".to_owned();
        options.invitation_agent = Some(Arc::new(redirect.clone()));
        change(&mut options);
        let (upstream, _error) = refused(protected.definition(&OAuth::new(options))).await;
        Self {
            protected,
            redirect,
            upstream,
        }
    }

    fn call(&self, caller: &Caller) -> (Boxed<Outcome>, plexus_mcp_core::EventReceiver) {
        let params = json!({"name": "work", "arguments": {}});
        caller.call(&self.upstream, "tools/call", &params)
    }

    /// The error text of a call that asks nothing.
    async fn refusal(&self, caller: &Caller) -> String {
        let (outcome, mut events) = self.call(caller);
        let outcome = within("the refusal", outcome).await;
        assert!(events.try_recv().is_none(), "the call must ask nothing");
        match outcome {
            Err(Fault::Internal(text)) => text,
            other => panic!("{other:?}"),
        }
    }
}

fn can_visit() -> Caller {
    Caller::able(json!({"elicitation": {"url": {}}}))
}

/// The URL of a question.
fn page(ask: &Ask) -> String {
    let params = value(ask.question.params().unwrap());
    assert_eq!(params["mode"], "url");
    assert!(params["message"].as_str().unwrap().contains("example"));
    params["url"].as_str().unwrap().to_owned()
}

fn answer(ask: Ask, action: &str) {
    ask.answer(Ok(raw(&json!({ "action": action }))));
}

async fn text(outcome: Boxed<Outcome>) -> Value {
    let outcome = within("the call", outcome).await;
    value(&outcome.unwrap_or_else(|fault| panic!("{fault}")))
}

/// S004-74, ELIC-07, ELIC-11, ELIC-14: a call asks the user to sign in, and continues after that.
/// The client sees only the URL of the page, and no token.
#[tokio::test]
async fn a_call_offers_the_page_and_goes_on() {
    let world = World::start().await;
    assert_eq!(status(&world.upstream).state, ServerState::NeedsAuth);
    let (mut outcome, mut events) = world.call(&can_visit());
    let ask = asked(&mut outcome, &mut events).await;
    let page = page(&ask);
    assert!(page.starts_with(world.protected.issuer.issuer()), "{page}");
    answer(ask, "accept");
    world.redirect.visit(&page).await;
    assert_eq!(text(outcome).await["content"], json!([]));
    assert_eq!(status(&world.upstream).state, ServerState::Connected);
    assert_eq!(world.protected.issuer.counts().sign_ins, 1);
    // The token is used for later calls of every caller.
    let (outcome, _events) = world.call(&Caller::default());
    text(outcome).await;
}

/// ELIC-03, ELIC-12: a caller without the capability, or of another principal, is not asked. Its
/// error has the sign-in hint.
#[tokio::test]
async fn the_sign_in_page_needs_the_capability_and_the_same_principal() {
    let world = World::start().await;
    let by_form = Caller::able(json!({"elicitation": {"form": {}}}));
    let other_principal = Caller {
        principal: Some("alice".to_owned()),
        ..can_visit()
    };
    for caller in [Caller::default(), by_form, other_principal] {
        let told = world.refusal(&caller).await;
        assert!(told.contains("plexus auth login example"), "{told}");
    }
    assert_eq!(world.protected.issuer.counts().registrations, 0);
}

/// A page for the tokens of one principal is not shown to the anonymous caller either.
#[tokio::test]
async fn a_sign_in_page_is_shown_to_its_principal_only() {
    let world = World::with(|options| {
        options.principal = plexus_mcp_core::Principal::new("alice");
    })
    .await;
    world.refusal(&can_visit()).await;
    let other_principal = Caller {
        principal: Some("alice".to_owned()),
        ..can_visit()
    };
    let (mut outcome, mut events) = world.call(&other_principal);
    page(&asked(&mut outcome, &mut events).await);
}

/// ELIC-19: declining fails all calls that wait for this page, withdraws their questions, and ends
/// the sign-in.
#[tokio::test]
async fn a_page_that_is_declined_is_withdrawn() {
    let world = World::start().await;
    let (mut first, mut first_events) = world.call(&can_visit());
    let (mut second, mut second_events) = world.call(&can_visit());
    let ask = asked(&mut first, &mut first_events).await;
    let other = asked(&mut second, &mut second_events).await;
    assert_eq!(page(&ask), page(&other));
    answer(ask, "decline");
    for outcome in [first, second] {
        let told = text(outcome).await;
        assert_eq!(told["isError"], true);
        assert!(
            told.to_string().contains("did not want to sign in"),
            "{told}"
        );
    }
    assert!(!other.is_wanted());
    world.redirect.is_left().await;
    assert_eq!(status(&world.upstream).state, ServerState::NeedsAuth);
}

/// One sign-in lets all waiting calls continue, whether their question was answered or not.
#[tokio::test]
async fn one_sign_in_continues_all_waiting_calls() {
    let world = World::start().await;
    let (mut first, mut first_events) = world.call(&can_visit());
    let (mut second, mut second_events) = world.call(&can_visit());
    let ask = asked(&mut first, &mut first_events).await;
    let other = asked(&mut second, &mut second_events).await;
    let page = page(&ask);
    answer(ask, "accept");
    world.redirect.visit(&page).await;
    text(first).await;
    text(second).await;
    assert!(!other.is_wanted());
    let counts = world.protected.issuer.counts();
    assert_eq!((counts.registrations, counts.sign_ins), (1, 1));
}

/// The sign-in continues if the call that started it is dropped; the next call uses its token.
#[tokio::test]
async fn a_sign_in_outlives_the_call_that_began_it() {
    let world = World::start().await;
    let (mut outcome, mut events) = world.call(&can_visit());
    let ask = asked(&mut outcome, &mut events).await;
    let page = page(&ask);
    drop((outcome, events, ask));
    world.redirect.visit(&page).await;
    let (outcome, _events) = world.call(&can_visit());
    text(outcome).await;
    assert_eq!(world.protected.issuer.counts().sign_ins, 1);
}

/// AUTH26-10: a call that lacks a scope leads to a second page.
#[tokio::test]
async fn a_call_that_needs_more_offers_the_page_again() {
    let demands = TokenRequirements {
        more_for_calls: true,
        ..TokenRequirements::default()
    };
    let behaviour = Behaviour::default();
    let protected = Protected::answering(behaviour, demands, answering_calls()).await;
    let redirect = ControlledRedirect::default();
    let mut options = protected.options();
    options.server_name = "example".to_owned();
    options.invitation_agent = Some(Arc::new(redirect.clone()));
    let (upstream, _error) = refused(protected.definition(&OAuth::new(options))).await;
    let params = json!({"name": "work", "arguments": {}});
    let (mut outcome, mut events) = can_visit().call(&upstream, "tools/call", &params);
    for _ in 0..2 {
        let ask = asked(&mut outcome, &mut events).await;
        let page = page(&ask);
        answer(ask, "accept");
        redirect.visit(&page).await;
    }
    text(outcome).await;
    assert_eq!(protected.issuer.counts().sign_ins, 2);
}
