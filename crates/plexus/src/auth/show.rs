//! Accounts, as text and JSON, without secrets.

use std::time::SystemTime;

use plexus_mcp_client::auth::StoredTokens;
use plexus_mcp_client::auth::rules::Session;
use serde::Serialize;

use crate::output::as_json;

#[derive(Serialize)]
struct Accounts<'a> {
    accounts: Vec<SignedIn<'a>>,
}

#[derive(Serialize)]
struct SignedIn<'a> {
    server: &'a str,
    account: &'a str,
    /// The caller that it belongs to, if not the user of this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<&'a str>,
    issuer: &'a str,
    scopes: Vec<&'a str>,
    /// Seconds since 1970.
    expires_at: Option<u64>,
    renewable: bool,
}

/// The servers that the user is signed in to.
pub(super) fn accounts(kept: &[StoredTokens], json: bool) -> anyhow::Result<String> {
    let sessions = kept
        .iter()
        .filter_map(|holding| Some((holding, holding.session.as_ref()?)));
    if json {
        let accounts = sessions.map(|(holding, session)| SignedIn {
            server: &holding.server,
            account: &holding.name,
            principal: holding.principal.as_deref(),
            issuer: &session.registration.issuer,
            scopes: allowed(session),
            expires_at: session.expires_at,
            renewable: session.refresh_token.is_some(),
        });
        let accounts = accounts.collect();
        return as_json(&Accounts { accounts });
    }
    let lines = sessions.map(|(holding, session)| {
        let (server, name) = (&holding.server, &holding.name);
        let principal = holding.principal.as_deref();
        let principal = principal.map(|principal| format!("  of {principal}"));
        let principal = principal.unwrap_or_default();
        format!("{server}  {name}{principal}  {}\n", state(session))
    });
    let lines: Vec<_> = lines.collect();
    if lines.is_empty() {
        return Ok("you are signed in nowhere; to sign in: plexus auth login SERVER\n".to_owned());
    }
    Ok(lines.concat())
}

/// The result of a sign-in.
pub(super) fn signed_in(called: &str, account: &str, session: &Session) -> String {
    let scopes = allowed(session).join(" ");
    let scopes = if scopes.is_empty() {
        String::new()
    } else {
        format!(", for {scopes}")
    };
    format!(
        "signed in to {called} as {account}{scopes}; {}\n",
        state(session)
    )
}

fn allowed(session: &Session) -> Vec<&str> {
    let scopes = session.granted.as_ref().unwrap_or(&session.requested);
    scopes.iter().collect()
}

fn state(session: &Session) -> String {
    let left = session
        .expires_at
        .map(|expires| expires.saturating_sub(now()));
    match (left, session.refresh_token.is_some()) {
        (_, true) => "renewed as needed".to_owned(),
        (Some(0), false) => "expired: sign in again".to_owned(),
        (Some(left), false) => format!("expires in {} min", left.div_ceil(60)),
        (None, false) => "valid until it is refused".to_owned(),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "shown to people; nothing is decided by it"
)]
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
