//! Shows a page to the user: in a browser, or as an address to be opened elsewhere.

use std::io::{self, IsTerminal as _};
use std::process::Stdio;
use std::time::Duration;

use plexus_client::auth::{AuthError, UserAgent, Visit};
use plexus_service::Boxed;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use url::form_urlencoded;

use super::callback::Listener;
use crate::announce;
use crate::surroundings::environment;

/// How long a user may take to sign in.
const PATIENCE: Duration = Duration::from_mins(10);

/// The user's browser.
#[derive(Debug, Clone)]
pub(super) struct Browser {
    /// The port to come back to, if it must be one.
    pub(super) port: Option<u16>,
    /// Whether a page is opened, or only named.
    pub(super) opens: bool,
}

impl UserAgent for Browser {
    fn begin(&self) -> Boxed<Result<Box<dyn Visit>, AuthError>> {
        let (port, opens) = (self.port, self.opens);
        Box::pin(async move {
            let listener = Listener::bind(port).await?;
            Ok(Box::new(Page { listener, opens }) as Box<dyn Visit>)
        })
    }
}

struct Page {
    listener: Listener,
    opens: bool,
}

impl Visit for Page {
    fn redirect_uri(&self) -> &str {
        self.listener.redirect_uri()
    }

    fn show(self: Box<Self>, url: String) -> Boxed<Result<String, AuthError>> {
        Box::pin(async move {
            let opened = self.opens && has_screen() && open(&url);
            announce::sign_in(&url, opened);
            let state = state_of(&url);
            // Far from the user's browser, only the address that it was led to gets here.
            let pastes = !opened && (!self.opens || io::stdin().is_terminal());
            let answer = async {
                tokio::select! {
                    query = self.listener.query(&state) => query,
                    query = pasted(&state), if pastes => query,
                }
            };
            let answer = tokio::time::timeout(PATIENCE, answer).await;
            answer.unwrap_or_else(|_elapsed| {
                let minutes = PATIENCE.as_secs() / 60;
                let text = format!("nobody came back from the sign-in page in {minutes} minutes");
                Err(AuthError::Page(text))
            })
        })
    }
}

/// The query of an address that the user pasted and that belongs to this sign-in.
async fn pasted(state: &str) -> Result<String, AuthError> {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let query = line.trim().split_once('?').map(|(_, query)| query);
        match query {
            Some(query) if is_of(query, state) => return Ok(query.to_owned()),
            _ if line.trim().is_empty() => {}
            _ => announce::problem(&"this is not the address that the page leads to"),
        }
    }
    // Whoever closes the input may still come back in a browser.
    std::future::pending().await
}

/// Whether a query is the answer to the sign-in with this state.
pub(super) fn is_of(query: &str, state: &str) -> bool {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    !state.is_empty() && pairs.any(|(name, value)| name == "state" && value == state)
}

/// The state that the page is told.
fn state_of(url: &str) -> String {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let state = pairs.find(|(name, _)| name == "state");
    state
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}

/// Whether a browser could be seen: on this machine, and not from another one.
fn has_screen() -> bool {
    let is_set = |name: &str| environment(name).is_some_and(|value| !value.is_empty());
    if is_set("SSH_CONNECTION") || is_set("SSH_TTY") {
        return false;
    }
    cfg!(target_os = "macos") || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")
}

/// Opens a page, through no shell (SEC-08).
#[expect(
    clippy::disallowed_methods,
    reason = "a browser is to outlive us, unlike all other children"
)]
fn open(url: &str) -> bool {
    let opener = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let started = std::process::Command::new(opener)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    started.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_answer_to_this_sign_in_is_taken() {
        let state = state_of("https://as.example/authorize?client_id=a&state=s-1&scope=b");
        assert_eq!(state, "s-1");
        assert!(is_of("code=c&state=s-1", &state));
        assert!(is_of("state=s%2D1&code=c", &state));
        assert!(!is_of("code=c&state=s-2", &state));
        assert!(!is_of("code=c", &state));
        assert!(!is_of("code=c&state=", ""));
    }
}
