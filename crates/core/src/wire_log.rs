//! Messages on the wire, logged at the level `TRACE` with secrets masked.

use std::borrow::Cow;
use std::fmt;

/// Target of the records, so that a log filter can select them.
const TARGET: &str = "plexus::wire";
/// Messages that are longer are cut in the log.
const MAX_LOGGED_BYTES: usize = 16 * 1024;
/// The replacement for a secret.
const MASK: &str = "***";
/// A member whose name contains one of these holds a secret. `progressToken` and the like do not:
/// see [`is_secret`].
const SECRET_WORDS: [&str; 9] = [
    "token",
    "secret",
    "password",
    "passwd",
    "apikey",
    "authorization",
    "credential",
    "cookie",
    "sessionid",
];

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
/// such as `POST /mcp`.
pub fn log_head<N: AsRef<str>, V: AsRef<[u8]>>(
    direction: Direction,
    line: impl fmt::Display,
    headers: impl IntoIterator<Item = (N, V)>,
) {
    if tracing::enabled!(target: TARGET, tracing::Level::TRACE) {
        let shown = headers.into_iter().map(|(name, value)| {
            let (name, value) = (name.as_ref(), String::from_utf8_lossy(value.as_ref()));
            let value = if is_secret(name) { MASK } else { &*value };
            format!("{name}: {value}")
        });
        let headers = shown.collect::<Vec<_>>().join(", ");
        tracing::trace!(target: TARGET, %direction, %line, headers, "http");
    }
}

/// A JSON text in which the values of secret members, and bearer tokens anywhere, are masked.
fn masked(message: &[u8]) -> String {
    let text = String::from_utf8_lossy(message);
    let text = text.trim_end();
    let mut shown = String::with_capacity(text.len().min(MAX_LOGGED_BYTES));
    let mut rest = text;
    let mut hides_next = false;
    while let Some(start) = rest.find('"') {
        let (before, from) = rest.split_at(start);
        let (string, after) = from.split_at(string_end(from));
        // Only a separator may stand between a name and its value.
        hides_next &= before.chars().all(|c| c == ':' || c.is_whitespace());
        shown.push_str(before);
        let is_name = after.trim_start().starts_with(':');
        if hides_next && !is_name {
            shown.push('"');
            shown.push_str(MASK);
            shown.push('"');
        } else {
            shown.push_str(&without_bearer(string));
        }
        hides_next = is_name && is_secret(string.trim_matches('"'));
        rest = after;
        if shown.len() > MAX_LOGGED_BYTES {
            break;
        }
    }
    shown.push_str(rest);
    if shown.len() > MAX_LOGGED_BYTES {
        shown.truncate(shown.floor_char_boundary(MAX_LOGGED_BYTES));
        shown.push_str(" … (cut)");
    }
    shown
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

/// The string with what follows `Bearer ` masked, up to the next space or quote.
fn without_bearer(string: &str) -> Cow<'_, str> {
    let Some(at) = string.to_ascii_lowercase().find("bearer ") else {
        return Cow::Borrowed(string);
    };
    let (before, token) = string.split_at(at + "bearer ".len());
    let end = token.find([' ', '"', '\\']).unwrap_or(token.len());
    let (_token, after) = token.split_at(end);
    Cow::Owned(format!("{before}{MASK}{after}"))
}

/// Whether a member or header of this name holds a secret. The protocol's own `progressToken` and
/// counts such as `maxTokens` do not.
fn is_secret(name: &str) -> bool {
    let name: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    let is_harmless = name == "progresstoken" || name.ends_with("tokens");
    !is_harmless && SECRET_WORDS.iter().any(|word| name.contains(word))
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
                r#"{"password":{"value":"p"}}"#,
                r#"{"password":{"value":"p"}}"#,
            ),
            (
                r#"{"h":"Bearer abc.def rest"}"#,
                r#"{"h":"Bearer *** rest"}"#,
            ),
            (r#"{"h":"bearer abc"}"#, r#"{"h":"bearer ***"}"#),
            (
                r#"{"progressToken":"t","maxTokens":"5"}"#,
                r#"{"progressToken":"t","maxTokens":"5"}"#,
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
    fn long_messages_are_cut() {
        let long = format!(r#"["{}","b","c"]"#, "a".repeat(2 * MAX_LOGGED_BYTES));
        let shown = masked(long.as_bytes());
        assert!(shown.ends_with("(cut)") && shown.len() < MAX_LOGGED_BYTES + 20);
    }
}
