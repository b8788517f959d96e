//! Sign-in with servers that send misleading or oversized metadata.

use std::sync::Arc;

use plexus_mcp_client::auth::OAuthOptions;
use plexus_mcp_oauth::Challenges;
use plexus_testkit::authorization_server::{Behaviour, TokenRequirements};
use plexus_testkit::server::{HttpServer, Reply};
use plexus_testkit::within;
use serde_json::{Value, json};

use crate::auth_fixture::{Protected, by_a_user};
use crate::support::{call_fails, connected, refused};

/// The metadata address of cloud providers, which returns credentials.
const CLOUD: &str = "http://169.254.169.254/latest";

/// Signs in to a server that answers requests with `answer`, and all others with 401. Returns the
/// error and the paths that were requested.
async fn astray(
    answer: impl Fn(&str, &str) -> Option<Reply> + Send + Sync + 'static,
) -> (String, Vec<String>) {
    let server = HttpServer::start(move |request| {
        let origin = format!("http://{}", request.header("host").unwrap_or_default());
        let challenge = || Reply::status(401).with_header("www-authenticate", "Bearer");
        answer(&request.path, &origin).unwrap_or_else(challenge)
    })
    .await;
    let oauth = by_a_user(OAuthOptions::new(server.url().parse().unwrap()));
    let signed_in = within("the refusal", oauth.sign_in(Challenges::default())).await;
    let asked = server.all().into_iter().map(|request| request.path);
    (signed_in.unwrap_err().to_string(), asked.collect())
}

fn resource(origin: &str, issuer: &str) -> Reply {
    let resource = format!("{origin}/mcp");
    Reply::json(&json!({"resource": resource, "authorization_servers": [issuer]}))
}

fn issuer(origin: &str, change: &Value) -> Reply {
    let mut metadata = json!({
        "issuer": origin,
        "authorization_endpoint": format!("{origin}/authorize"),
        "token_endpoint": format!("{origin}/token"),
        "registration_endpoint": format!("{origin}/register"),
        "code_challenge_methods_supported": ["S256"],
    });
    let object = metadata.as_object_mut().unwrap();
    object.extend(change.as_object().unwrap().clone());
    Reply::json(&metadata)
}

/// SEC-07: redirects of metadata documents are not followed.
#[tokio::test]
async fn redirects_are_not_followed() {
    let elsewhere = Arc::new(HttpServer::start(|_| Reply::json(&json!({}))).await);
    for place in [elsewhere.url(), CLOUD.to_owned()] {
        let (error, _) = astray(move |path, _| {
            let is_metadata = path.starts_with("/.well-known");
            is_metadata.then(|| Reply::status(302).with_header("location", &place))
        })
        .await;
        assert!(!error.is_empty());
    }
    assert!(elsewhere.all().is_empty());
}

/// SEC-07: a forbidden address is not visited, whichever document names it.
#[tokio::test]
async fn link_local_addresses_are_not_visited() {
    let (error, _) = astray(|path, origin| {
        let is_resource = path.starts_with("/.well-known/oauth-protected-resource");
        is_resource.then(|| resource(origin, CLOUD))
    })
    .await;
    assert!(error.contains("may not refer to"), "{error}");
    for endpoint in ["authorization_endpoint", "registration_endpoint"] {
        let (error, asked) = astray(move |path, origin| match path {
            "/.well-known/oauth-protected-resource/mcp" => Some(resource(origin, origin)),
            "/.well-known/oauth-authorization-server" => {
                Some(issuer(origin, &json!({ endpoint: CLOUD })))
            }
            "/register" => Some(Reply::json(&json!({"client_id": "x"}))),
            _ => None,
        })
        .await;
        assert!(error.contains("may not refer to"), "{endpoint}: {error}");
        assert!(!asked.contains(&"/token".to_owned()));
    }
}

/// AUTH26-01: metadata whose `issuer` is not the expected one is rejected.
#[tokio::test]
async fn issuers_are_not_mixed_up() {
    let (error, asked) = astray(|path, origin| match path {
        "/.well-known/oauth-protected-resource/mcp" => Some(resource(origin, origin)),
        path if path.starts_with("/.well-known") => {
            Some(issuer(origin, &json!({"issuer": "https://honest.example"})))
        }
        _ => None,
    })
    .await;
    assert!(error.contains("names another issuer"), "{error}");
    let beyond = |path: &String| !path.starts_with("/.well-known");
    assert!(!asked.iter().any(beyond), "{asked:?}");
}

/// AUTH26-17: metadata whose `resource` is not the requested server is rejected.
#[tokio::test]
async fn resources_are_not_mixed_up() {
    let (error, asked) = astray(|path, origin| {
        let is_resource = path.starts_with("/.well-known/oauth-protected-resource");
        is_resource.then(|| {
            Reply::json(&json!({"resource": "https://honest.example/mcp",
                "authorization_servers": [origin]}))
        })
    })
    .await;
    assert!(
        error.contains("is not the server that was asked"),
        "{error}"
    );
    assert_eq!(asked.len(), 1);
}

/// 10 MB of metadata of an authorization server are not read to their end either.
#[tokio::test]
async fn endless_metadata_of_an_issuer_is_cut_short() {
    let (error, _) = astray(|path, origin| match path {
        "/.well-known/oauth-protected-resource/mcp" => Some(resource(origin, origin)),
        "/.well-known/oauth-authorization-server" => {
            let long = "x".repeat(10 * 1024 * 1024);
            Some(issuer(origin, &json!({ "issuer": long })))
        }
        _ => None,
    })
    .await;
    assert!(error.contains("longer than"), "{error}");
}

/// If a server's error repeats the token, the error that callers see has it redacted.
#[tokio::test]
async fn a_token_repeated_in_a_server_error_is_redacted() {
    let answer = |request: &plexus_testkit::server::Received| match request.mcp() {
        "tools/call" => {
            let shown = request.header("authorization").unwrap_or_default();
            let page = format!("cannot work: {shown} is odd");
            Reply::status(500).with_body("text/plain", &page)
        }
        _ => request.reply_from(&crate::auth_fixture::offer()),
    };
    let protected =
        Protected::answering(Behaviour::default(), TokenRequirements::default(), answer).await;
    let oauth = by_a_user(protected.options());
    let upstream = connected(protected.definition(&oauth)).await;
    let told = call_fails(&upstream, "work").await;
    assert!(told.contains("Bearer •••• is odd"), "{told}");
}

/// The error code of an authorization server is shown; the client secret is not.
#[tokio::test]
async fn refusals_of_an_issuer_tell_no_secret() {
    let behaviour = Behaviour {
        clients: vec![("robot".to_owned(), Some("right".to_owned()))],
        ..Behaviour::default()
    };
    let protected = Protected::start(behaviour, TokenRequirements::default()).await;
    let mut options = protected.options();
    options.client = Some(crate::auth_fixture::client(
        "robot",
        Some("s3cret-and-wrong"),
    ));
    options.method =
        plexus_mcp_client::auth::SignInMethod::Grant(plexus_mcp_oauth::Grant::ClientCredentials);
    let oauth = plexus_mcp_client::auth::OAuth::new(options);
    let (upstream, error) = refused(protected.definition(&oauth)).await;
    let told = format!("{error}{error:?}{upstream:?}{oauth:?}");
    assert!(told.contains("invalid_client"), "{told}");
    assert!(!told.contains("s3cret"), "{told}");
}
