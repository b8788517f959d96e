//! Shows a page to the user: in a browser, or as an address to be opened elsewhere.

use std::io::{self, IsTerminal as _};
use std::process::Stdio;
use std::sync::Arc;

use plexus_client::auth::{AuthError, UserAgent, Visit};
use plexus_service::Boxed;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::callback::{Door, Landing, state_of};
use crate::announce;
use crate::surroundings::environment;

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
            let door = Landing::default().door(port).await?;
            Ok(Box::new(Page { door, opens }) as Box<dyn Visit>)
        })
    }
}

struct Page {
    door: Arc<Door>,
    opens: bool,
}

impl Visit for Page {
    fn redirect_uri(&self) -> &str {
        self.door.redirect_uri()
    }

    fn show(self: Box<Self>, url: String) -> Boxed<Result<String, AuthError>> {
        Box::pin(async move {
            let opened = self.opens && has_screen() && open(&url);
            announce::sign_in(&url, opened);
            let state = state_in(&url);
            // Far from the user's browser, only the address that it was led to gets here.
            let pastes = !opened && (!self.opens || io::stdin().is_terminal());
            tokio::select! {
                query = self.door.query(&state, None) => query,
                query = pasted(&state), if pastes => query,
            }
        })
    }
}

/// Awaits users who are shown the page by their own client.
#[derive(Debug, Clone)]
pub(super) struct Elsewhere {
    pub(super) landing: Landing,
    /// The port to come back to, if it must be one.
    pub(super) port: Option<u16>,
    /// What they must say yes to when they come back.
    pub(super) question: Option<String>,
}

impl UserAgent for Elsewhere {
    fn begin(&self) -> Boxed<Result<Box<dyn Visit>, AuthError>> {
        let Self {
            landing,
            port,
            question,
        } = self.clone();
        Box::pin(async move {
            let door = landing.door(port).await?;
            Ok(Box::new(Way { door, question }) as Box<dyn Visit>)
        })
    }
}

/// The way back from a page that somebody else shows.
struct Way {
    door: Arc<Door>,
    question: Option<String>,
}

impl Visit for Way {
    fn redirect_uri(&self) -> &str {
        self.door.redirect_uri()
    }

    fn show(self: Box<Self>, url: String) -> Boxed<Result<String, AuthError>> {
        let Self { door, question } = *self;
        Box::pin(async move { door.query(&state_in(&url), question).await })
    }
}

/// The query of an address that the user pasted and that belongs to this sign-in.
async fn pasted(state: &str) -> Result<String, AuthError> {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let query = line.trim().split_once('?').map(|(_, query)| query);
        match query {
            Some(query) if state_of(query).as_deref() == Some(state) => {
                return Ok(query.to_owned());
            }
            _ if line.trim().is_empty() => {}
            _ => announce::problem(&"this is not the address that the page leads to"),
        }
    }
    // Whoever closes the input may still come back in a browser.
    std::future::pending().await
}

/// The state that the page is told.
fn state_in(page: &str) -> String {
    let query = page.split_once('?').map(|(_, query)| query);
    query.and_then(state_of).unwrap_or_default()
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
