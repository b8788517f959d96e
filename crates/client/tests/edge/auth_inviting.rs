//! Callers whose own client shows them the page to sign in on.

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

/// Where the user comes back to, in the hands of a test.
#[derive(Debug, Clone, Default)]
struct Landing {
    back: watch::Sender<Option<String>>,
}

impl Landing {
    /// The user visits the page, and agrees.
    async fn visit(&self, page: &str) {
        self.back.send_replace(Some(led_to(page).await));
    }

    /// Waits until no sign-in is pending.
    async fn is_left(&self) {
        within("the landing to be left", self.back.closed()).await;
    }
}

impl UserAgent for Landing {
    fn begin(&self) -> Boxed<Result<Box<dyn Visit>, AuthError>> {
        let awaited = Awaited(self.back.subscribe());
        Box::pin(async { Ok(Box::new(awaited) as Box<dyn Visit>) })
    }
}

struct Awaited(watch::Receiver<Option<String>>);

impl Visit for Awaited {
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
    landing: Landing,
    upstream: Upstream,
}

impl World {
    /// A server that wants a user to sign in, and has said so.
    async fn start() -> Self {
        Self::with(|_options| {}).await
    }

    async fn with(change: impl Fn(&mut OAuthOptions)) -> Self {
        let behaviour = Behaviour::default();
        let protected =
            Protected::answering(behaviour, TokenRequirements::default(), answering_calls()).await;
        let landing = Landing::default();
        let mut options = protected.options();
        options.server_name = "example".to_owned();
        options.sign_in_hint = "sign in with: plexus auth login example".to_owned();
        options.invitation_agent = Some(Arc::new(landing.clone()));
        change(&mut options);
        let (upstream, _error) = refused(protected.definition(&OAuth::new(options))).await;
        Self {
            protected,
            landing,
            upstream,
        }
    }

    fn call(&self, caller: &Caller) -> (Boxed<Outcome>, plexus_mcp_core::EventReceiver) {
        let params = json!({"name": "work", "arguments": {}});
        caller.call(&self.upstream, "tools/call", &params)
    }

    /// What a caller is told that is asked nothing.
    async fn refusal(&self, caller: &Caller) -> String {
        let (outcome, mut events) = self.call(caller);
        let outcome = within("the refusal", outcome).await;
        assert!(events.try_recv().is_none(), "nothing is asked");
        match outcome {
            Err(Fault::Internal(text)) => text,
            other => panic!("{other:?}"),
        }
    }
}

fn can_visit() -> Caller {
    Caller::able(json!({"elicitation": {"url": {}}}))
}

/// The page of a question.
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

/// S004-74, ELIC-07, ELIC-11, ELIC-14: a call has the user sign in, goes on after that, and the client
/// learns nothing that is worth anything without us.
#[tokio::test]
async fn a_call_offers_the_page_and_goes_on() {
    let world = World::start().await;
    assert_eq!(status(&world.upstream).state, ServerState::NeedsAuth);
    let (mut outcome, mut events) = world.call(&can_visit());
    let ask = asked(&mut outcome, &mut events).await;
    let page = page(&ask);
    assert!(page.starts_with(world.protected.issuer.issuer()), "{page}");
    answer(ask, "accept");
    world.landing.visit(&page).await;
    assert_eq!(text(outcome).await["content"], json!([]));
    assert_eq!(status(&world.upstream).state, ServerState::Connected);
    assert_eq!(world.protected.issuer.counts().sign_ins, 1);
    // It is known from then on, for every caller.
    let (outcome, _events) = world.call(&Caller::default());
    text(outcome).await;
}

/// ELIC-03, ELIC-12: a caller without the capability, or for whom the token is not stored, is shown no
/// page, but told what to do.
#[tokio::test]
async fn nobody_else_is_offered_the_page() {
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

/// A page that is kept for one principal is not shown to the user of this machine either.
#[tokio::test]
async fn a_page_is_of_one_principal() {
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

/// ELIC-19: who declines is told so, and so is everybody who was being asked; the page is worth
/// nothing any more.
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
    world.landing.is_left().await;
    assert_eq!(status(&world.upstream).state, ServerState::NeedsAuth);
}

/// One visit lets all go on that were shown the page, whether they have answered or not.
#[tokio::test]
async fn one_visit_is_enough_for_all() {
    let world = World::start().await;
    let (mut first, mut first_events) = world.call(&can_visit());
    let (mut second, mut second_events) = world.call(&can_visit());
    let ask = asked(&mut first, &mut first_events).await;
    let other = asked(&mut second, &mut second_events).await;
    let page = page(&ask);
    answer(ask, "accept");
    world.landing.visit(&page).await;
    text(first).await;
    text(second).await;
    assert!(!other.is_wanted());
    let counts = world.protected.issuer.counts();
    assert_eq!((counts.registrations, counts.sign_ins), (1, 1));
}

/// A client that gives the call up does not take the user from the page; the next call goes on.
#[tokio::test]
async fn a_sign_in_outlives_the_call_that_began_it() {
    let world = World::start().await;
    let (mut outcome, mut events) = world.call(&can_visit());
    let ask = asked(&mut outcome, &mut events).await;
    let page = page(&ask);
    drop((outcome, events, ask));
    world.landing.visit(&page).await;
    let (outcome, _events) = world.call(&can_visit());
    text(outcome).await;
    assert_eq!(world.protected.issuer.counts().sign_ins, 1);
}

/// AUTH26-10: what a call lacks is asked for on the page.
#[tokio::test]
async fn a_call_that_needs_more_offers_the_page_again() {
    let demands = TokenRequirements {
        more_for_calls: true,
        ..TokenRequirements::default()
    };
    let behaviour = Behaviour::default();
    let protected = Protected::answering(behaviour, demands, answering_calls()).await;
    let landing = Landing::default();
    let mut options = protected.options();
    options.server_name = "example".to_owned();
    options.invitation_agent = Some(Arc::new(landing.clone()));
    let (upstream, _error) = refused(protected.definition(&OAuth::new(options))).await;
    let params = json!({"name": "work", "arguments": {}});
    let (mut outcome, mut events) = can_visit().call(&upstream, "tools/call", &params);
    for _ in 0..2 {
        let ask = asked(&mut outcome, &mut events).await;
        let page = page(&ask);
        answer(ask, "accept");
        landing.visit(&page).await;
    }
    text(outcome).await;
    assert_eq!(protected.issuer.counts().sign_ins, 2);
}
