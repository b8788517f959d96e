//! A server that is named on the command line.

use anyhow::{Context, bail};
use http::{HeaderName, HeaderValue};
use plexus_client::{Definition, Era, HttpTarget, Program, Target};

use crate::auth::{self, Landing};

/// Whether `word` is an address, and no program.
pub(crate) fn is_address(word: &str) -> bool {
    word.starts_with("http://") || word.starts_with("https://")
}

/// The server that `words` name: its address, or its program and the program's arguments. If there
/// is a `landing`, users are offered the page to sign in on by their own clients.
pub(crate) fn definition(
    words: &[String],
    headers: &[(HeaderName, HeaderValue)],
    era: Option<Era>,
    landing: Option<&Landing>,
) -> anyhow::Result<Definition> {
    let (first, rest) = words.split_first().context("no server is named")?;
    let target = if is_address(first) {
        if let Some(extra) = rest.first() {
            bail!("an address takes no arguments, and options come before it; what is {extra}?");
        }
        let mut target = HttpTarget::new(first.parse().context("this is no address")?);
        target.headers.extend(headers.iter().cloned());
        Target::Http(target)
    } else {
        Target::Stdio(Program::new(first.clone()).args(rest.iter().cloned()))
    };
    let mut definition = Definition::new(target);
    definition.era = era;
    auth::authorize(&mut definition, landing);
    Ok(definition.for_clients())
}
