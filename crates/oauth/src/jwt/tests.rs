use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{EncodingKey, Header};

use super::*;
use crate::keys::SigningKey;

const NOW: u64 = 1_000_000;
const ISSUER: &str = "https://as.example";
const SERVER: &str = "https://s.example/mcp";

fn claims() -> Claims {
    Claims {
        iss: ISSUER.to_owned(),
        sub: Some("alice".to_owned()),
        aud: Audience::One(SERVER.to_owned()),
        exp: Some(NOW + 600),
        ..Claims::default()
    }
}

fn named(kid: &str) -> Header {
    Header {
        kid: Some(kid.to_owned()),
        ..Header::default()
    }
}

fn keys(key: &SigningKey, kid: &str) -> JwkSet {
    let mut public = key.public().unwrap();
    public.common.key_id = Some(kid.to_owned());
    JwkSet { keys: vec![public] }
}

fn verdict(token: &str, keys: &JwkSet) -> Result<Claims, JwtError> {
    verify(token, keys, &Expected::new(ISSUER, &[SERVER]), NOW)
}

#[test]
fn a_good_token_is_accepted() {
    let (key, _) = SigningKey::generate().unwrap();
    let token = key.sign(named("k1"), &claims()).unwrap();
    assert_eq!(verdict(&token, &keys(&key, "k1")), Ok(claims()));
}

/// AUTH06-07, SEC-05: expired, not yet valid, or with another audience, issuer or key.
#[test]
fn claims_that_do_not_match_are_rejected() {
    let (key, _) = SigningKey::generate().unwrap();
    let keys = keys(&key, "k1");
    let refused = |change: fn(&mut Claims)| {
        let mut claims = claims();
        change(&mut claims);
        verdict(&key.sign(named("k1"), &claims).unwrap(), &keys).unwrap_err()
    };
    assert_eq!(
        refused(|claims| claims.exp = Some(NOW - 60)),
        JwtError::Expired
    );
    assert_eq!(refused(|claims| claims.exp = None), JwtError::Expired);
    assert_eq!(
        refused(|claims| claims.nbf = Some(NOW + 61)),
        JwtError::NotYet
    );
    assert_eq!(
        refused(|claims| claims.iat = Some(NOW + 61)),
        JwtError::NotYet
    );
    assert_eq!(
        refused(|claims| claims.aud = Audience::One("https://s.example".to_owned())),
        JwtError::Audience
    );
    assert_eq!(
        refused(|claims| claims.aud = Audience::default()),
        JwtError::Audience
    );
    assert_eq!(
        refused(|claims| claims.iss = format!("{ISSUER}/")),
        JwtError::Issuer
    );
}

#[test]
fn keys_are_not_confused() {
    let (key, _) = SigningKey::generate().unwrap();
    let (other, _) = SigningKey::generate().unwrap();
    let known = keys(&key, "k1");
    let by_other = other.sign(named("k1"), &claims()).unwrap();
    assert_eq!(verdict(&by_other, &known), Err(JwtError::Signature));
    let unknown = key.sign(named("k2"), &claims()).unwrap();
    assert_eq!(verdict(&unknown, &known), Err(JwtError::UnknownKey));

    // The public key as the secret of an HMAC, and no signature at all.
    let public = serde_json::to_vec(&known.keys[0]).unwrap();
    let secret = EncodingKey::from_secret(&public);
    let confused = jsonwebtoken::encode(&Header::default(), &claims(), &secret).unwrap();
    assert_eq!(verdict(&confused, &known), Err(JwtError::Algorithm));
    let payload = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&claims()).unwrap());
    let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
    assert_eq!(
        verdict(&format!("{header}.{payload}."), &known),
        Err(JwtError::Malformed)
    );
}

#[test]
fn long_tokens_and_critical_extensions_are_rejected() {
    let (key, _) = SigningKey::generate().unwrap();
    let known = keys(&key, "k1");
    let mut long = claims();
    long.sub = Some("x".repeat(MAX_TOKEN_BYTES));
    let long = key.sign(named("k1"), &long).unwrap();
    assert_eq!(verdict(&long, &known), Err(JwtError::Malformed));
    let mut header = named("k1");
    header.crit = Some(vec!["exp".to_owned()]);
    let critical = key.sign(header, &claims()).unwrap();
    assert_eq!(verdict(&critical, &known), Err(JwtError::Malformed));
}

#[test]
fn the_type_must_be_the_expected_one() {
    let (key, _) = SigningKey::generate().unwrap();
    let known = keys(&key, "k1");
    let mut expected = Expected::new(ISSUER, &[SERVER]);
    expected.typ = Some("at+jwt");
    let mut header = named("k1");
    let token = key.sign(header.clone(), &claims()).unwrap();
    assert_eq!(verify(&token, &known, &expected, NOW), Err(JwtError::Type));
    header.typ = Some("application/at+jwt".to_owned());
    let token = key.sign(header, &claims()).unwrap();
    assert!(verify(&token, &known, &expected, NOW).is_ok());
}

/// SEC-05, RFC 7519 §4.1.3: this server must be one of the audiences, whatever the others are.
#[test]
fn a_list_of_audiences_must_name_this_server() {
    let (key, _) = SigningKey::generate().unwrap();
    let known = keys(&key, "k1");
    let judged = |audiences: &[&str]| {
        let mut claims = claims();
        claims.aud = Audience::Several(audiences.iter().map(|&name| name.to_owned()).collect());
        verdict(&key.sign(named("k1"), &claims).unwrap(), &known)
    };
    let other = "https://other.example/mcp";
    assert!(judged(&[SERVER]).is_ok());
    assert!(judged(&[other, SERVER]).is_ok());
    assert_eq!(judged(&[other]), Err(JwtError::Audience));
    assert_eq!(judged(&[other, ""]), Err(JwtError::Audience));
    assert_eq!(judged(&[]), Err(JwtError::Audience));
}

/// The clock of the issuer may be a minute ahead or behind, and not more.
#[test]
fn the_tolerated_clock_skew_is_a_minute() {
    let (key, _) = SigningKey::generate().unwrap();
    let known = keys(&key, "k1");
    let accepted = |change: fn(&mut Claims)| {
        let mut claims = claims();
        change(&mut claims);
        verdict(&key.sign(named("k1"), &claims).unwrap(), &known).is_ok()
    };
    assert!(accepted(|claims| claims.exp = Some(NOW - 59)));
    assert!(!accepted(|claims| claims.exp = Some(NOW - 60)));
    assert!(accepted(|claims| claims.nbf = Some(NOW + 60)));
    assert!(!accepted(|claims| claims.nbf = Some(NOW + 61)));
    assert!(accepted(|claims| claims.iat = Some(NOW + 60)));
}

/// A token of exactly the limit is parsed.
#[test]
fn the_longest_token_is_16_kib() {
    let (key, _) = SigningKey::generate().unwrap();
    let known = keys(&key, "k1");
    let of_length = |length: usize| {
        let mut claims = claims();
        // Base64 makes four characters of three; the header is padded to reach every length.
        let mut header = named("k1");
        for padding in 0..4 {
            header.cty = Some("x".repeat(padding));
            claims.sub = Some(String::new());
            let rest = key.sign(header.clone(), &claims).unwrap().len();
            for fill in (length - rest) * 3 / 4 - 2..=(length - rest) * 3 / 4 + 2 {
                claims.sub = Some("x".repeat(fill));
                let token = key.sign(header.clone(), &claims).unwrap();
                if token.len() == length {
                    return token;
                }
            }
        }
        panic!("no token has {length} bytes");
    };
    assert!(verdict(&of_length(16 * 1024), &known).is_ok());
    let longer = verdict(&of_length(16 * 1024 + 1), &known);
    assert_eq!(longer, Err(JwtError::Malformed));
}
