//! A server that is named on the command line.

use anyhow::{Context, bail};
use http::{HeaderName, HeaderValue};
use plexus_mcp_client::{Definition, Era, HttpTarget, Program, Target};

use crate::auth::{self, SignInCallbacks};

/// Whether `word` is a URL, and not a program.
pub(crate) fn is_address(word: &str) -> bool {
    word.starts_with("http://") || word.starts_with("https://")
}

/// Why `word` is not a program: it looks like a URL, but not like one that Plexus connects to. The
/// text says what is meant, without parts of `word` that may be secrets.
pub(crate) fn unusable_url(word: &str) -> Option<String> {
    if is_address(word) {
        return None;
    }
    let (scheme, rest) = word.split_once(':')?;
    let scheme = scheme.to_ascii_lowercase();
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let is_http = matches!(scheme.as_str(), "http" | "https");
    if !is_scheme || !(is_http || rest.starts_with("//")) {
        return None;
    }
    let with = |scheme: &str| match without_secrets(rest) {
        Some(place) => format!("; is {scheme}://{place} meant?"),
        None => format!("; write {scheme}://HOST/PATH"),
    };
    Some(match scheme.as_str() {
        "http" | "https" => format!("a URL begins with http:// or https://{}", with(&scheme)),
        "ws" => format!("MCP has no WebSocket transport{}", with("http")),
        "wss" => format!("MCP has no WebSocket transport{}", with("https")),
        _ => {
            "this is no program and no URL of an MCP server, which begins with http:// or https://"
                .to_owned()
        }
    })
}

/// Host, port and path of the rest of a URL; `None` if that is not certain, or if a user name, a
/// query or a fragment is in it, which may be secrets.
fn without_secrets(rest: &str) -> Option<&str> {
    let rest = rest.trim_start_matches('/');
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_~:/[]".contains(&byte);
    (!rest.is_empty() && rest.bytes().all(is_plain)).then_some(rest)
}

/// The definition of the server that `words` name: its URL, or its program and the program's
/// arguments. With `callbacks`, users are offered the sign-in page through their own MCP clients.
pub(crate) fn definition(
    words: &[String],
    headers: &[(HeaderName, HeaderValue)],
    era: Option<Era>,
    callbacks: Option<&SignInCallbacks>,
) -> anyhow::Result<Definition> {
    let (first, rest) = words.split_first().context("no server is named")?;
    let target = if is_address(first) {
        if let Some(extra) = rest.first() {
            bail!("a URL takes no arguments, and options come before it; {extra} is unexpected");
        }
        let mut target = HttpTarget::new(first.parse().context("this is not a URL")?);
        target.headers.extend(headers.iter().cloned());
        Target::Http(target)
    } else if let Some(why) = unusable_url(first) {
        bail!("{first}: {why}");
    } else {
        Target::Stdio(Program::new(first.clone()).args(rest.iter().cloned()))
    };
    let mut definition = Definition::new(target);
    definition.era = era;
    auth::authorize(&mut definition, callbacks);
    Ok(definition)
}

#[cfg(test)]
mod tests {
    use super::unusable_url;

    #[test]
    fn a_wrong_url_is_corrected() {
        for (word, meant) in [
            ("ws://a.example/mcp", "is http://a.example/mcp meant?"),
            ("WSS://a.example:8/", "is https://a.example:8/ meant?"),
            ("http:/foo", "is http://foo meant?"),
            ("https:foo/bar", "is https://foo/bar meant?"),
            ("HTTPS://foo", "is https://foo meant?"),
            ("http:", "write http://HOST/PATH"),
            ("ftp://y", "http:// or https://"),
        ] {
            let said = unusable_url(word).unwrap();
            assert!(said.contains(meant), "{word}: {said}");
        }
        for word in [
            "wss://u:hunter2@a.example/",
            "http:/a?key=hunter2",
            "ws://a/#hunter2",
        ] {
            let said = unusable_url(word).unwrap();
            assert!(
                said.contains("://HOST/PATH") && !said.contains("hunter2"),
                "{said}"
            );
        }
    }

    #[test]
    fn programs_and_usable_urls_are_left_alone() {
        for word in [
            "npx",
            "/usr/bin/server",
            "http-server",
            "c:server",
            "C:\\server.exe",
            "image:tag",
            "http://a/",
            "https://a/",
        ] {
            assert_eq!(unusable_url(word), None, "{word}");
        }
    }
}
