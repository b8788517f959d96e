//! What a client sends and accepts.

use http::{HeaderMap, header};

/// Whether the client takes `text/event-stream`.
pub(super) fn accepts_events(headers: &HeaderMap) -> bool {
    accepts(headers, "text/event-stream")
}

/// Whether the client takes anything we can answer with. A client that does not say takes JSON
/// (C53).
pub(super) fn accepts_something(headers: &HeaderMap) -> bool {
    !headers.contains_key(header::ACCEPT)
        || accepts(headers, "application/json")
        || accepts_events(headers)
}

/// Whether the body is said to be JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let media_type = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    media_type.is_some_and(|value| essence(value).eq_ignore_ascii_case("application/json"))
}

fn accepts(headers: &HeaderMap, wanted: &str) -> bool {
    let (family, _) = wanted.split_once('/').unwrap_or_default();
    let is_refused = |range: &str| {
        let mut parameters = range.split(';').skip(1);
        parameters.any(|parameter| parameter.trim() == "q=0")
    };
    headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter(|range| !is_refused(range))
        .map(essence)
        .any(|range| {
            range == "*/*"
                || range.eq_ignore_ascii_case(wanted)
                || range
                    .strip_suffix("/*")
                    .is_some_and(|of| of.eq_ignore_ascii_case(family))
        })
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
            assert!(accepts_events(&accept(events)), "{events}");
        }
        for none in ["application/json", "text/html", "text/event-stream;q=0", ""] {
            assert!(!accepts_events(&accept(none)), "{none}");
        }
        assert!(accepts_something(&HeaderMap::new()));
        assert!(accepts_something(&accept("application/json;charset=utf-8")));
        assert!(!accepts_something(&accept("text/html")));
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
