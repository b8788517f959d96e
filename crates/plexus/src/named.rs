//! A server that is named on the command line.

use anyhow::{Context, bail};
use http::{HeaderName, HeaderValue};
use plexus_mcp_client::{Definition, Era, HttpTarget, Program, Target};

use crate::auth::{self, SignInCallbacks};

/// Whether `word` is a URL, and not a program.
pub(crate) fn is_address(word: &str) -> bool {
    word.starts_with("http://") || word.starts_with("https://")
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
    } else {
        Target::Stdio(Program::new(first.clone()).args(rest.iter().cloned()))
    };
    let mut definition = Definition::new(target);
    definition.era = era;
    auth::authorize(&mut definition, callbacks);
    Ok(definition.for_clients())
}
