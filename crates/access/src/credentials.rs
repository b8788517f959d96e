//! Reads the access token of an HTTP request.

use http::header::AUTHORIZATION;
use http::request::Parts;
use url::form_urlencoded;

/// The authentication scheme of the `Authorization` header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// A bearer token (RFC 6750).
    Bearer,
    /// A token that is bound to a key, with a proof of possession (DPoP, RFC 9449).
    Dpop,
}

/// The token of a request, and its authentication scheme.
pub(crate) struct Credentials<'a> {
    pub(crate) scheme: Scheme,
    pub(crate) token: &'a str,
}

/// Why a request has no usable token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoCredentials {
    /// The request has no token.
    Missing,
    /// The request presents a token in a way that is not allowed.
    Malformed(&'static str),
}

impl<'a> Credentials<'a> {
    /// Reads the token of a request from its `Authorization` header, the only place that is allowed
    /// (AUTH03-08, AUTH06-15).
    pub(crate) fn from_request(head: &'a Parts) -> Result<Self, NoCredentials> {
        let query = head.uri.query().unwrap_or_default();
        let mut parameters = form_urlencoded::parse(query.as_bytes());
        if parameters.any(|(name, _)| name == "access_token") {
            return Err(NoCredentials::Malformed(
                "send the token in the Authorization header, not in the URL",
            ));
        }
        let mut values = head.headers.get_all(AUTHORIZATION).iter();
        let (value, second) = (values.next(), values.next());
        let value = value.ok_or(NoCredentials::Missing)?;
        if second.is_some() {
            let text = "there is more than one Authorization header";
            return Err(NoCredentials::Malformed(text));
        }
        let malformed = NoCredentials::Malformed("the Authorization header cannot be parsed");
        let text = value.to_str().map_err(|_unreadable| malformed)?;
        let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
        let scheme = if scheme.eq_ignore_ascii_case("Bearer") {
            Scheme::Bearer
        } else if scheme.eq_ignore_ascii_case("DPoP") {
            Scheme::Dpop
        } else {
            // Credentials for another recipient, such as a proxy in front.
            return Err(NoCredentials::Missing);
        };
        let token = token.trim_matches(' ');
        if token.is_empty() || token.contains(' ') {
            return Err(malformed);
        }
        Ok(Self { scheme, token })
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn read(uri: &str, headers: &[&str]) -> Result<(Scheme, String), NoCredentials> {
        let mut request = Request::builder().uri(uri);
        for header in headers {
            request = request.header(AUTHORIZATION, *header);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        let credentials = Credentials::from_request(&head)?;
        Ok((credentials.scheme, credentials.token.to_owned()))
    }

    #[test]
    fn a_token_comes_in_the_header() {
        let bearer = (Scheme::Bearer, "abc".to_owned());
        assert_eq!(read("/mcp", &["Bearer abc"]), Ok(bearer.clone()));
        assert_eq!(read("/mcp?session=1", &["bearer  abc"]), Ok(bearer));
        let dpop = (Scheme::Dpop, "abc".to_owned());
        assert_eq!(read("/mcp", &["DPoP abc"]), Ok(dpop));
        assert_eq!(read("/mcp", &[]), Err(NoCredentials::Missing));
        assert_eq!(read("/mcp", &["Basic abc"]), Err(NoCredentials::Missing));
    }

    /// AUTH03-08, AUTH06-15: a token in the URL is refused, since URLs end up in logs and histories.
    #[test]
    fn a_token_outside_the_header_is_refused() {
        for (uri, headers) in [
            ("/mcp?access_token=abc", &[][..]),
            ("/mcp?a=b&access%5Ftoken=abc", &["Bearer abc"]),
            ("/mcp", &["Bearer a", "Bearer b"]),
            ("/mcp", &["Bearer"]),
            ("/mcp", &["Bearer a b"]),
        ] {
            let read = read(uri, headers);
            assert!(matches!(read, Err(NoCredentials::Malformed(_))), "{uri}");
        }
    }
}
