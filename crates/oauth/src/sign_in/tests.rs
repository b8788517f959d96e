//! Whole sign-ins, with authorization servers that are tables.

use std::collections::HashMap;

use http::StatusCode;
use serde_json::{Value, json};

use super::*;
use crate::ambient::tests::Still;
use crate::plan::{Client, UserGrant};

const SERVER: &str = "https://s.example/mcp";
const ISSUER: &str = "https://as.example";
const BACK: &str = "http://127.0.0.1:9/callback";

/// What is found at which address; what is not here is not found.
type Table = HashMap<String, Value>;

fn resource() -> (String, Value) {
    let place = "https://s.example/.well-known/oauth-protected-resource/mcp";
    let metadata = json!({ "resource": SERVER, "authorization_servers": [ISSUER] });
    (place.to_owned(), metadata)
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
    let place = "https://as.example/.well-known/oauth-authorization-server";
    (place.to_owned(), metadata)
}

fn token() -> (String, Value) {
    let answer = json!({ "access_token": "a1", "token_type": "bearer", "expires_in": 60, "refresh_token": "r1" });
    ("https://as.example/token".to_owned(), answer)
}

fn user_plan() -> Plan {
    let user = UserGrant {
        redirect_uri: BACK.to_owned(),
        client_name: "Plexus".to_owned(),
        metadata_url: None,
    };
    Plan::new(SERVER, Reach::Public, Grant::User(user))
}

fn by_hand(issuer: Option<&str>) -> Client {
    Client {
        client_id: "mine".to_owned(),
        client_secret: Some(Secret::new("s3cret&")),
        key: None,
        method: None,
        issuer: issuer.map(str::to_owned),
    }
}

/// What happened on the way.
#[derive(Debug, Default)]
struct Journey {
    requests: Vec<(String, String)>,
    page: Option<Url>,
}

impl Journey {
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

/// Goes all the way; on the page, `back` says with what to come back, given the state.
fn go(
    plan: Plan,
    challenge: &str,
    table: &Table,
    back: impl Fn(&str) -> String,
) -> (Journey, Result<Session, OAuthError>) {
    let mut journey = Journey::default();
    let ambient = Still::at(1000);
    let ended = (|| {
        let mut flow = SignIn::new(plan, Challenges::parse(challenge))?;
        let mut step = flow.start(&ambient)?;
        loop {
            step = match step {
                Step::Send { request, .. } => {
                    let url = request.uri().to_string();
                    let body = String::from_utf8(request.body().to_vec()).unwrap();
                    journey.requests.push((url.clone(), body));
                    let mut response = Response::new(Bytes::new());
                    match table.get(&url) {
                        Some(found) => *response.body_mut() = found.to_string().into(),
                        None => *response.status_mut() = StatusCode::NOT_FOUND,
                    }
                    flow.answered(&response, &ambient)?
                }
                Step::Visit { url } => {
                    let state = fields(url.query().unwrap())["state"].clone();
                    journey.page = Some(url);
                    flow.returned(&back(&state), &ambient)?
                }
                Step::Done(session) => return Ok(*session),
            };
        }
    })();
    (journey, ended)
}

fn agreed(state: &str) -> String {
    format!("code=c1&state={state}")
}

/// AUTH06-06, AUTH06-12, AUTH11-10: the page is told what is wanted, and for what.
#[test]
fn a_user_signs_in_with_a_client_that_was_registered_by_hand() {
    let mut plan = user_plan();
    plan.client = Some(by_hand(None));
    let table = Table::from([resource(), server(json!({})), token()]);
    let (journey, session) = go(plan, r#"Bearer scope="b a""#, &table, agreed);
    let session = session.unwrap();
    assert_eq!(session.access_token.expose(), "a1");
    assert_eq!(session.expires_at, Some(1060));
    assert_eq!(session.resource.as_deref(), Some(SERVER));
    let page = journey.page();
    assert_eq!(page["tenant"], "1");
    assert_eq!(page["client_id"], "mine");
    assert_eq!(page["resource"], SERVER);
    assert_eq!(page["scope"], "a b");
    assert_eq!(page["code_challenge_method"], "S256");
    let body = journey.body_of("https://as.example/token");
    assert_eq!(body["resource"], SERVER);
    assert_eq!(body["redirect_uri"], BACK);
    assert_eq!(
        code_challenge(&body["code_verifier"]),
        page["code_challenge"]
    );
    assert!(!body.contains_key("client_secret"), "it is in the header");
}

/// AUTH26-09: what is registered is native; a server that does not know the member gets it without.
#[test]
fn a_client_registers_itself_if_it_must() {
    let registration = json!({ "client_id": "new" });
    let endpoint = "https://as.example/register";
    let table = Table::from([
        resource(),
        server(json!({ "registration_endpoint": endpoint })),
        (endpoint.to_owned(), registration),
        token(),
    ]);
    let (journey, session) = go(user_plan(), "Bearer", &table, agreed);
    let session = session.unwrap();
    assert_eq!(session.registration.client_id, "new");
    assert_eq!(session.registration.issuer, ISSUER);
    let asked = journey.requests.iter().find(|(url, _)| url == endpoint);
    let asked: Value = serde_json::from_str(&asked.unwrap().1).unwrap();
    assert_eq!(asked["application_type"], "native");
    assert_eq!(asked["redirect_uris"], json!([BACK]));

    // The next time it is known, but only there.
    let mut plan = user_plan();
    plan.registrations = vec![session.registration.clone()];
    let (journey, _) = go(plan.clone(), "Bearer", &table, agreed);
    assert!(journey.requests.iter().all(|(url, _)| url != endpoint));
    plan.registrations[0].issuer = "https://other.example".to_owned();
    let (journey, _) = go(plan, "Bearer", &table, agreed);
    assert!(journey.requests.iter().any(|(url, _)| url == endpoint));
}

/// AUTH26-08
#[test]
fn a_client_of_one_authorization_server_is_not_shown_to_another() {
    let mut plan = user_plan();
    plan.client = Some(by_hand(Some("https://old.example")));
    let table = Table::from([resource(), server(json!({})), token()]);
    let (journey, ended) = go(plan, "Bearer", &table, agreed);
    assert!(matches!(ended, Err(OAuthError::ClientOfAnother { .. })));
    assert!(journey.page.is_none());
}

/// AUTH26-04, AUTH26-05, AUTH26-06, and the state that CSRF would not know.
#[test]
fn who_comes_back_from_elsewhere_is_sent_away() {
    let mut plan = user_plan();
    plan.client = Some(by_hand(None));
    let promised = json!({ "authorization_response_iss_parameter_supported": true });
    let with = |extra: Value, back: &dyn Fn(&str) -> String| {
        let table = Table::from([resource(), server(extra), token()]);
        let (journey, ended) = go(plan.clone(), "Bearer", &table, back);
        let tokens = journey.requests.iter();
        let asked = tokens.filter(|(url, _)| url.ends_with("/token")).count();
        (asked, ended.err())
    };
    let iss = |iss: &'static str| move |state: &str| format!("{}&iss={iss}", agreed(state));
    assert_eq!(with(json!({}), &iss(ISSUER)), (1, None));
    assert_eq!(with(promised.clone(), &iss(ISSUER)), (1, None));
    let refused = (0, Some(OAuthError::WrongIssuer));
    assert_eq!(with(promised.clone(), &agreed), refused);
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

/// SEC-07: nobody sends a client of a public server inside.
#[test]
fn addresses_that_lead_inside_are_not_visited() {
    let inside = "https://169.254.169.254/metadata";
    let challenge = format!(r#"Bearer resource_metadata="{inside}""#);
    let (journey, ended) = go(user_plan(), &challenge, &Table::new(), agreed);
    assert!(matches!(ended, Err(OAuthError::Address { .. })));
    assert!(journey.requests.is_empty());

    let mut plan = user_plan();
    plan.client = Some(by_hand(None));
    for endpoint in ["authorization_endpoint", "token_endpoint"] {
        for address in [
            "https://127.0.0.1/",
            "http://as.example/",
            "javascript:alert(1)",
        ] {
            let metadata = server(json!({ endpoint: address }));
            let table = Table::from([resource(), metadata, token()]);
            let (journey, ended) = go(plan.clone(), "Bearer", &table, agreed);
            assert!(
                matches!(ended, Err(OAuthError::Address { .. })),
                "{address}"
            );
            assert!(journey.requests.iter().all(|(url, _)| url != address));
        }
    }
}

/// A server in a network of one's own may be spoken to in plain text; nobody else may.
#[test]
fn plain_text_is_for_ones_own_network() {
    let place = "http://10.0.0.1/.well-known/oauth-protected-resource/mcp";
    let metadata = json!({ "resource": "http://10.0.0.1/mcp", "authorization_servers": [ISSUER] });
    let table = Table::from([(place.to_owned(), metadata), server(json!({})), token()]);
    let mut plan = user_plan();
    plan.client = Some(by_hand(None));
    plan.server = "http://10.0.0.1/mcp".to_owned();
    plan.reach = Reach::Private;
    assert!(go(plan.clone(), "Bearer", &table, agreed).1.is_ok());
    plan.server = "http://s.example/mcp".to_owned();
    plan.reach = Reach::Public;
    let (journey, ended) = go(plan, "Bearer", &table, agreed);
    assert!(matches!(ended, Err(OAuthError::Address { .. })));
    assert!(journey.requests.is_empty());
}

/// AUTH11-13: without PKCE there is no sign-in.
#[test]
fn an_authorization_server_without_pkce_is_refused() {
    let metadata = server(json!({ "code_challenge_methods_supported": ["plain"] }));
    let table = Table::from([resource(), metadata, token()]);
    let (journey, ended) = go(user_plan(), "Bearer", &table, agreed);
    assert!(matches!(ended, Err(OAuthError::Unsupported { .. })));
    assert!(journey.page.is_none());
}

/// AUTH26-10, AUTH26-14: what was had before is asked for again; refresh tokens where they are known.
#[test]
fn scopes_add_up() {
    let mut plan = user_plan();
    plan.client = Some(by_hand(None));
    plan.scopes = Scopes::parse("old");
    let metadata = server(json!({ "scopes_supported": ["offline_access", "x"] }));
    let table = Table::from([resource(), metadata, token()]);
    let challenge = r#"Bearer error="insufficient_scope", scope="new""#;
    let (journey, session) = go(plan, challenge, &table, agreed);
    assert_eq!(journey.page()["scope"], "new offline_access old");
    assert!(session.unwrap().requested.covers(&Scopes::parse("old new")));
}

/// AUTH03-06: a server that publishes nothing has everything at its origin.
#[test]
fn a_server_of_2025_03_26_is_its_own_authorization_server() {
    let at = |path: &str| format!("https://s.example{path}");
    let table = Table::from([
        (at("/register"), json!({ "client_id": "new" })),
        (at("/token"), token().1),
    ]);
    let (journey, session) = go(user_plan(), "", &table, agreed);
    assert_eq!(session.unwrap().access_token.expose(), "a1");
    let visited: Vec<_> = journey.requests.iter().map(|(url, _)| &**url).collect();
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
    assert!(!journey.page().contains_key("resource"));
}

/// CC-01: a client may be its own user.
#[test]
fn a_client_signs_in_for_itself() {
    let mut plan = Plan::new(SERVER, Reach::Public, Grant::ClientCredentials);
    plan.client = Some(by_hand(None));
    let metadata = json!({ "token_endpoint_auth_methods_supported": ["client_secret_post"] });
    let table = Table::from([resource(), server(metadata), token()]);
    let (journey, session) = go(plan, r#"Bearer scope="a""#, &table, agreed);
    assert!(session.is_ok());
    let body = journey.body_of("https://as.example/token");
    assert_eq!(body["grant_type"], "client_credentials");
    assert_eq!(body["client_secret"], "s3cret&");
    assert_eq!(body["resource"], SERVER);
    assert_eq!(body["scope"], "a");
}

/// EMA-01, EMA-02: first a grant from the identity provider, then the token; no page.
#[test]
fn an_enterprise_vouches_for_its_user() {
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
    plan.client = Some(by_hand(None));
    let grant = json!({ "access_token": "jag", "token_type": "N_A", "issued_token_type": ID_JAG });
    let mut table = Table::from([resource(), server(json!({})), token()]);
    table.insert(provider.to_owned(), grant);
    let (journey, session) = go(plan.clone(), "Bearer", &table, agreed);
    assert!(session.is_ok() && journey.page.is_none());
    let exchange = journey.body_of(provider);
    assert_eq!(exchange["audience"], ISSUER);
    assert_eq!(exchange["resource"], SERVER);
    assert_eq!(exchange["subject_token"], "id");
    assert_eq!(
        journey.body_of("https://as.example/token")["assertion"],
        "jag"
    );

    let other = json!({ "access_token": "x", "token_type": "bearer", "issued_token_type": "y" });
    table.insert(provider.to_owned(), other);
    let (_, ended) = go(plan, "Bearer", &table, agreed);
    assert!(matches!(ended, Err(OAuthError::Malformed { .. })));
}

/// RFC 8693: a caller's token is shown to the authorization server that is configured, and to no
/// other that a server may name.
#[test]
fn a_token_is_exchanged_where_that_is_configured() {
    let grant = Grant::Exchange {
        subject_token: Secret::new("theirs"),
        audience: Some("the-server".to_owned()),
    };
    let with = |issuer: Option<&str>, answer: Value| {
        let mut plan = Plan::new(SERVER, Reach::Public, grant.clone());
        plan.client = Some(by_hand(issuer));
        let table = Table::from([resource(), server(json!({})), (token().0, answer)]);
        go(plan, r#"Bearer scope="a""#, &table, agreed)
    };
    let (journey, session) = with(Some(ISSUER), token().1);
    assert!(session.is_ok() && journey.page.is_none());
    let body = journey.body_of("https://as.example/token");
    assert_eq!(body["grant_type"], TOKEN_EXCHANGE);
    assert_eq!(body["subject_token"], "theirs");
    assert_eq!(body["subject_token_type"], ACCESS_TOKEN);
    assert_eq!(body["audience"], "the-server");
    assert_eq!(body["resource"], SERVER);
    for (issuer, refusal) in [
        (None, "tokens of callers are shown to no"),
        (Some("https://other.example"), "is for"),
    ] {
        let (journey, ended) = with(issuer, token().1);
        let told = ended.unwrap_err().to_string();
        assert!(told.contains(refusal), "{told}");
        let mut urls = journey.requests.iter().map(|(url, _)| url);
        assert!(urls.all(|url| !url.ends_with("/token")));
    }
    let mut other = token().1;
    other["issued_token_type"] = json!(ID_TOKEN);
    let (_, ended) = with(Some(ISSUER), other);
    assert!(matches!(ended, Err(OAuthError::Malformed { .. })));
}

/// Nothing secret shows in what is logged.
#[test]
fn nothing_secret_is_shown() {
    let mut plan = user_plan();
    plan.client = Some(by_hand(None));
    let table = Table::from([resource(), server(json!({})), token()]);
    let shown = format!("{plan:?}");
    let (_, session) = go(plan, "Bearer", &table, agreed);
    let shown = format!("{shown}{:?}", session.unwrap());
    for secret in ["s3cret&", "a1\"", "r1"] {
        assert!(!shown.contains(secret), "{secret}");
    }
    let garbled = Table::from([
        resource(),
        server(json!({})),
        (token().0, json!({ "access_token": ["s3cret"] })),
    ]);
    let mut plan = user_plan();
    plan.client = Some(by_hand(None));
    let (_, ended) = go(plan, "Bearer", &garbled, agreed);
    assert!(!ended.unwrap_err().to_string().contains("s3cret"));
}
