//! Answers in their usual forms.

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response, StatusCode};

use super::body::Body;

/// An answer without a body.
pub fn empty(status: StatusCode) -> Response<Body> {
    with_body(status, Body::empty())
}

/// An answer in JSON.
pub fn json(status: StatusCode, document: Bytes) -> Response<Body> {
    let mut response = with_body(status, Body::full(document));
    set(&mut response, CONTENT_TYPE, "application/json");
    response
}

/// An answer in plain text.
pub fn text(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = with_body(status, Body::full(Bytes::copy_from_slice(text.as_bytes())));
    set(&mut response, CONTENT_TYPE, "text/plain; charset=utf-8");
    response
}

/// An answer that streams server-sent events.
///
/// Neither caches nor proxies may hold events back (HTTP26-12, S003-48); `X-Accel-Buffering` is
/// what nginx and those that follow it read.
pub fn sse(events: Body) -> Response<Body> {
    let mut response = with_body(StatusCode::OK, events);
    set(&mut response, CONTENT_TYPE, "text/event-stream");
    set(&mut response, CACHE_CONTROL, "no-cache");
    set(
        &mut response,
        HeaderName::from_static("x-accel-buffering"),
        "no",
    );
    response
}

/// 405, with the methods that are allowed, as in `"GET, POST"`.
pub fn method_not_allowed(allowed: &'static str) -> Response<Body> {
    let mut response = empty(StatusCode::METHOD_NOT_ALLOWED);
    set(&mut response, ALLOW, allowed);
    response
}

/// Makes an answer the last one on its connection. For answers given before the request was read
/// to its end.
pub fn closing(mut response: Response<Body>) -> Response<Body> {
    set(&mut response, CONNECTION, "close");
    response
}

fn with_body(status: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}

fn set(response: &mut Response<Body>, name: HeaderName, value: &'static str) {
    response
        .headers_mut()
        .insert(name, HeaderValue::from_static(value));
}

#[cfg(test)]
mod tests {
    use http_body::Body as _;

    use super::*;

    fn header<'a>(response: &'a Response<Body>, name: &str) -> Option<&'a str> {
        Some(response.headers().get(name)?.to_str().unwrap())
    }

    #[test]
    fn each_form_names_its_type() {
        let json = json(StatusCode::CREATED, Bytes::from_static(b"{}"));
        assert_eq!(json.status(), StatusCode::CREATED);
        assert_eq!(header(&json, "content-type"), Some("application/json"));
        assert_eq!(json.body().size_hint().exact(), Some(2));

        let text = text(StatusCode::FORBIDDEN, "no");
        assert_eq!(
            header(&text, "content-type"),
            Some("text/plain; charset=utf-8")
        );

        let empty = empty(StatusCode::ACCEPTED);
        assert_eq!(header(&empty, "content-type"), None);
        assert!(empty.body().is_end_stream());
    }

    /// HTTP26-12, S003-48.
    #[test]
    fn events_are_neither_cached_nor_held_back() {
        let events = sse(Body::empty());
        assert_eq!(events.status(), StatusCode::OK);
        assert_eq!(header(&events, "content-type"), Some("text/event-stream"));
        assert_eq!(header(&events, "cache-control"), Some("no-cache"));
        assert_eq!(header(&events, "x-accel-buffering"), Some("no"));
    }

    /// HTTP26-18.
    #[test]
    fn a_refused_method_learns_the_allowed_ones() {
        let refused = method_not_allowed("POST");
        assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(header(&refused, "allow"), Some("POST"));
    }

    #[test]
    fn a_closing_answer_says_so() {
        let last = closing(empty(StatusCode::BAD_REQUEST));
        assert_eq!(header(&last, "connection"), Some("close"));
    }
}
