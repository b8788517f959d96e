//! Content negotiation: the `Accept` and `Content-Type` headers of a request.

use http::HeaderValue;

/// The media types that a client accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Accepted {
    json: bool,
    /// Whether it takes `text/event-stream`.
    pub(super) events: bool,
}

impl Accepted {
    /// Without an `Accept` header, a client takes JSON (C53).
    pub(super) const WITHOUT_ACCEPT_HEADER: Self = Self {
        json: true,
        events: false,
    };

    pub(super) const NO_MEDIA_TYPE: Self = Self {
        json: false,
        events: false,
    };

    /// Adds the media types of an `Accept` header.
    pub(super) fn add_all(&mut self, value: &HeaderValue) {
        for range in value.as_bytes().split(|byte| *byte == b',') {
            self.add(range.trim_ascii());
        }
    }

    /// Whether at least one of the media types is one that we can answer with.
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

/// Whether a `Content-Type` is that of JSON, with any parameters.
pub(super) fn is_json(content_type: &HeaderValue) -> bool {
    let mut parts = content_type.as_bytes().split(|byte| *byte == b';');
    let media_type = parts.next().unwrap_or_default().trim_ascii();
    media_type.eq_ignore_ascii_case(b"application/json")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C53, S003-38, HTTPLC-01.
    #[test]
    fn accept() {
        let accept = |value| {
            let mut accepted = Accepted::NO_MEDIA_TYPE;
            accepted.add_all(&HeaderValue::from_static(value));
            accepted
        };
        for events in [
            "text/event-stream",
            "application/json, text/event-stream",
            "*/*",
            "TEXT/*",
        ] {
            assert!(accept(events).events, "{events}");
        }
        for none in ["application/json", "text/html", "text/event-stream;q=0", ""] {
            assert!(!accept(none).events, "{none}");
        }
        assert!(Accepted::WITHOUT_ACCEPT_HEADER.is_anything());
        assert!(accept("application/json;charset=utf-8").is_anything());
        assert!(!accept("text/html").is_anything());
    }

    #[test]
    fn content_type() {
        for json in [
            "application/json",
            "application/json; charset=utf-8",
            "Application/JSON",
        ] {
            assert!(is_json(&HeaderValue::from_static(json)), "{json}");
        }
        for other in ["text/plain", "application/jsonp", ""] {
            assert!(!is_json(&HeaderValue::from_static(other)), "{other}");
        }
    }
}
