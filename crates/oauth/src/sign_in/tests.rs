//! Whole sign-ins, with authorization servers that are tables of responses.

use std::collections::HashMap;

use http::StatusCode;
use serde_json::{Value, json};

use super::*;
use crate::ambient::tests::FixedAmbient;
use crate::plan::{Client, UserGrant};

const SERVER: &str = "https://s.example/mcp";
const ISSUER: &str = "https://as.example";
const REDIRECT_URI: &str = "http://127.0.0.1:9/callback";

/// The response body of each URL; other URLs are answered with 404.
type Responses = HashMap<String, Value>;

fn resource() -> (String, Value) {
    let url = "https://s.example/.well-known/oauth-protected-resource/mcp";
    let metadata = json!({ "resource": SERVER, "authorization_servers": [ISSUER] });
    (url.to_owned(), metadata)
}

fn server(extra: Value) -> (String, Value) {
    let mut metadata = json!({
        "issuer": ISSUER,
        "authorization_endpoint": "https://as.example/authorize?tenant=1",
        "token_endpoint": "https://as.example/token",
        "code_challenge_methods_supported": ["S256"],
    });
    let Value::Object(extra) = extra else {
        panic!("extra metadata is an object")
    };
    metadata.as_object_mut().unwrap().extend(extra);
    let url = "https://as.example/.well-known/oauth-authorization-server";
    (url.to_owned(), metadata)
}

fn token() -> (String, Value) {
    let answer = json!({ "access_token": "a1", "token_type": "bearer", "expires_in": 60, "refresh_token": "r1" });
    ("https://as.example/token".to_owned(), answer)
}

fn user_plan() -> Plan {
    let user = UserGrant {
        redirect_uri: REDIRECT_URI.to_owned(),
        client_name: "Plexus".to_owned(),
        metadata_url: None,
    };
    Plan::new(SERVER, Reach::Public, Grant::User(user))
}

fn configured_client(issuer: Option<&str>) -> Client {
    Client {
        client_id: "mine".to_owned(),
        client_secret: Some(Secret::new("s3cret&")),
        key: None,
        method: None,
        issuer: issuer.map(str::to_owned),
    }
}

/// The requests and the page of one flow.
#[derive(Debug, Default)]
struct FlowRecord {
    requests: Vec<(String, String)>,
    page: Option<Url>,
}

impl FlowRecord {
    fn body_of(&self, url: &str) -> HashMap<String, String> {
        let mut requests = self.requests.iter();
        let (_, body) = requests.find(|(sent, _)| sent == url).unwrap();
        fields(body)
    }

    fn page(&self) -> HashMap<String, String> {
        fields(self.page.as_ref().unwrap().query().unwrap())
    }
}

fn fields(form: &str) -> HashMap<String, String> {
    form_urlencoded::parse(form.as_bytes())
        .into_owned()
        .collect()
}

/// Runs a flow to its end. `redirect` makes the query of the redirect from the state.
fn run_flow(
    plan: Plan,
    challenge: &str,
    responses: &Responses,
    redirect: impl Fn(&str) -> String,
) -> (FlowRecord, Result<Session, OAuthError>) {
    let mut record = FlowRecord::default();
    let ambient = FixedAmbient::at(1000);
    let ended = (|| {
        let mut flow = SignIn::new(plan, Challenges::parse(challenge))?;
        let mut step = flow.start(&ambient)?;
        loop {
            step = match step {
                Step::Send { request, .. } => {
                    let url = request.uri().to_string();
                    let body = String::from_utf8(request.body().to_vec()).unwrap();
                    record.requests.push((url.clone(), body));
                    let mut response = Response::new(Bytes::new());
                    match responses.get(&url) {
                        Some(found) => *response.body_mut() = found.to_string().into(),
                        None => *response.status_mut() = StatusCode::NOT_FOUND,
                    }
                    flow.handle_response(&response, &ambient)?
                }
                Step::Visit { url } => {
                    let state = fields(url.query().unwrap())["state"].clone();
                    record.page = Some(url);
                    flow.handle_redirect(&redirect(&state), &ambient)?
                }
                Step::Done(session) => return Ok(*session),
            };
        }
    })();
    (record, ended)
}

fn approved(state: &str) -> String {
    format!("code=c1&state={state}")
}

/// AUTH06-06, AUTH06-12, AUTH11-10: the URL of the page has the scopes and the resource.
#[test]
fn a_user_signs_in_with_a_client_that_was_registered_by_hand() {
    let mut plan = user_plan();
    plan.client = Some(configured_client(None));
    let responses = Responses::from([resource(), server(json!({})), token()]);
    let (record, session) = run_flow(plan, r#"Bearer scope="b a""#, &responses, approved);
    let session = session.unwrap();
    assert_eq!(session.access_token.expose(), "a1");
    assert_eq!(session.expires_at, Some(1060));
    assert_eq!(session.resource.as_deref(), Some(SERVER));
    let page = record.page();
    assert_eq!(page["tenant"], "1");
    assert_eq!(page["client_id"], "mine");
    assert_eq!(page["resource"], SERVER);
    assert_eq!(page["scope"], "a b");
    assert_eq!(page["code_challenge_method"], "S256");
    let body = record.body_of("https://as.example/token");
    assert_eq!(body["resource"], SERVER);
    assert_eq!(body["redirect_uri"], REDIRECT_URI);
    assert_eq!(
        code_challenge(&body["code_verifier"]),
        page["code_challenge"]
    );
    assert!(!body.contains_key("client_secret"), "it is in the header");
}

/// AUTH26-09: the client is registered as native; if the server rejects the member, it is left out.
#[test]
fn a_client_registers_itself_if_it_must() {
    let registration = json!({ "client_id": "new" });
    let endpoint = "https://as.example/register";
    let responses = Responses::from([
        resource(),
        server(json!({ "registration_endpoint": endpoint })),
        (endpoint.to_owned(), registration),
        token(),
    ]);
    let (record, session) = run_flow(user_plan(), "Bearer", &responses, approved);
    let session = session.unwrap();
    assert_eq!(session.registration.client_id, "new");
    assert_eq!(session.registration.issuer, ISSUER);
    let asked = record.requests.iter().find(|(url, _)| url == endpoint);
    let asked: Value = serde_json::from_str(&asked.unwrap().1).unwrap();
    assert_eq!(asked["application_type"], "native");
    assert_eq!(asked["redirect_uris"], json!([REDIRECT_URI]));

    // The next time it is known, but only there.
    let mut plan = user_plan();
    plan.registrations = vec![session.registration.clone()];
    let (record, _) = run_flow(plan.clone(), "Bearer", &responses, approved);
    assert!(record.requests.iter().all(|(url, _)| url != endpoint));
    plan.registrations[0].issuer = "https://other.example".to_owned();
    let (record, _) = run_flow(plan, "Bearer", &responses, approved);
    assert!(record.requests.iter().any(|(url, _)| url == endpoint));
}

/// AUTH26-08
#[test]
fn a_client_of_one_authorization_server_is_not_shown_to_another() {
    let mut plan = user_plan();
    plan.client = Some(configured_client(Some("https://old.example")));
    let responses = Responses::from([resource(), server(json!({})), token()]);
    let (record, ended) = run_flow(plan, "Bearer", &responses, approved);
    assert!(matches!(ended, Err(OAuthError::ClientOfAnother { .. })));
    assert!(record.page.is_none());
}

/// AUTH26-04, AUTH26-05, AUTH26-06: a redirect with another state (CSRF) or issuer is rejected.
#[test]
fn a_redirect_with_another_state_or_issuer_is_rejected() {
    let mut plan = user_plan();
    plan.client = Some(configured_client(None));
    let promised = json!({ "authorization_response_iss_parameter_supported": true });
    let with = |extra: Value, back: &dyn Fn(&str) -> String| {
        let responses = Responses::from([resource(), server(extra), token()]);
        let (record, ended) = run_flow(plan.clone(), "Bearer", &responses, back);
        let tokens = record.requests.iter();
        let asked = tokens.filter(|(url, _)| url.ends_with("/token")).count();
        (asked, ended.err())
    };
    let iss = |iss: &'static str| move |state: &str| format!("{}&iss={iss}", approved(state));
    assert_eq!(with(json!({}), &iss(ISSUER)), (1, None));
    assert_eq!(with(promised.clone(), &iss(ISSUER)), (1, None));
    let refused = (0, Some(OAuthError::WrongIssuer));
    assert_eq!(with(promised.clone(), &approved), refused);
    assert_eq!(with(json!({}), &iss("https://as.example/")), refused);
    let lying = |state: &str| format!("error=x&error_description=call+us&state={state}&iss=y");
    assert_eq!(with(promised, &lying), refused);
    let stranger = |_: &str| "code=c1&state=guessed".to_owned();
    assert_eq!(
        with(json!({}), &stranger),
        (0, Some(OAuthError::WrongState))
    );
    let denied = |state: &str| format!("error=access_denied&state={state}");
    let (_, ended) = with(json!({}), &denied);
    assert!(matches!(ended, Some(OAuthError::Refused { code, .. }) if code == "access_denied"));
}

/// SEC-07: a public server cannot send the client to an address of a private network.
#[test]
fn internal_addresses_are_not_requested() {
    let inside = "https://169.254.169.254/metadata";
    let challenge = format!(r#"Bearer resource_metadata="{inside}""#);
    let (record, ended) = run_flow(user_plan(), &challenge, &Responses::new(), approved);
    assert!(matches!(ended, Err(OAuthError::Address { .. })));
    assert!(record.requests.is_empty());

    let mut plan = user_plan();
    plan.client = Some(configured_client(None));
    for endpoint in ["authorization_endpoint", "token_endpoint"] {
        for address in [
            "https://127.0.0.1/",
            "http://as.example/",
            "javascript:alert(1)",
        ] {
            let metadata = server(json!({ endpoint: address }));
            let responses = Responses::from([resource(), metadata, token()]);
            let (record, ended) = run_flow(plan.clone(), "Bearer", &responses, approved);
            assert!(
                matches!(ended, Err(OAuthError::Address { .. })),
                "{address}"
            );
            assert!(record.requests.iter().all(|(url, _)| url != address));
        }
    }
}

/// Plain http is allowed for servers of a private network only.
#[test]
fn plain_http_is_allowed_in_a_private_network_only() {
    let url = "http://10.0.0.1/.well-known/oauth-protected-resource/mcp";
    let metadata = json!({ "resource": "http://10.0.0.1/mcp", "authorization_servers": [ISSUER] });
    let responses = Responses::from([(url.to_owned(), metadata), server(json!({})), token()]);
    let mut plan = user_plan();
    plan.client = Some(configured_client(None));
    plan.server = "http://10.0.0.1/mcp".to_owned();
    plan.reach = Reach::Private;
    assert!(
        run_flow(plan.clone(), "Bearer", &responses, approved)
            .1
            .is_ok()
    );
    plan.server = "http://s.example/mcp".to_owned();
    plan.reach = Reach::Public;
    let (record, ended) = run_flow(plan, "Bearer", &responses, approved);
    assert!(matches!(ended, Err(OAuthError::Address { .. })));
    assert!(record.requests.is_empty());
}

/// AUTH11-13: without PKCE there is no sign-in.
#[test]
fn an_authorization_server_without_pkce_is_refused() {
    let metadata = server(json!({ "code_challenge_methods_supported": ["plain"] }));
    let responses = Responses::from([resource(), metadata, token()]);
    let (record, ended) = run_flow(user_plan(), "Bearer", &responses, approved);
    assert!(matches!(ended, Err(OAuthError::Unsupported { .. })));
    assert!(record.page.is_none());
}

/// AUTH26-10, AUTH26-14: earlier scopes are requested again, and `offline_access` if it is supported.
#[test]
fn scopes_add_up() {
    let mut plan = user_plan();
    plan.client = Some(configured_client(None));
    plan.scopes = Scopes::parse("old");
    let metadata = server(json!({ "scopes_supported": ["offline_access", "x"] }));
    let responses = Responses::from([resource(), metadata, token()]);
    let challenge = r#"Bearer error="insufficient_scope", scope="new""#;
    let (record, session) = run_flow(plan, challenge, &responses, approved);
    assert_eq!(record.page()["scope"], "new offline_access old");
    assert!(session.unwrap().requested.covers(&Scopes::parse("old new")));
}

/// AUTH03-06: a server without metadata has default endpoints at its origin.
#[test]
fn a_server_of_2025_03_26_is_its_own_authorization_server() {
    let at = |path: &str| format!("https://s.example{path}");
    let responses = Responses::from([
        (at("/register"), json!({ "client_id": "new" })),
        (at("/token"), token().1),
    ]);
    let (record, session) = run_flow(user_plan(), "", &responses, approved);
    assert_eq!(session.unwrap().access_token.expose(), "a1");
    let visited: Vec<_> = record.requests.iter().map(|(url, _)| &**url).collect();
    assert_eq!(
        visited,
        [
            at("/.well-known/oauth-protected-resource/mcp"),
            at("/.well-known/oauth-protected-resource"),
            at("/.well-known/oauth-authorization-server"),
            at("/register"),
            at("/token"),
        ]
    );
    assert!(!record.page().contains_key("resource"));
}

/// CC-01: the client credentials grant.
#[test]
fn a_client_signs_in_for_itself() {
    let mut plan = Plan::new(SERVER, Reach::Public, Grant::ClientCredentials);
    plan.client = Some(configured_client(None));
    let metadata = json!({ "token_endpoint_auth_methods_supported": ["client_secret_post"] });
    let responses = Responses::from([resource(), server(metadata), token()]);
    let (record, session) = run_flow(plan, r#"Bearer scope="a""#, &responses, approved);
    assert!(session.is_ok());
    let body = record.body_of("https://as.example/token");
    assert_eq!(body["grant_type"], "client_credentials");
    assert_eq!(body["client_secret"], "s3cret&");
    assert_eq!(body["resource"], SERVER);
    assert_eq!(body["scope"], "a");
}

/// EMA-01, EMA-02: the identity provider issues a grant, which is exchanged for the token, without a page.
#[test]
fn an_enterprise_identity_provider_authenticates_the_user() {
    let provider = "https://idp.example/token";
    let mut plan = Plan::new(
        SERVER,
        Reach::Public,
        Grant::Enterprise {
            token_endpoint: provider.to_owned(),
            client_id: "at-idp".to_owned(),
            id_token: Secret::new("id"),
        },
    );
    plan.client = Some(configured_client(None));
    let grant = json!({ "access_token": "jag", "token_type": "N_A", "issued_token_type": ID_JAG_TOKEN_TYPE });
    let mut responses = Responses::from([resource(), server(json!({})), token()]);
    responses.insert(provider.to_owned(), grant);
    let (record, session) = run_flow(plan.clone(), "Bearer", &responses, approved);
    assert!(session.is_ok() && record.page.is_none());
    let exchange = record.body_of(provider);
    assert_eq!(exchange["audience"], ISSUER);
    assert_eq!(exchange["resource"], SERVER);
    assert_eq!(exchange["subject_token"], "id");
    assert_eq!(
        record.body_of("https://as.example/token")["assertion"],
        "jag"
    );

    let other = json!({ "access_token": "x", "token_type": "bearer", "issued_token_type": "y" });
    responses.insert(provider.to_owned(), other);
    let (_, ended) = run_flow(plan, "Bearer", &responses, approved);
    assert!(matches!(ended, Err(OAuthError::Malformed { .. })));
}

/// RFC 8693: a caller's token is sent to the configured authorization server only.
#[test]
fn a_token_is_exchanged_at_the_configured_server_only() {
    let grant = Grant::Exchange {
        subject_token: Secret::new("theirs"),
        audience: Some("the-server".to_owned()),
    };
    let with = |issuer: Option<&str>, answer: Value| {
        let mut plan = Plan::new(SERVER, Reach::Public, grant.clone());
        plan.client = Some(configured_client(issuer));
        let responses = Responses::from([resource(), server(json!({})), (token().0, answer)]);
        run_flow(plan, r#"Bearer scope="a""#, &responses, approved)
    };
    let (record, session) = with(Some(ISSUER), token().1);
    assert!(session.is_ok() && record.page.is_none());
    let body = record.body_of("https://as.example/token");
    assert_eq!(body["grant_type"], TOKEN_EXCHANGE_GRANT);
    assert_eq!(body["subject_token"], "theirs");
    assert_eq!(body["subject_token_type"], ACCESS_TOKEN_TYPE);
    assert_eq!(body["audience"], "the-server");
    assert_eq!(body["resource"], SERVER);
    for (issuer, error_response) in [
        (None, "is not configured"),
        (Some("https://other.example"), "is for"),
    ] {
        let (record, ended) = with(issuer, token().1);
        let told = ended.unwrap_err().to_string();
        assert!(told.contains(error_response), "{told}");
        let mut urls = record.requests.iter().map(|(url, _)| url);
        assert!(urls.all(|url| !url.ends_with("/token")));
    }
    let mut other = token().1;
    other["issued_token_type"] = json!(ID_TOKEN_TYPE);
    let (_, ended) = with(Some(ISSUER), other);
    assert!(matches!(ended, Err(OAuthError::Malformed { .. })));
}

/// The `Debug` output contains no secrets.
#[test]
fn debug_output_has_no_secrets() {
    let mut plan = user_plan();
    plan.client = Some(configured_client(None));
    let responses = Responses::from([resource(), server(json!({})), token()]);
    let shown = format!("{plan:?}");
    let (_, session) = run_flow(plan, "Bearer", &responses, approved);
    let shown = format!("{shown}{:?}", session.unwrap());
    for secret in ["s3cret&", "a1\"", "r1"] {
        assert!(!shown.contains(secret), "{secret}");
    }
    let garbled = Responses::from([
        resource(),
        server(json!({})),
        (token().0, json!({ "access_token": ["s3cret"] })),
    ]);
    let mut plan = user_plan();
    plan.client = Some(configured_client(None));
    let (_, ended) = run_flow(plan, "Bearer", &garbled, approved);
    assert!(!ended.unwrap_err().to_string().contains("s3cret"));
}
