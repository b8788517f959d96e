//! Grants without a user: token exchange and assertions.

use http::StatusCode;
use jsonwebtoken::Header;
use jsonwebtoken::jwk::JwkSet;
use plexus_mcp_oauth::jwt::{self, Audience, Claims, Expected};
use serde_json::{Value, json};

use super::endpoints::{Fields, Refused, issue, next_number, oauth_error};
use super::state::{Grant, now, random_id};
use super::{SharedState, bearer};

pub(super) const TOKEN_EXCHANGE_GRANT: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
pub(super) const JWT_BEARER_GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
/// The `typ` header of an identity assertion (ID-JAG).
const ID_JAG_TYP: &str = "oauth-id-jag+jwt";
const ASSERTION_LIFETIME_SECS: u64 = 300;

/// Token exchange (RFC 8693).
pub(super) fn exchange(
    shared: &SharedState,
    client_id: String,
    form: &Fields,
) -> Result<Value, Refused> {
    let field = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    let subject = field("subject_token");
    let kinds = (field("requested_token_type"), field("subject_token_type"));
    match kinds {
        (ID_JAG, ID_TOKEN) => {
            let user = checked(shared, subject, &client_id, None)?;
            let audience = field("audience");
            let jag = Assertion {
                typ: ID_JAG_TYP,
                client_id: Some(&client_id),
            };
            let token = signed(shared, &user.sub.unwrap_or_default(), audience, &jag);
            Ok(
                json!({"access_token": token, "issued_token_type": ID_JAG, "token_type": "N_A",
                "expires_in": ASSERTION_LIFETIME_SECS}),
            )
        }
        (ACCESS_TOKEN, ACCESS_TOKEN) => {
            let audience = shared.behaviour.exchanges.as_deref();
            let audience = audience.ok_or_else(|| invalid("nothing is exchanged here"))?;
            let claims = bearer::claims(shared, subject, audience);
            let claims = claims.ok_or_else(|| invalid("the subject token is worth nothing"))?;
            shared.count(|counts| counts.exchanges += 1);
            let subject = claims.sub.unwrap_or_default();
            let mut answer = issued(shared, client_id, subject, form);
            answer["issued_token_type"] = json!(ACCESS_TOKEN);
            Ok(answer)
        }
        _ => Err(invalid("unknown kinds of tokens")),
    }
}

/// The JWT bearer grant (RFC 7523).
pub(super) fn bearer(
    shared: &SharedState,
    client_id: String,
    form: &Fields,
) -> Result<Value, Refused> {
    let assertion = form
        .get("assertion")
        .map(String::as_str)
        .unwrap_or_default();
    let header = jwt::header(assertion).map_err(|error| invalid(&error.to_string()))?;
    let claims = if header.typ.as_deref() == Some(ID_JAG_TYP) {
        let claims = checked(shared, assertion, &shared.issuer, Some(ID_JAG_TYP))?;
        if claims.client_id.as_deref() != Some(&client_id) {
            return Err(invalid("the assertion is for another client"));
        }
        claims
    } else {
        let (issuer, key) = shared
            .behaviour
            .vouched_by
            .clone()
            .ok_or_else(|| invalid("no issuer of assertions is trusted"))?;
        let keys = JwkSet { keys: vec![key] };
        let audience = [shared.issuer.as_str()];
        let claims = jwt::verify(assertion, &keys, &Expected::new(&issuer, &audience), now());
        claims.map_err(|error| invalid(&error.to_string()))?
    };
    let subject = claims.sub.unwrap_or_default();
    Ok(issued(shared, client_id, subject, form))
}

pub(super) fn id_token(shared: &SharedState, subject: &str, client_id: &str) -> String {
    let id_token = Assertion {
        typ: "JWT",
        client_id: None,
    };
    signed(shared, subject, client_id, &id_token)
}

struct Assertion<'a> {
    typ: &'a str,
    client_id: Option<&'a str>,
}

fn signed(
    shared: &SharedState,
    subject: &str,
    audience: &str,
    assertion: &Assertion<'_>,
) -> String {
    let mut claims = Claims::default();
    claims.iss.clone_from(&shared.issuer);
    claims.sub = Some(subject.to_owned());
    claims.aud = Audience::One(audience.to_owned());
    claims.iat = Some(now());
    claims.exp = Some(now() + ASSERTION_LIFETIME_SECS);
    claims.jti = Some(random_id());
    claims.client_id = assertion.client_id.map(str::to_owned);
    let state = shared.state();
    let header = Header {
        typ: Some(assertion.typ.to_owned()),
        kid: Some(state.key_name()),
        ..Header::default()
    };
    let token = state.key.sign(header, &claims);
    token.unwrap_or_else(|error| panic!("the server can sign: {error}"))
}

/// Verifies a JWT that this server signed for `audience`.
fn checked(
    shared: &SharedState,
    token: &str,
    audience: &str,
    typ: Option<&str>,
) -> Result<Claims, Refused> {
    let audience = [audience];
    let mut expected = Expected::new(&shared.issuer, &audience);
    expected.typ = typ;
    let claims = jwt::verify(token, &bearer::keys(shared), &expected, now());
    claims.map_err(|error| invalid(&error.to_string()))
}

fn issued(shared: &SharedState, client_id: String, subject: String, form: &Fields) -> Value {
    let grant = Grant {
        number: next_number(shared),
        client_id,
        subject,
        resource: form.get("resource").cloned(),
        scope: form.get("scope").cloned().unwrap_or_default(),
        jkt: None,
    };
    issue(shared, grant, false)
}

fn invalid(why: &str) -> Refused {
    oauth_error(StatusCode::BAD_REQUEST, "invalid_grant", why)
}
