//! Signing in to servers, against a real authorization server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use http::{HeaderMap, Method, Uri};
use plexus_mcp_client::auth::{
    AuthError, Authorizer, MemoryVault, OAuth, Refusal, SignInMethod, Vault as _,
};
use plexus_mcp_client::{ServerState, Target, Upstream};
use plexus_mcp_core::Boxed;
use plexus_mcp_oauth::Grant;
use plexus_testkit::authorization_server::{Behaviour, TokenRequirements};
use plexus_testkit::server::{HttpServer, Reply};
use plexus_testkit::within;
use serde_json::json;

use crate::auth_fixture::{BACK, Protected, by_a_user, client};
use crate::support::{
    Caller, STATELESS, connected, minimal, refused, status, status_becomes, target, tools,
};

async fn work(upstream: &Upstream) -> Result<(), String> {
    let params = json!({"name": "work", "arguments": {}});
    let (outcome, _events) = Caller::default().call(upstream, "tools/call", &params);
    match within("the call", outcome).await {
        Ok(_) => Ok(()),
        Err(fault) => Err(fault.to_string()),
    }
}

pub(crate) fn answering_calls()
-> impl Fn(&plexus_testkit::server::Received) -> Reply + Send + Sync + 'static {
    |request| match request.mcp() {
        "tools/call" => {
            Reply::json(&request.result(&json!({"resultType": "complete", "content": []})))
        }
        _ => request.reply_from(&crate::auth_fixture::offer()),
    }
}

/// AUTH06-02, AUTH06-05, AUTH06-06, AUTH06-12, AUTH26-04, AUTH26-09
#[tokio::test]
async fn a_user_signs_in_once_and_is_known_from_then_on() {
    let protected = Protected::start(Behaviour::default(), TokenRequirements::default()).await;
    let oauth = by_a_user(protected.options());
    let upstream = connected(protected.definition(&oauth)).await;
    assert_eq!(tools(&upstream), ["work"]);
    connected(protected.definition(&oauth)).await;
    let counts = protected.issuer.counts();
    assert_eq!((counts.registrations, counts.sign_ins), (1, 1));
}

/// S004-20, S004-74: without a user agent, the status is `NeedsAuth`, and the error has the sign-in
/// hint.
#[tokio::test]
async fn without_a_user_the_server_needs_one() {
    let protected = Protected::start(Behaviour::default(), TokenRequirements::default()).await;
    let mut options = protected.options();
    options.sign_in_hint = "sign in with: plexus auth login example".to_owned();
    let (upstream, error) = refused(protected.definition(&OAuth::new(options))).await;
    assert_eq!(status(&upstream).state, ServerState::NeedsAuth);
    assert!(
        error.to_string().contains("plexus auth login example"),
        "{error}"
    );
    assert_eq!(protected.issuer.counts().registrations, 0);
}

/// Concurrent calls with an expired token share one renewal; an old refresh token is never reused.
#[tokio::test]
async fn a_token_that_ended_is_renewed_once_for_all() {
    let protected = Protected::answering(
        Behaviour::default(),
        TokenRequirements::default(),
        answering_calls(),
    )
    .await;
    let oauth = by_a_user(protected.options());
    let upstream = connected(protected.definition(&oauth)).await;
    for round in 1..=3 {
        protected.issuer.expire();
        let calls = (0..20).map(|_| work(&upstream));
        let done = futures_util::future::join_all(calls).await;
        assert!(done.iter().all(Result::is_ok), "{done:?}");
        let counts = protected.issuer.counts();
        assert_eq!((counts.renewals, counts.replays), (round, 0));
    }
    assert_eq!(protected.issuer.counts().sign_ins, 1);
}

/// A token that is about to expire is renewed before it is used.
#[tokio::test]
async fn a_token_is_renewed_before_its_end() {
    let behaviour = Behaviour {
        token_life: 0,
        ..Behaviour::default()
    };
    let protected = Protected::start(behaviour, TokenRequirements::default()).await;
    let oauth = by_a_user(protected.options());
    oauth
        .sign_in(plexus_mcp_oauth::Challenges::default())
        .await
        .unwrap();
    let url = protected.server.url().parse().unwrap();
    let headers = oauth.headers(&http::Method::POST, &url).await.unwrap();
    assert!(headers.contains_key("authorization"));
    assert_eq!(protected.issuer.counts().renewals, 1);
}

/// A cancelled call does not lose the rotated token.
#[tokio::test]
async fn a_token_renewal_completes_although_its_call_is_cancelled() {
    let protected = Protected::start(Behaviour::default(), TokenRequirements::default()).await;
    let mut options = protected.options();
    let vault = Arc::new(MemoryVault::default());
    options.vault = Arc::<MemoryVault>::clone(&vault);
    let account = options.storage_key();
    let oauth = by_a_user(options);
    let first = oauth
        .sign_in(plexus_mcp_oauth::Challenges::default())
        .await
        .unwrap();
    protected.issuer.expire();
    let upstream = Upstream::new(protected.definition(&oauth));
    {
        let mut connecting = std::pin::pin!(upstream.connect());
        // The connect is dropped as soon as the authorization server has received the renewal.
        while protected.issuer.counts().renewals == 0 {
            tokio::select! {
                biased;
                done = &mut connecting => { done.unwrap(); break; }
                () = tokio::task::yield_now() => {}
            }
        }
    }
    // The entry can be locked only after its current owner has stored the new token.
    let locked = vault.lock(&account).await.unwrap();
    let kept = locked.tokens().session.clone().unwrap();
    drop(locked);
    assert_ne!(kept.refresh_token, first.refresh_token);
    connected(protected.definition(&oauth)).await;
    let counts = protected.issuer.counts();
    assert_eq!(
        (counts.renewals, counts.replays, counts.sign_ins),
        (1, 0, 1)
    );
}

/// AUTH11-12, AUTH26-10: a call that needs more scopes leads to a second sign-in, which keeps the
/// scopes of the first.
#[tokio::test]
async fn a_call_that_needs_more_scopes_gets_them() {
    let demands = TokenRequirements {
        more_for_calls: true,
        ..TokenRequirements::default()
    };
    let protected = Protected::answering(Behaviour::default(), demands, answering_calls()).await;
    let oauth = by_a_user(protected.options());
    let upstream = connected(protected.definition(&oauth)).await;
    work(&upstream).await.unwrap();
    let session = oauth.session().await.unwrap().unwrap();
    assert_eq!(session.requested.to_string(), "basic more");
    assert_eq!(protected.issuer.counts().sign_ins, 2);
}

/// Without a user agent, the missing scopes are stored and requested at the next sign-in.
#[tokio::test]
async fn missing_scopes_are_requested_at_the_next_sign_in() {
    let demands = TokenRequirements {
        more_for_calls: true,
        ..TokenRequirements::default()
    };
    let protected = Protected::answering(Behaviour::default(), demands, answering_calls()).await;
    let mut options = protected.options();
    options.vault = Arc::new(MemoryVault::default());
    options.sign_in_hint = "sign in again".to_owned();
    let user = by_a_user(options.clone());
    let challenge = user.challenge().await.unwrap().unwrap();
    user.sign_in(challenge.clone()).await.unwrap();

    let upstream = connected(protected.definition(&OAuth::new(options))).await;
    let refused = work(&upstream).await.unwrap_err();
    assert!(refused.contains("sign in again"), "{refused}");
    user.sign_in(challenge).await.unwrap();
    // The upstream reads the new token from the vault, without a restart.
    work(&upstream).await.unwrap();
    assert_eq!(protected.issuer.counts().sign_ins, 2);
}

/// DPoP: tokens are bound to a key, and both servers require nonces.
#[tokio::test]
async fn tokens_are_bound_to_a_key_where_that_is_wanted() {
    let behaviour = Behaviour {
        wants_nonce: true,
        ..Behaviour::default()
    };
    let demands = TokenRequirements {
        dpop: true,
        ..TokenRequirements::default()
    };
    let protected = Protected::answering(behaviour, demands, answering_calls()).await;
    let oauth = by_a_user(protected.options());
    let upstream = connected(protected.definition(&oauth)).await;
    work(&upstream).await.unwrap();
    protected.issuer.expire();
    work(&upstream).await.unwrap();
    let session = oauth.session().await.unwrap().unwrap();
    assert_eq!(session.kind, plexus_mcp_oauth::TokenKind::DPoP);
    assert_eq!(protected.issuer.counts().renewals, 1);
}

/// CC-01: the client credentials grant needs no user.
#[tokio::test]
async fn a_client_signs_in_for_itself() {
    let behaviour = Behaviour {
        clients: vec![("robot".to_owned(), Some("s3cret".to_owned()))],
        registers: false,
        ..Behaviour::default()
    };
    let protected =
        Protected::answering(behaviour, TokenRequirements::default(), answering_calls()).await;
    let mut options = protected.options();
    options.client = Some(client("robot", Some("s3cret")));
    options.method = SignInMethod::Grant(Grant::ClientCredentials);
    let upstream = connected(protected.definition(&OAuth::new(options))).await;
    protected.issuer.expire();
    work(&upstream).await.unwrap();
    assert_eq!(protected.issuer.counts().sign_ins, 0);
}

/// The client credentials grant is repeated each time the token expires.
#[tokio::test]
async fn a_client_whose_token_ends_gets_another() {
    let behaviour = Behaviour {
        clients: vec![("robot".to_owned(), Some("s3cret".to_owned()))],
        token_life: 0,
        ..Behaviour::default()
    };
    let protected =
        Protected::answering(behaviour, TokenRequirements::default(), answering_calls()).await;
    let mut options = protected.options();
    options.client = Some(client("robot", Some("s3cret")));
    options.method = SignInMethod::Grant(Grant::ClientCredentials);
    let upstream = connected(protected.definition(&OAuth::new(options))).await;
    for _ in 0..3 {
        work(&upstream).await.unwrap();
        protected.issuer.expire();
    }
}

/// AUTH11-06, AUTH11-07: the client id is the URL of a document that the authorization server
/// reads.
#[tokio::test]
async fn the_client_id_is_the_url_of_a_metadata_document() {
    let behaviour = Behaviour {
        fetches_documents: true,
        ..Behaviour::default()
    };
    let documents = HttpServer::start(|request| {
        let url = format!("http://{}/mcp", request.header("host").unwrap_or_default());
        Reply::json(&json!({"client_id": url, "client_name": "Plexus", "redirect_uris": [BACK]}))
    })
    .await;
    let protected = Protected::start(behaviour, TokenRequirements::default()).await;
    let mut options = protected.options();
    options.method = SignInMethod::Page {
        agent: Some(Arc::new(crate::auth_fixture::Agreeable)),
        client_name: "Plexus".to_owned(),
        metadata_url: Some(documents.url()),
    };
    let oauth = OAuth::new(options);
    connected(protected.definition(&oauth)).await;
    let session = oauth.session().await.unwrap().unwrap();
    assert_eq!(session.registration.client_id, documents.url());
    assert_eq!(protected.issuer.counts().registrations, 0);
}

/// A refusal by the user leads to `NeedsAuth`, not to `Failed`.
#[tokio::test]
async fn a_refused_sign_in_leads_to_needs_auth() {
    let behaviour = Behaviour {
        agrees: false,
        ..Behaviour::default()
    };
    let protected = Protected::start(behaviour, TokenRequirements::default()).await;
    let oauth = by_a_user(protected.options());
    let (upstream, error) = refused(protected.definition(&oauth)).await;
    assert_eq!(status(&upstream).state, ServerState::NeedsAuth);
    assert!(error.to_string().contains("access_denied"), "{error}");
}

/// Signing out revokes the token.
#[tokio::test]
async fn signing_out_revokes_the_token() {
    let protected = Protected::start(Behaviour::default(), TokenRequirements::default()).await;
    let oauth = by_a_user(protected.options());
    connected(protected.definition(&oauth)).await;
    assert!(oauth.sign_out().await.unwrap());
    assert!(!oauth.sign_out().await.unwrap());
    assert_eq!(oauth.session().await.unwrap(), None);
    assert_eq!(protected.issuer.counts().revocations, 1);
}

/// Metadata of 10 MB is not read to its end.
#[tokio::test]
async fn endless_metadata_is_cut_short() {
    let server = HttpServer::start(|request| {
        if request.path.starts_with("/.well-known") {
            let long = "x".repeat(10 * 1024 * 1024);
            return Reply::json(&json!({"resource": long}));
        }
        Reply::status(401).with_header("www-authenticate", "Bearer")
    })
    .await;
    let options = plexus_mcp_client::auth::OAuthOptions::new(server.url().parse().unwrap());
    let oauth = by_a_user(options);
    let error = oauth.sign_in(plexus_mcp_oauth::Challenges::default()).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("longer than"), "{error}");
}

/// Fails as often as a test says, like an authorizer whose authorization server cannot be reached.
#[derive(Debug)]
struct Offline {
    failures: AtomicU32,
    fails_on_refusal: bool,
}

impl Offline {
    fn result<T>(&self, otherwise: T) -> Result<T, AuthError> {
        let less = |failures: u32| failures.checked_sub(1);
        let failed = self
            .failures
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
        match failed {
            Ok(_) => Err(AuthError::Http("no route to host".to_owned())),
            Err(_) => Ok(otherwise),
        }
    }
}

impl Authorizer for Offline {
    fn headers(&self, _: &Method, _: &Uri) -> Boxed<Result<HeaderMap, AuthError>> {
        let headers = HeaderMap::new();
        let result = if self.fails_on_refusal {
            Ok(headers)
        } else {
            self.result(headers)
        };
        Box::pin(std::future::ready(result))
    }

    fn handle_refusal(&self, _: Refusal) -> Boxed<Result<bool, AuthError>> {
        Box::pin(std::future::ready(self.result(true)))
    }

    fn inspect_response(&self, _: &HeaderMap) {}
}

/// A laptop starts offline with an expired token: the server is connected as soon as the
/// authorization server can be reached. Later, such a failure of a call leaves the connection alone.
#[tokio::test]
async fn an_unreachable_authorization_server_is_tried_again() {
    for fails_on_refusal in [false, true] {
        let authorizer = Arc::new(Offline {
            failures: AtomicU32::new(1),
            fails_on_refusal,
        });
        let refusing = Arc::clone(&authorizer);
        let answer = answering_calls();
        let server = HttpServer::start(move |request| {
            if fails_on_refusal && refusing.failures.load(Ordering::SeqCst) > 0 {
                return Reply::status(401);
            }
            answer(request)
        })
        .await;
        let mut target = target(&server.url());
        target.authorizer = Some(Arc::<Offline>::clone(&authorizer));
        let mut definition = minimal(Target::Http(target));
        definition.era = Some(STATELESS.era());
        let upstream = Upstream::new(definition);
        upstream.start();
        let failed = status_becomes(&upstream, ServerState::Failed).await;
        assert_eq!(failed.reason.as_deref(), Some("no route to host"));
        status_becomes(&upstream, ServerState::Connected).await;

        authorizer.failures.store(1, Ordering::SeqCst);
        let failure = work(&upstream).await.unwrap_err();
        assert!(failure.contains("no route to host"), "{failure}");
        assert_eq!(status(&upstream).state, ServerState::Connected);
        work(&upstream).await.unwrap();
    }
}
