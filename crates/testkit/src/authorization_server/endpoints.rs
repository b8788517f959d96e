//! The endpoints of the authorization server.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, LOCATION};
use http::{HeaderValue, Method, Response, StatusCode};
use http_body_util::Full;
use jsonwebtoken::Header;
use jsonwebtoken::jwk::JwkSet;
use plexus_mcp_oauth::code_challenge;
use plexus_mcp_oauth::dpop::{self, ProofRequest};
use plexus_mcp_oauth::jwt::{self, Audience, Claims, Confirmation, Expected};
use serde_json::{Value, json};
use url::form_urlencoded;

use super::state::{Code, Grant, now, random_id};
use super::{ParsedRequest, SharedState, assertions, bearer, register};

/// The nonce that DPoP proofs must contain, if one is required.
pub(super) const NONCE: &str = "a-nonce";
const USER: &str = "alice";

pub(super) type Fields = HashMap<String, String>;
type FullResponse = Response<Full<Bytes>>;

/// An error response.
pub(super) type Refused = Box<FullResponse>;

pub(super) async fn answer(shared: &SharedState, request: &ParsedRequest) -> FullResponse {
    let done = match (&request.method, request.path.as_str()) {
        (&Method::GET, "/.well-known/oauth-authorization-server") => Ok(metadata(shared)),
        (&Method::GET, "/jwks") => {
            shared.count(|counts| counts.key_fetches += 1);
            Ok(json!(bearer::keys(shared)))
        }
        (&Method::GET, "/authorize") => return authorize(shared, &fields(&request.query)).await,
        (&Method::POST, "/register") if shared.behaviour.registers => {
            let registered = register::register(shared, request);
            return registered
                .map_or_else(|refused| *refused, |body| reply(StatusCode::CREATED, &body));
        }
        (&Method::POST, "/token") => token(shared, request).await,
        (&Method::POST, "/introspect") => introspect(shared, request).await,
        (&Method::POST, "/revoke") => revoke(shared, request).await,
        _ => return plain(StatusCode::NOT_FOUND),
    };
    done.map_or_else(|refused| *refused, |body| reply(StatusCode::OK, &body))
}

/// An OAuth error response.
pub(super) fn oauth_error(status: StatusCode, code: &str, why: &str) -> Refused {
    let body = json!({ "error": code, "error_description": why });
    Box::new(reply(status, &body))
}

fn metadata(shared: &SharedState) -> Value {
    let at = |path: &str| format!("{}{path}", shared.issuer);
    let registration = shared.behaviour.registers.then(|| at("/register"));
    json!({
        "issuer": shared.issuer,
        "authorization_endpoint": at("/authorize"),
        "token_endpoint": at("/token"),
        "registration_endpoint": registration,
        "introspection_endpoint": at("/introspect"),
        "revocation_endpoint": at("/revoke"),
        "jwks_uri": at("/jwks"),
        "scopes_supported": shared.behaviour.scopes,
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post", "private_key_jwt"],
        "code_challenge_methods_supported": ["S256"],
        "client_id_metadata_document_supported": shared.behaviour.fetches_documents,
        "authorization_response_iss_parameter_supported": true,
        "dpop_signing_alg_values_supported": ["ES256"],
    })
}

/// The sign-in page. It redirects at once, since the user is simulated.
async fn authorize(shared: &SharedState, fields: &Fields) -> FullResponse {
    let field = |name: &str| fields.get(name).cloned().unwrap_or_default();
    let redirect_uri = field("redirect_uri");
    let client = register::client(shared, &field("client_id")).await;
    // Redirects go only to registered URIs.
    let known = client.is_ok_and(|client| {
        let registered = client.redirect_uris;
        registered.is_none_or(|registered| registered.contains(&redirect_uri))
    });
    if !known {
        return plain(StatusCode::BAD_REQUEST);
    }
    let is_proper = field("response_type") == "code"
        && field("code_challenge_method") == "S256"
        && !field("code_challenge").is_empty();
    let outcome = match (is_proper, shared.behaviour.agrees) {
        (false, _) => ("error", "invalid_request".to_owned()),
        (true, false) => ("error", "access_denied".to_owned()),
        (true, true) => {
            let code = random_id();
            let issued = Code {
                client_id: field("client_id"),
                redirect_uri: redirect_uri.clone(),
                challenge: field("code_challenge"),
                resource: fields.get("resource").cloned(),
                scope: field("scope"),
            };
            shared.state().codes.insert(code.clone(), issued);
            shared.count(|counts| counts.sign_ins += 1);
            ("code", code)
        }
    };
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair(outcome.0, &outcome.1)
        .append_pair("state", &field("state"))
        .append_pair("iss", &shared.issuer)
        .finish();
    let mut answer = plain(StatusCode::FOUND);
    if let Ok(location) = HeaderValue::try_from(format!("{redirect_uri}?{query}")) {
        answer.headers_mut().insert(LOCATION, location);
    }
    answer
}

async fn token(shared: &SharedState, request: &ParsedRequest) -> Result<Value, Refused> {
    let form = form(request);
    let field = |name: &str| form.get(name).cloned().unwrap_or_default();
    let client_id = authenticated(shared, request, &form).await?;
    let jkt = proof(shared, request)?;
    let invalid = |why: &str| oauth_error(StatusCode::BAD_REQUEST, "invalid_grant", why);
    match field("grant_type").as_str() {
        "authorization_code" => {
            let code = shared.state().codes.remove(&field("code"));
            let code = code.ok_or_else(|| invalid("unknown code"))?;
            let fits = code.client_id == client_id
                && code.redirect_uri == field("redirect_uri")
                && code.challenge == code_challenge(&field("code_verifier"))
                && code.resource == form.get("resource").cloned();
            if !fits {
                return Err(invalid("the code is not for this"));
            }
            let number = next_number(shared);
            let grant = Grant {
                number,
                client_id,
                subject: USER.to_owned(),
                resource: code.resource,
                scope: code.scope,
                jkt,
            };
            Ok(issue(shared, grant, true))
        }
        "refresh_token" => {
            let refresh = field("refresh_token");
            let mut state = shared.state();
            let Some(grant) = state.grants.remove(&refresh) else {
                if let Some(number) = state.used.get(&refresh).copied() {
                    state.end(number);
                    shared.count(|counts| counts.replays += 1);
                }
                return Err(invalid("unknown refresh token"));
            };
            // The old tokens are no longer valid.
            state.used.insert(refresh, grant.number);
            state.live.retain(|_, of| *of != grant.number);
            drop(state);
            if grant.client_id != client_id || grant.jkt != jkt {
                return Err(invalid("the refresh token is another's"));
            }
            shared.count(|counts| counts.renewals += 1);
            Ok(issue(shared, grant, true))
        }
        "client_credentials" => {
            let grant = Grant {
                number: next_number(shared),
                subject: client_id.clone(),
                client_id,
                resource: form.get("resource").cloned(),
                scope: field("scope"),
                jkt,
            };
            Ok(issue(shared, grant, false))
        }
        assertions::TOKEN_EXCHANGE_GRANT => assertions::exchange(shared, client_id, &form),
        assertions::JWT_BEARER_GRANT => assertions::bearer(shared, client_id, &form),
        other => Err(oauth_error(
            StatusCode::BAD_REQUEST,
            "unsupported_grant_type",
            other,
        )),
    }
}

pub(super) fn next_number(shared: &SharedState) -> u64 {
    let mut state = shared.state();
    state.next_grant += 1;
    state.next_grant
}

/// An access token for a client without a user (client credentials).
pub(super) fn issue_to(shared: &SharedState, subject: &str, resource: &str, scope: &str) -> String {
    let grant = Grant {
        number: next_number(shared),
        client_id: "test".to_owned(),
        subject: subject.to_owned(),
        resource: Some(resource.to_owned()),
        scope: scope.to_owned(),
        jkt: None,
    };
    let issued = issue(shared, grant, false);
    issued["access_token"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// Issues tokens for a grant.
pub(super) fn issue(shared: &SharedState, grant: Grant, with_refresh: bool) -> Value {
    let life = shared.behaviour.token_life;
    let id = random_id();
    let mut claims = Claims::default();
    claims.iss.clone_from(&shared.issuer);
    claims.sub = Some(grant.subject.clone());
    claims.aud = grant
        .resource
        .clone()
        .map_or_else(Audience::default, Audience::One);
    claims.iat = Some(now());
    claims.exp = Some(now() + life);
    claims.jti = Some(id.clone());
    claims.client_id = Some(grant.client_id.clone());
    claims.scope = Some(plexus_mcp_oauth::Scopes::parse(&grant.scope));
    claims.cnf = grant.jkt.clone().map(|jkt| Confirmation { jkt });
    let mut state = shared.state();
    let header = Header {
        typ: Some("at+jwt".to_owned()),
        kid: Some(state.key_name()),
        ..Header::default()
    };
    let token = state.key.sign(header, &claims);
    let token = token.unwrap_or_else(|error| panic!("the server can sign: {error}"));
    state.live.insert(id, grant.number);
    let mut answer = json!({
        "access_token": token,
        "token_type": if grant.jkt.is_some() { "DPoP" } else { "Bearer" },
        "expires_in": life,
        "scope": grant.scope,
    });
    if with_refresh {
        let refresh = random_id();
        answer["refresh_token"] = json!(refresh);
        state.grants.insert(refresh, grant);
    }
    answer
}

async fn introspect(shared: &SharedState, request: &ParsedRequest) -> Result<Value, Refused> {
    let form = form(request);
    authenticated(shared, request, &form).await?;
    let token = form.get("token").map(String::as_str).unwrap_or_default();
    shared.count(|counts| counts.questions += 1);
    let claims = bearer::claims(shared, token, &audience(token));
    if claims.is_none() && shared.behaviour.ignores_invalid_tokens {
        std::future::pending::<()>().await;
    }
    Ok(claims.map_or_else(
        || json!({ "active": false }),
        |claims| {
            let mut answer = json!(claims);
            answer["active"] = json!(true);
            answer
        },
    ))
}

/// The audience in an unverified token.
fn audience(token: &str) -> String {
    let payload = token.split('.').nth(1).unwrap_or_default();
    let payload = URL_SAFE_NO_PAD.decode(payload).unwrap_or_default();
    let claims: Value = serde_json::from_slice(&payload).unwrap_or_default();
    claims["aud"].as_str().unwrap_or_default().to_owned()
}

async fn revoke(shared: &SharedState, request: &ParsedRequest) -> Result<Value, Refused> {
    let form = form(request);
    authenticated(shared, request, &form).await?;
    let token = form.get("token").map(String::as_str).unwrap_or_default();
    let mut state = shared.state();
    if let Some(grant) = state.grants.get(token).map(|grant| grant.number) {
        state.end(grant);
        shared.count(|counts| counts.revocations += 1);
    }
    Ok(json!({}))
}

/// Authenticates the client; returns its id.
async fn authenticated(
    shared: &SharedState,
    request: &ParsedRequest,
    form: &Fields,
) -> Result<String, Refused> {
    let invalid = |why: &str| oauth_error(StatusCode::UNAUTHORIZED, "invalid_client", why);
    let basic = request.headers.get(AUTHORIZATION);
    let basic = basic.and_then(|value| value.to_str().ok()?.strip_prefix("Basic "));
    let (client_id, secret) = if let Some(basic) = basic {
        let decoded = STANDARD.decode(basic).unwrap_or_default();
        let text = String::from_utf8(decoded).unwrap_or_default();
        let (id, secret) = text.split_once(':').unwrap_or_default();
        let plain = |text: &str| {
            let mut pairs = form_urlencoded::parse(text.as_bytes());
            pairs.next().map(|(text, _)| text.into_owned())
        };
        (plain(id).unwrap_or_default(), plain(secret))
    } else {
        let id = form.get("client_id").cloned().unwrap_or_default();
        (id, form.get("client_secret").cloned())
    };
    let client = register::client(shared, &client_id).await;
    let client = client.map_err(|why| invalid(&why))?;
    if let Some(key) = &client.key {
        let assertion = form.get("client_assertion").map(String::as_str);
        let assertion = assertion.unwrap_or_default();
        let keys = JwkSet {
            keys: vec![key.clone()],
        };
        let audience = [shared.issuer.as_str()];
        let expected = Expected::new(&client_id, &audience);
        let claims = jwt::verify(assertion, &keys, &expected, now());
        let claims = claims.map_err(|error| invalid(&error.to_string()))?;
        let is_new = shared.state().proofs.insert(claims.jti.unwrap_or_default());
        if claims.sub.as_deref() != Some(&client_id) || !is_new {
            return Err(invalid("the assertion is another's, or was seen before"));
        }
    } else if client.secret != secret {
        return Err(invalid("wrong secret"));
    }
    Ok(client_id)
}

/// The key to which a token is bound, if the request has a DPoP proof.
fn proof(shared: &SharedState, request: &ParsedRequest) -> Result<Option<String>, Refused> {
    let Some(Ok(proof)) = request.headers.get("dpop").map(HeaderValue::to_str) else {
        return Ok(None);
    };
    let url = format!("{}/token", shared.issuer);
    let proven = |nonce| ProofRequest {
        method: "POST",
        url: &url,
        token: None,
        nonce,
    };
    let wanted = shared.behaviour.wants_nonce.then_some(NONCE);
    let shown = dpop::verify_proof(proof, proven(wanted), now());
    let is_otherwise_good = || dpop::verify_proof(proof, proven(None), now()).is_ok();
    let bad = |code| oauth_error(StatusCode::BAD_REQUEST, code, "the proof");
    match shown {
        Ok(shown) if shared.state().proofs.insert(shown.jti.clone()) => Ok(Some(shown.jkt)),
        Err(_) if wanted.is_some() && is_otherwise_good() => {
            let mut refused = bad("use_dpop_nonce");
            let nonce = HeaderValue::from_static(NONCE);
            refused.headers_mut().insert("dpop-nonce", nonce);
            Err(refused)
        }
        _ => Err(bad("invalid_dpop_proof")),
    }
}

fn form(request: &ParsedRequest) -> Fields {
    fields(&String::from_utf8_lossy(&request.body))
}

fn fields(text: &str) -> Fields {
    form_urlencoded::parse(text.as_bytes())
        .into_owned()
        .collect()
}

fn reply(status: StatusCode, body: &Value) -> FullResponse {
    let mut answer = Response::new(Full::from(body.to_string()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

fn plain(status: StatusCode) -> FullResponse {
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = status;
    answer
}
