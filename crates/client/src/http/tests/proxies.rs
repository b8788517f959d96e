//! Proxies.

use http::Uri;
use http::header::{HeaderValue, PROXY_AUTHORIZATION};

use super::peer::Peer;
use super::security::{TestAuthority, accept_tls};
use super::{get, options, post};
use crate::http::{HttpClient, HttpClientOptions, HttpError, ProxyRules};

const EMPTY: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

fn rules(variables: &[(&str, &str)]) -> ProxyRules {
    ProxyRules::from_variables(|name| {
        let (_, value) = variables.iter().find(|(variable, _)| *variable == name)?;
        Some((*value).to_owned())
    })
}

fn options_with(proxy: &str) -> HttpClientOptions {
    HttpClientOptions {
        proxies: rules(&[("ALL_PROXY", proxy)]),
        ..options()
    }
}

/// The proxy that the rules choose for a URL.
fn chosen(rules: &ProxyRules, url: &str) -> Option<String> {
    let proxy = rules.proxy(&url.parse::<Uri>().unwrap())?;
    Some(proxy.uri().to_string())
}

#[tokio::test]
async fn a_plain_request_is_handed_to_the_proxy_with_its_whole_url_and_the_proxys_password() {
    let proxy = Peer::bind().await;
    let options = options_with(&format!("http://user:pass@{}", proxy.address));
    let client = HttpClient::new(&options).unwrap();
    let (response, request) =
        tokio::join!(client.send(post("http://mcp.invalid/a?b=c", "{}")), async {
            let mut link = proxy.accept().await;
            let request = link.request().await;
            link.write(EMPTY).await;
            request
        });
    assert_eq!(response.unwrap().status, 200);
    assert!(request.starts_with("POST http://mcp.invalid/a?b=c HTTP/1.1\r\n"));
    assert!(request.contains("\r\nhost: mcp.invalid\r\n"));
    assert!(request.contains("\r\nproxy-authorization: Basic dXNlcjpwYXNz\r\n"));
}

/// TRAP-38.
#[tokio::test]
async fn a_secure_request_goes_through_a_tunnel_that_alone_shows_the_proxys_password() {
    let authority = TestAuthority::new();
    let proxy = Peer::bind().await;
    let mut options = options_with(&format!("http://user:pass@{}", proxy.address));
    options.extra_roots = Some(authority.pem());
    let client = HttpClient::new(&options).unwrap();
    let (response, (connect, request)) =
        tokio::join!(client.send(post("https://mcp.invalid/a", "{}")), async {
            let mut link = proxy.accept().await;
            let connect = link.request().await;
            link.write("HTTP/1.1 200 Connected\r\n\r\n").await;
            let certificate = authority.issue("mcp.invalid");
            let mut link = accept_tls(link.into_inner(), certificate).await.unwrap();
            let request = link.request().await;
            link.write(EMPTY).await;
            (connect, request)
        });
    assert_eq!(response.unwrap().status, 200);
    assert!(connect.starts_with("CONNECT mcp.invalid:443 HTTP/1.1\r\n"));
    assert!(connect.contains("\r\nProxy-Authorization: Basic dXNlcjpwYXNz\r\n"));
    assert!(request.starts_with("POST /a HTTP/1.1\r\n"));
    assert!(!request.to_ascii_lowercase().contains("proxy-authorization"));
}

#[tokio::test]
async fn a_proxy_that_opens_no_tunnel_is_named() {
    let proxy = Peer::bind().await;
    let client = HttpClient::new(&options_with(&proxy.url("/"))).unwrap();
    let (error, ()) = tokio::join!(client.send(get("https://mcp.invalid/")), async {
        let mut link = proxy.accept().await;
        link.request().await;
        link.write("HTTP/1.1 407 Who are you\r\ncontent-length: 0\r\n\r\n")
            .await;
    });
    let error = error.unwrap_err();
    assert!(matches!(error, HttpError::Proxy { .. }), "{error:?}");
    assert!(error.is_connect());
    assert_eq!(
        error.to_string(),
        format!(
            "cannot connect to https://mcp.invalid:443 through the proxy http://{}",
            proxy.address
        )
    );
}

#[tokio::test]
async fn a_proxy_of_an_unknown_kind_is_not_gone_around() {
    let client = HttpClient::new(&options_with("socks5://127.0.0.1:1080")).unwrap();
    let error = client.send(get("http://mcp.invalid/")).await.unwrap_err();
    let HttpError::Connect { source, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(source.to_string(), "the proxy is not an http or https one");
}

#[tokio::test]
async fn this_machine_is_reached_without_a_proxy() {
    let proxy = Peer::bind().await;
    let server = Peer::bind().await;
    let url = server.url("/a");
    let options = options_with(&format!("http://user:pass@{}", proxy.address));
    let client = HttpClient::new(&options).unwrap();
    let (response, request) = tokio::join!(client.send(get(&url)), async {
        let mut link = server.accept().await;
        let request = link.request().await;
        link.write(EMPTY).await;
        request
    });
    assert_eq!(response.unwrap().status, 200);
    assert!(request.starts_with("GET /a HTTP/1.1\r\n"));
    assert!(!request.to_ascii_lowercase().contains("proxy"));
}

#[test]
fn the_rules_are_those_of_the_variables() {
    let by_scheme = rules(&[
        ("HTTP_PROXY", "plain.invalid:1"),
        ("HTTPS_PROXY", ""),
        ("https_proxy", "http://secure.invalid:2"),
        ("no_proxy", "internal.invalid, 10.0.0.0/8"),
    ]);
    for (url, proxy) in [
        ("http://mcp.invalid/", Some("http://plain.invalid:1/")),
        ("https://mcp.invalid/", Some("http://secure.invalid:2/")),
        ("https://internal.invalid/", None),
        ("https://a.internal.invalid/", None),
        (
            "https://notinternal.invalid/",
            Some("http://secure.invalid:2/"),
        ),
        ("http://10.1.2.3/", None),
        ("http://11.1.2.3/", Some("http://plain.invalid:1/")),
        ("http://localhost/", None),
        ("http://app.LOCALHOST:3000/", None),
        ("http://127.0.0.2/", None),
        ("http://[::1]:8080/", None),
        ("https://[::ffff:127.0.0.1]/", None),
        ("http://localhost.invalid/", Some("http://plain.invalid:1/")),
    ] {
        assert_eq!(chosen(&by_scheme, url).as_deref(), proxy, "{url}");
    }
    let all = rules(&[("all_proxy", "http://any.invalid:3"), ("NO_PROXY", "")]);
    assert!(chosen(&all, "http://mcp.invalid/").is_some());
    assert!(chosen(&all, "https://mcp.invalid/").is_some());
    let none = rules(&[("ALL_PROXY", "http://any.invalid:3"), ("NO_PROXY", "*")]);
    assert_eq!(chosen(&none, "http://mcp.invalid/"), None);
    let unusable = rules(&[("ALL_PROXY", "ftp://any.invalid:3")]);
    assert_eq!(chosen(&unusable, "http://mcp.invalid/"), None);
    assert_eq!(chosen(&ProxyRules::none(), "http://mcp.invalid/"), None);
}

#[test]
fn the_password_of_a_proxy_does_not_show() {
    let options = options_with("http://user:s3cret@proxy.invalid:1");
    let client = HttpClient::new(&options).unwrap();
    let shown = format!("{options:?} {client:?}");
    assert!(shown.contains("proxy.invalid"));
    assert!(!shown.contains("s3cret"));
}

#[tokio::test]
async fn a_proxy_authorization_of_the_caller_is_kept() {
    let proxy = Peer::bind().await;
    let options = options_with(&format!("http://user:pass@{}", proxy.address));
    let client = HttpClient::new(&options).unwrap();
    let mut request = get("http://mcp.invalid/");
    let mine = HeaderValue::from_static("Bearer mine");
    request.headers_mut().insert(PROXY_AUTHORIZATION, mine);
    let (response, request) = tokio::join!(client.send(request), async {
        let mut link = proxy.accept().await;
        let request = link.request().await;
        link.write(EMPTY).await;
        request
    });
    response.unwrap();
    assert!(request.contains("\r\nproxy-authorization: Bearer mine\r\n"));
    assert!(!request.contains("Basic"));
}
