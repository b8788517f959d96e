//! Parses `WWW-Authenticate` challenges (RFC 9110, 6750, 9728, 9449).

use http::HeaderMap;
use http::header::WWW_AUTHENTICATE;

use crate::scopes::Scopes;

/// The longest header that is parsed.
const MAX_HEADER_BYTES: usize = 16 * 1024;

/// The challenges of a refused request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Challenges(Vec<Challenge>);

/// One challenge: a scheme and its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Challenge {
    /// The authentication scheme, such as `Bearer`.
    pub scheme: String,
    /// Names and values in the order of the header; names in lower case.
    pub parameters: Vec<(String, String)>,
}

impl Challenges {
    /// Parses the `WWW-Authenticate` headers of a response.
    pub fn of(headers: &HeaderMap) -> Self {
        let values = headers.get_all(WWW_AUTHENTICATE).iter();
        let texts = values.filter_map(|value| value.to_str().ok());
        Self(texts.flat_map(|text| Self::parse(text).0).collect())
    }

    /// Parses the text of one header, up to the first syntax error.
    pub fn parse(text: &str) -> Self {
        let text = text.get(..MAX_HEADER_BYTES).unwrap_or(text);
        let mut reader = Reader { rest: text };
        let mut challenges: Vec<Challenge> = Vec::new();
        loop {
            reader.skip(" \t,");
            let Some(word) = reader.token() else { break };
            let before = reader.rest;
            reader.skip(" \t");
            if reader.take('=') && !reader.rest.starts_with(['=', ',']) && !reader.rest.is_empty() {
                reader.skip(" \t");
                let (Some(value), Some(challenge)) = (reader.value(), challenges.last_mut()) else {
                    break;
                };
                let parameter = (word.to_ascii_lowercase(), value);
                challenge.parameters.push(parameter);
                continue;
            }
            reader.rest = before;
            // A token68 may follow the scheme; `Bearer` and DPoP have none, so it is skipped.
            challenges.push(Challenge {
                scheme: word.to_owned(),
                parameters: Vec::new(),
            });
            reader.skip_token68();
        }
        Self(challenges)
    }

    /// Whether there are no challenges.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The URL of the resource metadata (RFC 9728 §5.1).
    pub fn resource_metadata(&self) -> Option<&str> {
        self.parameter("resource_metadata")
    }

    /// The scopes that the request needs (AUTH11-04).
    pub fn scopes(&self) -> Option<Scopes> {
        let scopes = self.parameter("scope").map(Scopes::parse)?;
        (!scopes.is_empty()).then_some(scopes)
    }

    /// The error code: why the token that was sent is refused.
    pub fn error(&self) -> Option<&str> {
        self.parameter("error")
    }

    /// Whether the server accepts DPoP tokens, which are bound to a key.
    pub fn wants_dpop(&self) -> bool {
        self.0.iter().any(|challenge| challenge.has_scheme("DPoP"))
    }

    fn parameter(&self, name: &str) -> Option<&str> {
        let is_supported =
            |challenge: &&Challenge| challenge.has_scheme("Bearer") || challenge.has_scheme("DPoP");
        let parameters = self
            .0
            .iter()
            .filter(is_supported)
            .map(|one| &one.parameters);
        let mut named = parameters.flatten().filter(|(key, _)| key == name);
        named.next().map(|(_, value)| value.as_str())
    }
}

impl Challenge {
    fn has_scheme(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn skip(&mut self, set: &str) {
        self.rest = self.rest.trim_start_matches(|c| set.contains(c));
    }

    fn take(&mut self, wanted: char) -> bool {
        let after = self.rest.strip_prefix(wanted);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn token(&mut self) -> Option<&'a str> {
        let in_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        let end = self.rest.find(|c| !in_token(c)).unwrap_or(self.rest.len());
        let (token, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!token.is_empty()).then_some(token)
    }

    /// Reads a token or a quoted string.
    fn value(&mut self) -> Option<String> {
        if !self.take('"') {
            return self.token().map(str::to_owned);
        }
        let mut value = String::new();
        let mut characters = self.rest.char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    self.rest = self.rest.get(at + 1..).unwrap_or_default();
                    return Some(value);
                }
                '\\' => value.push(characters.next()?.1),
                other => value.push(other),
            }
        }
        None
    }

    /// Skips a token68 after a scheme: text that is neither a parameter nor the next challenge.
    fn skip_token68(&mut self) {
        let before = self.rest;
        self.skip(" \t");
        let in_token68 = |c: char| c.is_ascii_alphanumeric() || "-._~+/".contains(c);
        let after = self.rest.trim_start_matches(in_token68);
        let end = after
            .trim_start_matches('=')
            .trim_start_matches([' ', '\t']);
        let is_one = after.len() < self.rest.len() && (end.is_empty() || end.starts_with(','));
        self.rest = if is_one { end } else { before };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(challenge: &Challenge) -> Vec<(&str, &str)> {
        let pairs = challenge.parameters.iter();
        pairs.map(|(name, value)| (&**name, &**value)).collect()
    }

    /// AUTH06-02, AUTH11-04
    #[test]
    fn a_challenge_has_the_metadata_url_and_the_required_scopes() {
        let challenges = Challenges::parse(
            r#"Bearer realm="a, \"b\"", Scope="files:read files:write", error=insufficient_scope, resource_metadata="https://s.example/.well-known/oauth-protected-resource/mcp""#,
        );
        assert_eq!(
            challenges.resource_metadata(),
            Some("https://s.example/.well-known/oauth-protected-resource/mcp")
        );
        let scopes = challenges.scopes().unwrap();
        assert_eq!(scopes.to_string(), "files:read files:write");
        assert_eq!(challenges.error(), Some("insufficient_scope"));
        assert_eq!(parameters(&challenges.0[0])[0], ("realm", "a, \"b\""));
        assert!(!challenges.wants_dpop());
    }

    #[test]
    fn several_challenges_in_one_header_are_split() {
        let challenges =
            Challenges::parse(r#"Negotiate, Basic realm=x, NTLM abc==, DPoP algs="ES256", Bearer"#);
        let schemes: Vec<_> = challenges.0.iter().map(|one| one.scheme.as_str()).collect();
        assert_eq!(schemes, ["Negotiate", "Basic", "NTLM", "DPoP", "Bearer"]);
        assert!(challenges.wants_dpop());
        assert_eq!(challenges.scopes(), None);
    }

    /// Parameters of other schemes than `Bearer` and DPoP are ignored.
    #[test]
    fn parameters_of_other_schemes_are_ignored() {
        let challenges = Challenges::parse(r#"Basic scope="a", resource_metadata="https://x""#);
        assert_eq!(challenges.resource_metadata(), None);
        assert_eq!(challenges.scopes(), None);
    }

    proptest::proptest! {
        #[test]
        fn parsing_never_panics(text in "\\PC*") {
            Challenges::parse(&text);
        }

        #[test]
        fn parsing_challenge_like_text_never_panics(text in "[a-zB=,\" \\\\\\t]{0,40}") {
            Challenges::parse(&text);
        }
    }
}
