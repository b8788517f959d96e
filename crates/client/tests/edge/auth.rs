//! Signing in to servers, against a real authorization server.

use std::sync::Arc;

use plexus_mcp_client::auth::{Authorizer as _, MemoryVault, OAuth, SignInMethod, Vault as _};
use plexus_mcp_client::{ServerState, Upstream};
use plexus_mcp_oauth::Grant;
use plexus_testkit::authorization_server::{Behaviour, TokenRequirements};
use plexus_testkit::server::{HttpServer, Reply};
use plexus_testkit::within;
use serde_json::json;

use crate::auth_fixture::{BACK, Protected, by_a_user, client};
use crate::support::{Caller, connected, refused, status, tools};

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

/// S004-20, S004-74: without a user, the status says what to do; nothing of it is secret.
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

/// An ended token is renewed once, however many want it; the old refresh token never comes again.
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

/// A token whose time is nearly over is renewed before it is used.
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
async fn a_renewal_is_finished_although_nobody_waits_for_it() {
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
        // Given up as soon as the authorization server has seen the request.
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

/// AUTH11-12, AUTH26-10: a call that needs more is allowed more, and nothing is lost by it.
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

/// Where no user is at hand, what was found wanting is asked for when one signs in again.
#[tokio::test]
async fn what_was_found_wanting_is_asked_for_the_next_time() {
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
    // The token that is kept is another one now, and no restart is needed to find it.
    work(&upstream).await.unwrap();
    assert_eq!(protected.issuer.counts().sign_ins, 2);
}

/// Tokens bound to a key, with nonces at both ends.
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

/// A token that ends and cannot be renewed is replaced by another, as often as it takes.
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

/// AUTH11-06, AUTH11-07: the authorization server reads about the client at its id.
#[tokio::test]
async fn a_document_says_who_the_client_is() {
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

/// A user who says no is told apart from a broken server, and is not asked twice.
#[tokio::test]
async fn a_refusal_is_told() {
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

/// Signing out gives the token back.
#[tokio::test]
async fn who_signs_out_is_out() {
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
