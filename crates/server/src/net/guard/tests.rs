//! SEC-01, HTTP26-02, HTTPL-02, case by case.

use http::HeaderValue;

use super::*;

fn loopback() -> Guard {
    Guard::new(&["127.0.0.1:8080", "[::1]:8080"].map(|address| address.parse().unwrap()))
}

fn public() -> Guard {
    Guard::new(&["127.0.0.1:8080", "0.0.0.0:8080"].map(|address| address.parse().unwrap()))
}

fn host(text: &str) -> Host {
    text.parse().unwrap()
}

fn origin(text: &str) -> Origin {
    text.parse().unwrap()
}

fn check(guard: &Guard, headers: &[(HeaderName, &str)]) -> Result<(), Refusal> {
    let headers = headers.iter().map(|(name, value)| {
        let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
        (name.clone(), value)
    });
    guard.check(&Uri::from_static("/mcp"), &headers.collect())
}

fn status(guard: &Guard, host: &str, origin: Option<&str>) -> u16 {
    let mut headers = vec![(HOST, host)];
    headers.extend(origin.map(|origin| (ORIGIN, origin)));
    match check(guard, &headers) {
        Ok(()) => 200,
        Err(refusal) => refusal.status().as_u16(),
    }
}

#[test]
fn on_loopback_only_local_hosts_are_ours() {
    let cases = [
        ("localhost", 200),
        ("localhost:8080", 200),
        ("localhost:1", 200),
        ("LOCALHOST:8080", 200),
        ("127.0.0.1", 200),
        ("127.0.0.1:65535", 200),
        ("127.0.0.2", 200),
        ("[::1]", 200),
        ("[::1]:8080", 200),
        ("[0:0:0:0:0:0:0:1]:8080", 200),
        ("evil.example.com", 403),
        ("evil.example.com:8080", 403),
        ("localhost.evil.com", 403),
        ("evil.localhost", 403),
        ("127.0.0.1.nip.io", 403),
        ("127.0.0.1.nip.io:8080", 403),
        ("localhost.", 403),
        ("127.0.0.1.", 403),
        ("127.1", 403),
        ("2130706433", 403),
        ("0x7f000001", 403),
        ("0.0.0.0:8080", 403),
        ("192.168.0.1", 403),
        ("[::]", 403),
        ("[2001:db8::1]:8080", 403),
        ("[::ffff:127.0.0.1]", 403),
        ("", 400),
        ("localhost:", 400),
        ("localhost:+80", 400),
        ("localhost:65536", 400),
        ("localhost:80:80", 400),
        ("localhost:80@evil.com", 400),
        ("user@localhost", 400),
        ("user:password@localhost", 400),
        ("evil.com\\@localhost", 400),
        ("localhost/path", 400),
        ("localhost#evil.com", 400),
        ("local host", 400),
        ("localhost,evil.com", 400),
        ("::1", 400),
        ("[::1", 400),
        ("[::1]x", 400),
        ("[::1%25lo]", 400),
        ("[127.0.0.1]", 400),
        ("löcalhost", 400),
        (":8080", 400),
    ];
    for (host, expected) in cases {
        assert_eq!(status(&loopback(), host, None), expected, "Host: {host}");
    }
}

/// Where callers are not authenticated, another program of this machine must not be able to have its
/// pages use the server.
#[test]
fn on_loopback_pages_of_other_ports_are_not_ours() {
    let cases = [
        ("localhost:8080", "http://localhost:8080", 200),
        ("127.0.0.1:8080", "http://localhost:8080", 200),
        ("localhost:9000", "http://localhost:9000", 200),
        ("localhost:8080", "http://localhost", 403),
        ("localhost:8080", "http://localhost:6274", 403),
        ("127.0.0.1:8080", "http://127.0.0.1:3000", 403),
        ("localhost:8080", "ftp://localhost:8080", 403),
    ];
    for (host, origin, expected) in cases {
        let found = status(&loopback(), host, Some(origin));
        assert_eq!(found, expected, "Host: {host}, Origin: {origin}");
    }
}

#[test]
fn on_loopback_only_local_pages_may_call() {
    let mut guard = loopback();
    guard.trust_local_pages();
    let cases = [
        ("http://localhost", 200),
        ("http://localhost:6274", 200),
        ("https://localhost:6274", 200),
        ("HTTP://LocalHost:6274", 200),
        ("http://127.0.0.1:3000", 200),
        ("http://[::1]:3000", 200),
        ("http://evil.example.com", 403),
        ("https://localhost.evil.com", 403),
        ("http://127.0.0.1.nip.io", 403),
        ("http://localhost.", 403),
        ("http://localhost@evil.com", 403),
        ("http://evil.com@localhost", 403),
        ("http://evil.com#@localhost", 403),
        ("http://localhost/", 403),
        ("http://localhost/path", 403),
        ("http://localhost http://evil.com", 403),
        ("file://localhost", 403),
        ("chrome-extension://abcdefghijklmnop", 403),
        ("://localhost", 403),
        ("http://", 403),
        ("localhost", 403),
        ("null", 403),
        ("*", 403),
        ("", 403),
        ("http://löcalhost", 403),
    ];
    for (origin, expected) in cases {
        let found = status(&guard, "localhost:8080", Some(origin));
        assert_eq!(found, expected, "Origin: {origin}");
    }
}

#[test]
fn on_loopback_a_foreign_host_is_refused_whatever_the_origin() {
    let local = Some("http://localhost");
    let same = Some("http://evil.example.com");
    for origin in [None, local, same] {
        assert_eq!(status(&loopback(), "evil.example.com", origin), 403);
    }
}

#[test]
fn configured_hosts_and_origins_are_allowed() {
    let guard = loopback()
        .allow_host(host("Plexus.Example.com"))
        .allow_host(host("other.example.com:8443"))
        .allow_origin(origin("https://app.example.com:443"))
        .allow_origin(origin("vscode-webview://abc"));
    let hosts = [
        ("localhost", 200),
        ("plexus.example.com", 200),
        ("plexus.example.com:9000", 200),
        ("other.example.com:8443", 200),
        ("other.example.com", 403),
        ("other.example.com:8444", 403),
        ("plexus.example.com.", 403),
        ("a.plexus.example.com", 403),
    ];
    for (host, expected) in hosts {
        assert_eq!(status(&guard, host, None), expected, "Host: {host}");
    }
    let origins = [
        ("https://app.example.com", 200),
        ("https://APP.example.com:443", 200),
        ("vscode-webview://abc", 200),
        ("http://localhost:6274", 403),
        ("http://app.example.com", 403),
        ("https://app.example.com:8443", 403),
        ("https://app.example.com.evil.com", 403),
        ("vscode-webview://abcd", 403),
    ];
    for (origin, expected) in origins {
        let found = status(&guard, "localhost:8080", Some(origin));
        assert_eq!(found, expected, "Origin: {origin}");
    }
}

#[test]
fn in_public_any_host_is_ours_until_some_are_allowed() {
    let named = public().allow_host(host("plexus.example.com"));
    let cases = [
        ("plexus.example.com", 200, 200),
        ("10.0.0.5:8080", 200, 403),
        ("anything.example.com", 200, 403),
        ("localhost", 200, 403),
        ("user@plexus.example.com", 400, 400),
    ];
    for (host, any, only_named) in cases {
        assert_eq!(status(&public(), host, None), any, "Host: {host}");
        assert_eq!(status(&named, host, None), only_named, "Host: {host}");
    }
}

#[test]
fn in_public_a_page_must_be_ours_or_allowed() {
    let guard = public()
        .allow_host(host("plexus.example.com"))
        .allow_host(host("10.0.0.5"))
        .allow_origin(origin("https://app.example.com"));
    let cases = [
        ("plexus.example.com", "https://plexus.example.com", 200),
        ("plexus.example.com", "http://plexus.example.com", 200),
        ("plexus.example.com:443", "https://plexus.example.com", 200),
        ("plexus.example.com:81", "http://plexus.example.com:81", 200),
        ("10.0.0.5:8080", "http://10.0.0.5:8080", 200),
        ("plexus.example.com", "https://app.example.com", 200),
        ("plexus.example.com:81", "http://plexus.example.com", 403),
        ("plexus.example.com", "http://plexus.example.com:81", 403),
        ("plexus.example.com", "ftp://plexus.example.com", 403),
        ("plexus.example.com", "http://localhost", 403),
        ("plexus.example.com", "https://evil.example.com", 403),
        ("plexus.example.com", "null", 403),
    ];
    for (host, origin, expected) in cases {
        let found = status(&guard, host, Some(origin));
        assert_eq!(found, expected, "Host: {host}, Origin: {origin}");
    }
}

/// With DNS rebinding, the foreign page has the same name as `Host` and as `Origin`. So only an
/// address or an allowed name proves that the page is from this server.
#[test]
fn in_public_a_rebound_name_does_not_vouch_for_itself() {
    let guard = public();
    let rebound = status(&guard, "evil.com:8080", Some("http://evil.com:8080"));
    assert_eq!(rebound, 403);
    let ours = status(&guard, "10.0.0.5:8080", Some("http://10.0.0.5:8080"));
    assert_eq!(ours, 200);
}

#[test]
fn exactly_one_host_is_needed() {
    assert_eq!(check(&loopback(), &[]), Err(Refusal::MissingHost));
    let twice = [(HOST, "localhost"), (HOST, "localhost")];
    assert_eq!(check(&loopback(), &twice), Err(Refusal::MissingHost));
    assert_eq!(Refusal::MissingHost.status(), StatusCode::BAD_REQUEST);
}

#[test]
fn several_origins_are_none() {
    let headers = [
        (HOST, "localhost"),
        (ORIGIN, "http://localhost"),
        (ORIGIN, "http://localhost"),
    ];
    assert_eq!(check(&loopback(), &headers), Err(Refusal::OpaqueOrigin));
}

#[test]
fn an_absolute_target_is_a_host_too() {
    let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static("localhost"))]);
    let check = |target| loopback().check(&Uri::from_static(target), &headers);
    assert_eq!(check("http://127.0.0.1:8080/mcp"), Ok(()));
    assert_eq!(
        check("http://evil.example.com/mcp"),
        Err(Refusal::BadHost(host("evil.example.com")))
    );
    assert_eq!(
        check("http://evil.com@localhost/mcp"),
        Err(Refusal::MalformedHost)
    );
}

#[test]
fn a_refusal_says_what_to_do() {
    let refusal = check(&loopback(), &[(HOST, "Evil.example.com:80")]).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "host evil.example.com:80 is not served here; if it should be, add it to the allowed hosts"
    );
    let headers = [(HOST, "localhost"), (ORIGIN, "https://[2001:DB8::1]:443")];
    let refusal = check(&loopback(), &headers).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "origin https://[2001:db8::1] may not call this server; \
         if it should, add it to the allowed origins"
    );
}
