//! The `WWW-Authenticate` header of a refused request (RFC 6750, RFC 9449, RFC 9728).

use http::HeaderValue;

/// Builds a challenge: an authentication scheme with parameters.
#[derive(Debug, Clone)]
pub(crate) struct Challenge {
    text: String,
    is_first: bool,
}

impl Challenge {
    pub(crate) fn new(scheme: &str) -> Self {
        Self {
            text: scheme.to_owned(),
            is_first: true,
        }
    }

    /// Adds a parameter, quoted. `None` adds nothing.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: Option<&str>) -> Self {
        let Some(value) = value else { return self };
        self.text.push_str(if self.is_first { " " } else { ", " });
        self.is_first = false;
        self.text.push_str(name);
        self.text.push_str("=\"");
        for character in value.chars() {
            if matches!(character, '"' | '\\') {
                self.text.push('\\');
            }
            self.text.push(character);
        }
        self.text.push('"');
        self
    }

    /// The challenge as a header value. Settings with characters that a header cannot hold were
    /// rejected when they were read.
    pub(crate) fn header(&self) -> HeaderValue {
        HeaderValue::from_str(&self.text).unwrap_or(HeaderValue::from_static("Bearer"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_quoted() {
        let challenge = Challenge::new("Bearer")
            .with("error", None)
            .with("scope", Some("a b"))
            .with("realm", Some(r#"x"\y"#));
        assert_eq!(challenge.header(), r#"Bearer scope="a b", realm="x\"\\y""#);
        assert_eq!(Challenge::new("Bearer").header(), "Bearer");
    }
}
