//! TLS, redirects and credentials.

use std::io;
use std::pin::pin;
use std::process::Stdio;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{AUTHORIZATION, LOCATION};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::peer::{Link, Peer};
use super::{client, get, options};
use crate::http::{HttpClient, HttpClientError, HttpClientOptions, HttpError, Origin};

const EMPTY: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
pub(super) const THIS_HOST: &str = "127.0.0.1";

/// A certificate authority that is not in the system's store.
pub(super) struct TestAuthority(CertifiedIssuer<'static, KeyPair>);

/// A server's certificate and its key.
pub(super) struct Certificate(CertificateDer<'static>, KeyPair);

impl TestAuthority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    pub(super) fn pem(&self) -> Bytes {
        self.0.pem().into()
    }

    pub(super) fn issue(&self, name: &str) -> Certificate {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Certificate(certificate.der().clone(), key)
    }
}

/// The server's side of a TLS handshake, on a connection that speaks HTTP/1.1.
pub(super) async fn accept_tls(
    stream: TcpStream,
    certificate: Certificate,
) -> io::Result<Link<TlsStream<TcpStream>>> {
    let stream = accept_tls_with_alpn(stream, certificate, &["http/1.1"]).await?;
    Ok(Link::new(stream))
}

/// The server's side of a TLS handshake with these protocols to choose from.
pub(super) async fn accept_tls_with_alpn(
    stream: TcpStream,
    Certificate(certificate, key): Certificate,
    protocols: &[&str],
) -> io::Result<TlsStream<TcpStream>> {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    config.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    TlsAcceptor::from(Arc::new(config)).accept(stream).await
}

/// The outcome of a request to a server with a certificate of this authority for this name.
async fn outcome(
    client: &HttpClient,
    authority: &TestAuthority,
    name: &str,
) -> Result<Bytes, HttpError> {
    let peer = Peer::bind().await;
    let url = format!("https://{}/", peer.address);
    let requesting = async { client.send(get(&url)).await?.bytes().await };
    let (outcome, ()) = tokio::join!(requesting, serve_tls(&peer, authority.issue(name)));
    outcome
}

/// Answers one request, if the client trusts us.
async fn serve_tls(peer: &Peer, certificate: Certificate) {
    let stream = peer.accept().await.into_inner();
    if let Ok(mut link) = accept_tls(stream, certificate).await {
        link.request().await;
        link.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
            .await;
    }
}

pub(super) fn trusting(pem: Bytes) -> HttpClientOptions {
    HttpClientOptions {
        extra_roots: Some(pem),
        ..options()
    }
}

/// TRAP-37.
#[tokio::test]
async fn a_certificate_of_an_extra_root_is_trusted() {
    let authority = TestAuthority::new();
    let client = HttpClient::new(&trusting(authority.pem())).unwrap();
    let body = outcome(&client, &authority, THIS_HOST).await;
    assert_eq!(body.unwrap(), "ok");
}

#[tokio::test]
async fn certificates_of_unknown_issuers_or_other_names_are_refused() {
    let authority = TestAuthority::new();
    let other = TestAuthority::new();
    let knowing = HttpClient::new(&trusting(authority.pem())).unwrap();
    for (client, issuer, name) in [
        (&client(), &authority, THIS_HOST),
        (&knowing, &other, THIS_HOST),
        (&knowing, &authority, "mcp.invalid"),
    ] {
        let error = outcome(client, issuer, name).await.unwrap_err();
        assert!(matches!(error, HttpError::Tls { .. }), "{error:?}");
        assert!(error.is_connect(), "nothing was sent");
    }
}

#[tokio::test]
async fn a_plain_server_under_a_secure_url_is_a_tls_error() {
    let peer = Peer::bind().await;
    let url = format!("https://{}/", peer.address);
    let client = client();
    let (error, ()) = tokio::join!(client.send(get(&url)), async {
        peer.accept().await.write("HTTP/1.1 400 Bad\r\n\r\n").await;
    });
    let error = error.unwrap_err();
    assert!(matches!(error, HttpError::Tls { .. }), "{error:?}");
}

#[test]
fn invalid_extra_roots_are_an_error() {
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let unended = "-----BEGIN CERTIFICATE-----\nAAAA\n";
    for pem in [broken, unended] {
        let error = HttpClient::new(&trusting(pem.into())).unwrap_err();
        assert!(matches!(error, HttpClientError::BadRoots(_)), "{error:?}");
    }
    let error = HttpClient::new(&trusting("no pem at all".into())).unwrap_err();
    assert!(matches!(error, HttpClientError::NoRoots));
}

#[tokio::test]
async fn a_redirect_is_given_back_and_not_followed() {
    let elsewhere = Peer::bind().await;
    let peer = Peer::bind().await;
    let url = peer.url("/");
    let location = elsewhere.url("/");
    let mut request = get(&url);
    let secret = "Bearer s3cret".parse().unwrap();
    request.headers_mut().insert(AUTHORIZATION, secret);
    let client = client();
    for status in [301, 302, 303, 307, 308] {
        let (response, ()) = tokio::join!(client.send(request.clone()), async {
            let mut link = peer.accept().await;
            link.request().await;
            let answer = format!(
                "HTTP/1.1 {status} Away\r\nlocation: {location}\r\nconnection: close\r\n\r\n"
            );
            link.write(answer).await;
        });
        let response = response.unwrap();
        assert_eq!(response.status, status);
        assert_eq!(response.headers[LOCATION], location);
        response.bytes().await.unwrap();
    }
}

#[tokio::test]
async fn nothing_is_added_to_a_request_and_no_cookie_kept() {
    let client = client();
    let peer = Peer::bind().await;
    let url = peer.url("/mcp?x=y");
    for _ in 0..2 {
        let (response, request) = tokio::join!(client.send(get(&url)), async {
            let mut link = peer.accept().await;
            let request = link.request().await;
            link.write("HTTP/1.1 200 OK\r\nset-cookie: a=b\r\nconnection: close\r\n\r\n")
                .await;
            request
        });
        response.unwrap().bytes().await.unwrap();
        let expected = format!("GET /mcp?x=y HTTP/1.1\r\nhost: {}\r\n\r\n", peer.address);
        assert_eq!(request, expected);
    }
}

#[tokio::test]
async fn credentials_in_a_url_are_refused_and_not_repeated() {
    let error = client()
        .send(get("http://user:s3cret@127.0.0.1:1/"))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the url of http://127.0.0.1:1 holds a user name or password, \
         which belong in an authorization header"
    );
    assert!(!format!("{error:?}").contains("s3cret"));
    assert!(!error.is_connect(), "sending it again is of no use");
}

#[tokio::test]
async fn a_url_that_is_not_http_is_refused() {
    for url in [
        "/mcp",
        "ftp://127.0.0.1/",
        "ws://127.0.0.1/",
        "127.0.0.1:80",
    ] {
        let error = client().send(get(url)).await.unwrap_err();
        assert!(matches!(error, HttpError::NotHttp), "{url}: {error:?}");
    }
}

#[test]
fn an_origin_is_scheme_host_and_port() {
    let origin = |url: &str| Origin::of(&url.parse().unwrap()).unwrap();
    assert_eq!(
        origin("https://MCP.invalid/a?b"),
        origin("https://mcp.invalid:443/c")
    );
    assert_ne!(
        origin("http://mcp.invalid/"),
        origin("https://mcp.invalid/")
    );
    assert_ne!(
        origin("http://mcp.invalid/"),
        origin("http://mcp.invalid:81/")
    );
    assert_eq!(origin("http://[::1]/a?b=c").to_string(), "http://[::1]:80");
    assert!(origin("https://mcp.invalid/").is_secure());
    assert!(origin("http://[::1]:1/").is_loopback());
    assert!(origin("http://localhost/").is_loopback());
    assert!(!origin("http://0.0.0.0/").is_loopback());
    assert!(!origin("http://127.0.0.1.invalid/").is_loopback());
}

/// Asks the server that the environment names, when the test below starts this one again.
#[tokio::test]
async fn request_with_the_settings_of_the_environment() {
    let Some(url) = std::env::var_os("PLEXUS_TEST_URL") else {
        return;
    };
    let client = HttpClient::new(&HttpClientOptions::default()).unwrap();
    let response = client.send(get(url.to_str().unwrap())).await.unwrap();
    assert_eq!(response.status, 200);
}

/// Runs the test above with these variables, and no others that matter to it.
async fn request_in_environment(variables: &[(&str, &str)]) -> bool {
    #[expect(
        clippy::disallowed_methods,
        reason = "the environment of this process cannot be changed safely"
    )]
    let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
    for name in [
        "NO_PROXY",
        "no_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
    ] {
        command.env_remove(name);
    }
    let module = module_path!().split_once("::").unwrap().1;
    let name = format!("{module}::request_with_the_settings_of_the_environment");
    command
        .args(["--exact", &name])
        .envs(variables.iter().copied())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    command.status().await.unwrap().success()
}

/// TRAP-37: the store of the system is what `SSL_CERT_FILE` names, where it names one.
#[tokio::test]
async fn the_certificates_of_the_environment_are_trusted() {
    let authority = TestAuthority::new();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, authority.pem()).unwrap();
    let path = file.path().to_str().unwrap();
    let peer = Peer::bind().await;
    let url = format!("https://{}/", peer.address);
    let variables = [("PLEXUS_TEST_URL", &*url), ("SSL_CERT_FILE", path)];
    let certificate = authority.issue(THIS_HOST);
    let mut child = pin!(request_in_environment(&variables));
    tokio::select! {
        _ = &mut child => panic!("ended without asking"),
        () = serve_tls(&peer, certificate) => {}
    }
    assert!(child.await);
}

#[tokio::test]
async fn the_proxy_of_the_environment_is_used() {
    let proxy = Peer::bind().await;
    let proxy_url = proxy.url("");
    let variables = [
        ("PLEXUS_TEST_URL", "http://mcp.invalid/a"),
        ("http_proxy", &*proxy_url),
    ];
    let mut child = pin!(request_in_environment(&variables));
    let request = tokio::select! {
        _ = &mut child => panic!("ended without asking"),
        request = async {
            let mut link = proxy.accept().await;
            let request = link.request().await;
            link.write(EMPTY).await;
            request
        } => request,
    };
    assert!(request.starts_with("GET http://mcp.invalid/a HTTP/1.1\r\n"));
    assert!(child.await);
}

/// TRAP-38
#[tokio::test]
async fn the_proxy_for_secure_requests_is_used_for_them() {
    let proxy = Peer::bind().await;
    let proxy_url = proxy.url("");
    let variables = [
        ("PLEXUS_TEST_URL", "https://mcp.invalid/a"),
        ("HTTPS_PROXY", &*proxy_url),
    ];
    let mut child = pin!(request_in_environment(&variables));
    let request = tokio::select! {
        _ = &mut child => panic!("ended without asking"),
        request = async {
            let mut link = proxy.accept().await;
            let request = link.request().await;
            link.write(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n").await;
            request
        } => request,
    };
    let expected = "CONNECT mcp.invalid:443 HTTP/1.1\r\n";
    assert!(request.starts_with(expected), "{request}");
    assert!(!child.await, "there is no way around the proxy");
}
