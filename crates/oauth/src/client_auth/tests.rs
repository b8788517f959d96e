use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::Algorithm;
use jsonwebtoken::jwk::JwkSet;

use super::*;
use crate::ambient::tests::FixedAmbient;
use crate::jwt::{Claims, Expected, signed_claims, verify};

const NOW: u64 = 1_000_000;
const ISSUER: &str = "https://as.example";
const TOKEN_ENDPOINT: &str = "https://tokens.example/token";

fn server(methods: Option<&[&str]>) -> ServerMetadata {
    let mut server = ServerMetadata::new(ISSUER);
    server.token_endpoint_auth_methods_supported =
        methods.map(|methods| methods.iter().map(|&name| name.to_owned()).collect());
    server
}

#[test]
fn a_client_authenticates_with_the_credentials_that_it_has() {
    let all = server(Some(&[
        "none",
        "client_secret_post",
        "client_secret_basic",
        "private_key_jwt",
    ]));
    for server in [server(None), all] {
        for (has_secret, has_key, expected) in [
            (false, false, AuthMethod::None),
            (true, false, AuthMethod::Basic),
            (false, true, AuthMethod::PrivateKeyJwt),
            (true, true, AuthMethod::PrivateKeyJwt),
        ] {
            let chosen = AuthMethod::choose(&server, has_secret, has_key).unwrap();
            assert_eq!(chosen, expected, "secret {has_secret}, key {has_key}");
        }
    }
    let post = server(Some(&["client_secret_post"]));
    let chosen = AuthMethod::choose(&post, true, false).unwrap();
    assert_eq!(chosen, AuthMethod::Post);
}

/// A client with credentials never falls back to a request without them.
#[test]
fn only_a_client_without_credentials_may_use_an_unlisted_method() {
    let basic = server(Some(&["client_secret_basic"]));
    let chosen = AuthMethod::choose(&basic, false, false).unwrap();
    assert_eq!(chosen, AuthMethod::None);
    for (has_secret, has_key, methods) in [
        (true, false, "none"),
        (true, false, "private_key_jwt"),
        (false, true, "client_secret_basic"),
        (true, true, "client_secret_basic"),
    ] {
        let refused = AuthMethod::choose(&server(Some(&[methods])), has_secret, has_key);
        let error = refused.unwrap_err();
        assert!(
            matches!(&error, OAuthError::Unsupported { issuer, .. } if issuer == ISSUER),
            "{methods}: {error:?}"
        );
    }
}

#[test]
fn a_new_registration_prefers_a_public_client() {
    for (methods, expected) in [
        (None, AuthMethod::None),
        (Some(&["client_secret_post", "none"][..]), AuthMethod::None),
        (
            Some(&["client_secret_post", "client_secret_basic"]),
            AuthMethod::Basic,
        ),
        (Some(&["client_secret_post"]), AuthMethod::Post),
    ] {
        let chosen = AuthMethod::to_register(&server(methods)).unwrap();
        assert_eq!(chosen, expected, "{methods:?}");
    }
    let refused = AuthMethod::to_register(&server(Some(&["private_key_jwt"])));
    assert!(matches!(refused, Err(OAuthError::Unsupported { .. })));
}

/// A client with a key, and its public key.
fn client_with_key(issuer: &str) -> (Registration, JwkSet) {
    let (key, der) = SigningKey::generate().unwrap();
    let pem = format!(
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
        der.expose()
    );
    let mut public = key.public().unwrap();
    public.common.key_id = Some("k1".to_owned());
    let mut client = Registration::public(issuer, "the client");
    client.method = AuthMethod::PrivateKeyJwt;
    client.key = Some(ClientKey {
        pem: Secret::new(pem),
        algorithm: "ES256".to_owned(),
        key_id: Some("k1".to_owned()),
    });
    (client, JwkSet { keys: vec![public] })
}

/// The fields of the token request of `client`, and its `Authorization` header.
fn request_of(client: &Registration) -> (Vec<(String, String)>, Option<String>) {
    let (mut form, mut headers) = (Form::default(), HeaderMap::new());
    let ambient = FixedAmbient::at(NOW);
    authenticate(client, TOKEN_ENDPOINT, &mut form, &mut headers, &ambient).unwrap();
    let fields = form.fields().collect();
    let header = headers.get(AUTHORIZATION);
    (
        fields,
        header.map(|value| value.to_str().unwrap().to_owned()),
    )
}

/// RFC 7523 §3, AUTH26-07: the assertion is signed by the client, is for this issuer only, lives for
/// two minutes and is used once.
#[test]
fn a_client_assertion_is_for_one_issuer_and_one_request() {
    for (issuer, audience) in [(ISSUER, ISSUER), ("", TOKEN_ENDPOINT)] {
        let (client, keys) = client_with_key(issuer);
        let (fields, header) = request_of(&client);
        assert_eq!(header, None);
        let [id, kind, assertion] = &fields[..] else {
            panic!("{fields:?}");
        };
        assert_eq!(id, &("client_id".to_owned(), "the client".to_owned()));
        let kind = (kind.0.as_str(), kind.1.as_str());
        assert_eq!(kind, ("client_assertion_type", ASSERTION_TYPE));
        assert_eq!(assertion.0, "client_assertion");
        let audiences = [audience];
        let expected = Expected::new("the client", &audiences);
        let claims = verify(&assertion.1, &keys, &expected, NOW).unwrap();
        assert_eq!(claims.sub.as_deref(), Some("the client"));
        assert_eq!(claims.iat, Some(NOW));
        assert_eq!(claims.exp, Some(NOW + 120));
        let first: Claims = signed_claims(&assertion.1, &keys.keys[0], Algorithm::ES256).unwrap();
        let jti = first.jti.unwrap();
        assert_eq!(URL_SAFE_NO_PAD.decode(&jti).unwrap().len(), 32);

        let ambient = FixedAmbient::at(NOW);
        let both = [(); 2].map(|()| client_assertion(&client, TOKEN_ENDPOINT, &ambient).unwrap());
        let ids = both.map(|token| {
            let claims = verify(&token, &keys, &expected, NOW).unwrap();
            claims.jti
        });
        assert_ne!(ids[0], ids[1], "every assertion has an id of its own");
    }
}

#[test]
fn a_secret_is_sent_in_one_place() {
    let mut client = Registration::public(ISSUER, "a client");
    let (fields, header) = request_of(&client);
    assert_eq!(fields, [("client_id".to_owned(), "a client".to_owned())]);
    assert_eq!(header, None);

    client.client_secret = Some(Secret::new("s:cret&"));
    client.method = AuthMethod::Post;
    let (fields, header) = request_of(&client);
    assert_eq!(
        fields[1],
        ("client_secret".to_owned(), "s:cret&".to_owned())
    );
    assert_eq!((fields.len(), header), (2, None));

    client.method = AuthMethod::Basic;
    let (fields, header) = request_of(&client);
    assert_eq!(fields, []);
    let credentials = STANDARD.encode("a+client:s%3Acret%26");
    assert_eq!(header, Some(format!("Basic {credentials}")));
}

#[test]
fn missing_credentials_are_an_error() {
    for method in [
        AuthMethod::Basic,
        AuthMethod::Post,
        AuthMethod::PrivateKeyJwt,
    ] {
        let mut client = Registration::public(ISSUER, "a client");
        client.method = method;
        let (mut form, mut headers) = (Form::default(), HeaderMap::new());
        let ambient = FixedAmbient::at(NOW);
        let refused = authenticate(&client, TOKEN_ENDPOINT, &mut form, &mut headers, &ambient);
        assert!(refused.is_err(), "{method:?}");
    }
}
