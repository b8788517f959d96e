//! What a client sends and accepts.

use http::{HeaderMap, header};

/// What a client says it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Accepted {
    json: bool,
    /// Whether it takes `text/event-stream`.
    pub(super) events: bool,
}

impl Accepted {
    /// Reads it from a request. A client that does not say takes JSON (C53).
    pub(super) fn by(headers: &HeaderMap) -> Self {
        let mut accepted = Self {
            json: !headers.contains_key(header::ACCEPT),
            events: false,
        };
        let values = headers.get_all(header::ACCEPT).iter();
        for range in values.flat_map(|value| value.as_bytes().split(|byte| *byte == b',')) {
            accepted.add(range.trim_ascii());
        }
        accepted
    }

    /// Whether that is anything we can answer with.
    pub(super) fn is_anything(self) -> bool {
        self.json || self.events
    }

    fn add(&mut self, range: &[u8]) {
        let mut parts = range.split(|byte| *byte == b';');
        let media_type = parts.next().unwrap_or_default().trim_ascii_end();
        if parts.any(|parameter| parameter.trim_ascii() == b"q=0") {
            return;
        }
        let is = |name: &[u8]| media_type.eq_ignore_ascii_case(name);
        let is_any = is(b"*/*");
        self.json |= is_any || is(b"application/json") || is(b"application/*");
        self.events |= is_any || is(b"text/event-stream") || is(b"text/*");
    }
}

/// Whether the body is said to be JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let media_type = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    media_type.is_some_and(|value| essence(value).eq_ignore_ascii_case("application/json"))
}

/// A media type without its parameters.
fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: http::HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, http::HeaderValue::from_static(value))])
    }

    /// C53, S003-38, HTTPLC-01.
    #[test]
    fn accept() {
        let accept = |value| with(header::ACCEPT, value);
        for events in [
            "text/event-stream",
            "application/json, text/event-stream",
            "*/*",
            "TEXT/*",
        ] {
            assert!(Accepted::by(&accept(events)).events, "{events}");
        }
        for none in ["application/json", "text/html", "text/event-stream;q=0", ""] {
            assert!(!Accepted::by(&accept(none)).events, "{none}");
        }
        assert!(Accepted::by(&HeaderMap::new()).is_anything());
        assert!(Accepted::by(&accept("application/json;charset=utf-8")).is_anything());
        assert!(!Accepted::by(&accept("text/html")).is_anything());
    }

    #[test]
    fn content_type() {
        for json in [
            "application/json",
            "application/json; charset=utf-8",
            "Application/JSON",
        ] {
            assert!(is_json(&with(header::CONTENT_TYPE, json)), "{json}");
        }
        for other in ["text/plain", "application/jsonp", ""] {
            assert!(!is_json(&with(header::CONTENT_TYPE, other)), "{other}");
        }
        assert!(!is_json(&HeaderMap::new()));
    }
}
