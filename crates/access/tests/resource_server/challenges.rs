//! The challenges and statuses of refused requests.

use plexus_mcp_access::{Issuer, Options, ResourceServer, SettingsError, TokenFile};
use serde_json::{Value, json};

use crate::world::{SCOPE, World, initialize_message, initialize_request, principal_service};

/// AUTH03-05, AUTH06-03, AUTH11-03: the challenge names the metadata, without an error code.
#[tokio::test]
async fn a_request_without_a_token_gets_a_challenge() {
    let world = World::start().await;
    let origin = world.url.strip_suffix("/mcp").unwrap();
    let metadata_url = format!("{origin}/.well-known/oauth-protected-resource/mcp");
    let answer = initialize_request(&world.client()).send().await;
    assert_eq!(answer.status(), 401);
    let expected = format!(r#"Bearer scope="{SCOPE}", resource_metadata="{metadata_url}""#);
    assert_eq!(answer.header("www-authenticate"), Some(&*expected));

    let basic = world.client().with_header("authorization", "Basic YTpi");
    let answer = initialize_request(&basic).send().await;
    assert_eq!(answer.header("www-authenticate"), Some(&*expected));
}

/// AUTH06-01, AUTH11-01, AUTH26-13: the metadata is at both paths, and needs no token.
#[tokio::test]
async fn the_metadata_names_the_issuers() {
    let world = World::start().await;
    for path in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
    ] {
        let answer = world.client().at(path).get().send().await;
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
    let unknown_path = "/.well-known/oauth-protected-resource/other";
    let answer = world.client().at(unknown_path).get().send().await;
    assert_eq!(answer.status(), 404);
}

/// AUTH11-11, AUTH26-11: the challenge names all required scopes.
#[tokio::test]
async fn a_token_without_the_scopes_gets_a_challenge() {
    let more = |options: &mut Options| options.scopes.push("files:read".to_owned());
    let world = World::with(principal_service(), more).await;
    let answer = world.try_token(&world.token("alice")).await;
    assert_eq!(answer.status(), 403);
    let challenge = answer.header("www-authenticate").unwrap();
    let expected =
        r#"Bearer error="insufficient_scope", scope="mcp files:read", resource_metadata="#;
    assert!(challenge.starts_with(expected), "{challenge}");
    let enough = world
        .issuer
        .issue_to("alice", &world.url, "files:read other mcp");
    world.accepts(&enough).await;
}

/// AUTH03-08, AUTH06-15: a token in the URL is refused even if it is valid.
#[tokio::test]
async fn a_token_in_the_url_is_refused() {
    let world = World::start().await;
    let token = world.token("alice");
    for client in [world.client(), world.client_with(&token)] {
        let client = client.at(&format!("/mcp?access_token={token}"));
        let answer = initialize_request(&client).send().await;
        assert_eq!(answer.status(), 400);
        let challenge = answer.header("www-authenticate").unwrap().to_owned();
        assert!(
            challenge.contains(r#"error="invalid_request""#),
            "{challenge}"
        );
        assert!(!answer.text().await.contains(&token));
    }
    let twice =
        initialize_request(&world.client_with(&token)).also("authorization", "Bearer other");
    assert_eq!(twice.send().await.status(), 400);
}

/// The token of every request is checked, not only that of the first request of a session (SEC-02, AUTH26-19).
#[tokio::test]
async fn a_session_is_no_credential() {
    let world = World::start().await;
    let client = world.client_with(&world.token("alice"));
    let opened = initialize_request(&client).send().await;
    let id = opened.header("mcp-session-id").unwrap();
    let again = world
        .client()
        .post(&initialize_message())
        .header("mcp-session-id", id);
    assert_eq!(again.send().await.status(), 401);
}

/// Static tokens work without an authorization server; challenges then name no metadata.
#[tokio::test]
async fn a_static_token_is_enough() {
    let home = tempfile::tempdir().unwrap();
    let file = TokenFile::at(home.path().join("tokens.json"));
    let made = file.add("ci", &[SCOPE.to_owned()]).unwrap();
    let world = World::with(principal_service(), |options| {
        options.issuers.clear();
        options.tokens = Some(TokenFile::at(file.path()));
    })
    .await;
    world.accepts(made.token.expose()).await;
    let answer = initialize_request(&world.client()).send().await;
    let challenge = answer.header("www-authenticate");
    assert_eq!(challenge, Some(r#"Bearer scope="mcp""#));
    let metadata = "/.well-known/oauth-protected-resource";
    assert_eq!(world.client().at(metadata).get().send().await.status(), 404);

    file.remove("ci").unwrap();
    assert_eq!(world.try_token(made.token.expose()).await.status(), 401);
}

#[test]
fn unusable_and_insecure_settings_are_refused() {
    let refused = |change: &dyn Fn(&mut Options)| {
        let mut options = Options::new("https://plexus.example/mcp");
        options.issuers.push(Issuer::new("https://as.example"));
        change(&mut options);
        ResourceServer::new(options).unwrap_err().to_string()
    };
    assert!(refused(&|options| options.issuers.clear()).contains("no request can be authorized"));
    let plain = refused(&|options| options.issuers.push(Issuer::new("http://as.example")));
    assert!(plain.contains("would not be encrypted"), "{plain}");
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
