//! Messages on the wire, logged at the level `TRACE` with secrets masked.

use std::borrow::Cow;
use std::fmt;

use http::HeaderMap;

use crate::secret_name::is_secret_name;

/// Target of the records, so that a log filter can select them.
const TARGET: &str = "plexus::wire";
/// Messages that are longer are cut in the log.
const MAX_LOGGED_BYTES: usize = 16 * 1024;
/// The replacement for a secret.
const MASK: &str = "***";
/// The sender or receiver of a message, as seen from Plexus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there are two peers")]
pub enum Direction {
    /// A client sent it.
    FromClient,
    /// It is sent to a client.
    ToClient,
    /// It is sent to a server.
    ToServer,
    /// A server sent it.
    FromServer,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FromClient => "from client",
            Self::ToClient => "to client",
            Self::ToServer => "to server",
            Self::FromServer => "from server",
        })
    }
}

/// Logs one message, if the level is `TRACE`.
pub fn log_message(direction: Direction, message: &[u8]) {
    if tracing::enabled!(target: TARGET, tracing::Level::TRACE) {
        let bytes = message.len();
        let text = masked(message);
        tracing::trace!(target: TARGET, %direction, bytes, %text, "message");
    }
}

/// Logs the head of an HTTP request or response, if the level is `TRACE`. `line` is its first line,
/// such as `POST /mcp`. Values that are marked as sensitive, and those with the name of a secret,
/// are masked.
pub fn log_head(direction: Direction, line: impl fmt::Display, headers: &HeaderMap) {
    if tracing::enabled!(target: TARGET, tracing::Level::TRACE) {
        let headers = masked_headers(headers);
        tracing::trace!(target: TARGET, %direction, %line, headers, "http");
    }
}

fn masked_headers(headers: &HeaderMap) -> String {
    let shown = headers.iter().map(|(name, value)| {
        let text = String::from_utf8_lossy(value.as_bytes());
        let is_secret = value.is_sensitive() || is_secret_name(name.as_str());
        let text = if is_secret {
            MASK.into()
        } else {
            without_bearer(&text)
        };
        format!("{name}: {text}")
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// A JSON text in which strings, arrays and objects with the name of a secret, and bearer tokens in
/// any string, are masked.
fn masked(message: &[u8]) -> String {
    let text = String::from_utf8_lossy(message);
    let text = text.trim_end();
    let mut shown = String::with_capacity(text.len().min(MAX_LOGGED_BYTES));
    let mut rest = text;
    while let Some(start) = rest.find('"') {
        let (before, from) = rest.split_at(start);
        let (string, after) = from.split_at(string_end(from));
        shown.push_str(before);
        shown.push_str(&without_bearer(string));
        rest = after;
        if shown.len() > MAX_LOGGED_BYTES {
            break;
        }
        let is_separator = |c: char| c == ':' || c.is_whitespace();
        let is_name = after.trim_start().starts_with(':');
        if is_name && is_secret_name(string.trim_matches('"')) {
            let value = after.trim_start_matches(is_separator);
            let (separator, _) = after.split_at(after.len() - value.len());
            let (secret, after) = value.split_at(maskable_end(value));
            if !secret.is_empty() {
                shown.push_str(separator);
                shown.push('"');
                shown.push_str(MASK);
                shown.push('"');
                rest = after;
            }
        }
    }
    shown.push_str(rest);
    if shown.len() > MAX_LOGGED_BYTES {
        shown.truncate(shown.floor_char_boundary(MAX_LOGGED_BYTES));
        shown.push_str(" … (cut)");
    }
    shown
}

/// The length of the JSON string, array or object with which `text` begins; 0 for other values. A
/// value that does not end is as long as the text.
fn maskable_end(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(rest) = text.get(at..)
        && let Some(byte) = rest.bytes().next()
    {
        match byte {
            b'"' => at += string_end(rest),
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            _ if depth == 0 => return 0,
            _ => at += rest.chars().next().map_or(1, char::len_utf8),
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// How long the JSON string is with which `text` begins, both quotes included.
fn string_end(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The string with what follows each `Bearer ` masked, up to the next space, quote or backslash.
fn without_bearer(string: &str) -> Cow<'_, str> {
    const SCHEME: &str = "bearer ";
    let lowercase = string.to_ascii_lowercase();
    let mut shown = String::new();
    // The text before this position is in `shown`.
    let mut position = 0;
    for (at, _) in lowercase.match_indices(SCHEME) {
        let (before, token) = string.split_at(at + SCHEME.len());
        let spaces = token.len() - token.trim_start_matches(' ').len();
        let start = before.len() + spaces;
        let token = token.trim_start_matches(' ');
        let end = token.find([' ', '"', '\\']).unwrap_or(token.len());
        if end > 0 && start >= position {
            shown.push_str(string.get(position..start).unwrap_or_default());
            shown.push_str(MASK);
            position = start + end;
        }
    }
    if position == 0 {
        return Cow::Borrowed(string);
    }
    shown.push_str(string.get(position..).unwrap_or_default());
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_wherever_they_are() {
        let cases = [
            (r#"{"a":1,"note":"plain"}"#, r#"{"a":1,"note":"plain"}"#),
            (r#"{"api_key": "k-1"}"#, r#"{"api_key": "***"}"#),
            (
                r#"{"accessToken":"x\"y","b":"c"}"#,
                r#"{"accessToken":"***","b":"c"}"#,
            ),
            (
                r#"{"password":{"value":"p}","more":[{}]},"b":1}"#,
                r#"{"password":"***","b":1}"#,
            ),
            (
                r#"{"secrets" : ["a", ["é"]] , "b":[1]}"#,
                r#"{"secrets" : "***" , "b":[1]}"#,
            ),
            (r#"{"cookie":["a"#, r#"{"cookie":"***""#),
            (
                r#"{"password":{},"token":[],"b":"c"}"#,
                r#"{"password":"***","token":"***","b":"c"}"#,
            ),
            (
                r#"{"h":"Bearer abc.def rest"}"#,
                r#"{"h":"Bearer *** rest"}"#,
            ),
            (r#"{"h":"bearer abc"}"#, r#"{"h":"bearer ***"}"#),
            (
                r#"{"h":"Bearer abc, Bearer def\nBEARER  ghi"}"#,
                r#"{"h":"Bearer *** Bearer ***\nBEARER  ***"}"#,
            ),
            (r#"{"h":"Bearer bearer abc"}"#, r#"{"h":"Bearer *** ***"}"#),
            (r#"{"h":"the bearer "}"#, r#"{"h":"the bearer "}"#),
            (
                r#"{"progressToken":"t","maxTokens":5}"#,
                r#"{"progressToken":"t","maxTokens":5}"#,
            ),
            (r#"{"token":1,"x":"y"}"#, r#"{"token":1,"x":"y"}"#),
            (r#"["secret","open"]"#, r#"["secret","open"]"#),
            ("no json \"at all", "no json \"at all"),
        ];
        for (text, shown) in cases {
            assert_eq!(masked(text.as_bytes()), shown);
        }
    }

    #[test]
    fn sensitive_headers_are_masked() {
        let mut headers = HeaderMap::new();
        headers.insert("x-custom", "open".parse().unwrap());
        headers.insert("authorization", "Basic abc".parse().unwrap());
        let mut configured: http::HeaderValue = "hidden".parse().unwrap();
        configured.set_sensitive(true);
        headers.insert("x-configured", configured);
        headers.insert("x-forwarded", "Bearer abc".parse().unwrap());
        let shown =
            "x-custom: open, authorization: ***, x-configured: ***, x-forwarded: Bearer ***";
        assert_eq!(masked_headers(&headers), shown);
    }

    #[test]
    fn long_messages_are_cut() {
        let long = format!(r#"["{}","b","c"]"#, "a".repeat(2 * MAX_LOGGED_BYTES));
        let shown = masked(long.as_bytes());
        assert!(shown.ends_with("(cut)") && shown.len() < MAX_LOGGED_BYTES + 20);
    }
}
