//! What those are told who are not let in.

use plexus_access::{Issuer, Options, ResourceServer, SettingsError, TokenFile};
use serde_json::{Value, json};

use crate::world::{SCOPE, World, greeting, hello, who};

/// AUTH03-05, AUTH06-03, AUTH11-03: without a token there is no error to speak of.
#[tokio::test]
async fn who_has_no_token_is_told_where_to_get_one() {
    let world = World::start().await;
    let origin = world.url.strip_suffix("/mcp").unwrap();
    let place = format!("{origin}/.well-known/oauth-protected-resource/mcp");
    let answer = greeting(&world.client()).send().await;
    assert_eq!(answer.status(), 401);
    let expected = format!(r#"Bearer scope="{SCOPE}", resource_metadata="{place}""#);
    assert_eq!(answer.header("www-authenticate"), Some(&*expected));

    let basic = world.client().with_header("authorization", "Basic YTpi");
    let answer = greeting(&basic).send().await;
    assert_eq!(answer.header("www-authenticate"), Some(&*expected));
}

/// AUTH06-01, AUTH11-01, AUTH26-13: at both places, and for anybody.
#[tokio::test]
async fn the_metadata_says_who_issues_tokens() {
    let world = World::start().await;
    for place in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
    ] {
        let answer = world.client().at(place).get().send().await;
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let document: Value = serde_json::from_str(&answer.text().await).unwrap();
        let expected = json!({
            "resource": world.url,
            "authorization_servers": [world.issuer.issuer()],
            "scopes_supported": [SCOPE],
            "bearer_methods_supported": ["header"],
        });
        assert_eq!(document, expected);
    }
    let elsewhere = "/.well-known/oauth-protected-resource/other";
    let answer = world.client().at(elsewhere).get().send().await;
    assert_eq!(answer.status(), 404);
}

/// AUTH11-11, AUTH26-11: one challenge names everything that is needed.
#[tokio::test]
async fn who_may_not_do_enough_is_told_what_is_needed() {
    let more = |options: &mut Options| options.scopes.push("files:read".to_owned());
    let world = World::with(who(), more).await;
    let answer = world.try_token(&world.token("alice")).await;
    assert_eq!(answer.status(), 403);
    let challenge = answer.header("www-authenticate").unwrap();
    let expected =
        r#"Bearer error="insufficient_scope", scope="mcp files:read", resource_metadata="#;
    assert!(challenge.starts_with(expected), "{challenge}");
    let enough = world
        .issuer
        .issue_to("alice", &world.url, "files:read other mcp");
    world.takes(&enough).await;
}

/// AUTH03-08, AUTH06-15: a token in the address is refused even if it is good.
#[tokio::test]
async fn a_token_in_the_address_is_refused() {
    let world = World::start().await;
    let token = world.token("alice");
    for client in [world.client(), world.client_with(&token)] {
        let client = client.at(&format!("/mcp?access_token={token}"));
        let answer = greeting(&client).send().await;
        assert_eq!(answer.status(), 400);
        let challenge = answer.header("www-authenticate").unwrap().to_owned();
        assert!(
            challenge.contains(r#"error="invalid_request""#),
            "{challenge}"
        );
        assert!(!answer.text().await.contains(&token));
    }
    let twice = greeting(&world.client_with(&token)).also("authorization", "Bearer other");
    assert_eq!(twice.send().await.status(), 400);
}

/// Every request is looked at, not only the first of a session (SEC-02, AUTH26-19).
#[tokio::test]
async fn a_session_is_no_credential() {
    let world = World::start().await;
    let client = world.client_with(&world.token("alice"));
    let opened = greeting(&client).send().await;
    let id = opened.header("mcp-session-id").unwrap();
    let again = world.client().post(&hello()).header("mcp-session-id", id);
    assert_eq!(again.send().await.status(), 401);
}

/// Tokens of our own need no authorization server, and then there is none to speak of.
#[tokio::test]
async fn a_token_of_our_own_is_enough() {
    let home = tempfile::tempdir().unwrap();
    let file = TokenFile::at(home.path().join("tokens.json"));
    let made = file.add("ci", &[SCOPE.to_owned()]).unwrap();
    let world = World::with(who(), |options| {
        options.issuers.clear();
        options.tokens = Some(TokenFile::at(file.path()));
    })
    .await;
    world.takes(made.token.expose()).await;
    let answer = greeting(&world.client()).send().await;
    let challenge = answer.header("www-authenticate");
    assert_eq!(challenge, Some(r#"Bearer scope="mcp""#));
    let place = "/.well-known/oauth-protected-resource";
    assert_eq!(world.client().at(place).get().send().await.status(), 404);

    file.remove("ci").unwrap();
    assert_eq!(world.try_token(made.token.expose()).await.status(), 401);
}

#[test]
fn settings_that_let_nobody_or_anybody_in_are_refused() {
    let refused = |change: &dyn Fn(&mut Options)| {
        let mut options = Options::new("https://plexus.example/mcp");
        options.issuers.push(Issuer::new("https://as.example"));
        change(&mut options);
        ResourceServer::new(options).unwrap_err().to_string()
    };
    assert!(refused(&|options| options.issuers.clear()).contains("nobody could be let in"));
    let plain = refused(&|options| options.issuers.push(Issuer::new("http://as.example")));
    assert!(plain.contains("others could read along"), "{plain}");
    let link_local = "https://169.254.169.254/latest";
    assert!(refused(&|options| options.issuers.push(Issuer::new(link_local))).contains("network"));
    for resource in [
        "plexus",
        "ftp://x",
        "https://x/mcp#a",
        "https://x/mcp?a",
        "https://a@x/",
    ] {
        let error = refused(&|options| resource.clone_into(&mut options.resource));
        assert!(error.starts_with("the resource"), "{error}");
    }
    let mut options = Options::new("https://plexus.example/mcp");
    options.issuers.push(Issuer::new("https://as.example"));
    options.scopes.push("two words".to_owned());
    let refused = ResourceServer::new(options);
    assert!(matches!(refused, Err(SettingsError::Scope(_))));
}
