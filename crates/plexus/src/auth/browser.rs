//! Shows the sign-in page: in a browser, or as a URL to open elsewhere.

use std::io::{self, IsTerminal as _};
use std::process::Stdio;
use std::sync::Arc;

use plexus_mcp_client::auth::{AuthError, UserAgent, Visit};
use plexus_mcp_core::Boxed;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::callback_listener::{CallbackListener, SignInCallbacks, state_of};
use crate::announce;
use crate::process_env::environment;

/// The user's browser.
#[derive(Debug, Clone)]
pub(super) struct Browser {
    /// The port of the redirect URI, if it is fixed.
    pub(super) port: Option<u16>,
    /// Whether the page is opened, or only its URL printed.
    pub(super) opens: bool,
}

impl UserAgent for Browser {
    fn begin(&self) -> Boxed<Result<Box<dyn Visit>, AuthError>> {
        let (port, opens) = (self.port, self.opens);
        Box::pin(async move {
            let listener = SignInCallbacks::default().listener(port).await?;
            Ok(Box::new(Page { listener, opens }) as Box<dyn Visit>)
        })
    }
}

struct Page {
    listener: Arc<CallbackListener>,
    opens: bool,
}

impl Visit for Page {
    fn redirect_uri(&self) -> &str {
        self.listener.redirect_uri()
    }

    fn show(self: Box<Self>, url: String) -> Boxed<Result<String, AuthError>> {
        Box::pin(async move {
            let opened = self.opens && has_desktop() && open(&url);
            announce::sign_in(&url, opened);
            let state = state_in(&url);
            // On a remote machine, the browser cannot reach this port; the user pastes the URL of
            // the redirect.
            let pastes = !opened && (!self.opens || io::stdin().is_terminal());
            tokio::select! {
                query = self.listener.query(&state, None) => query,
                query = read_pasted_redirect(&state), if pastes => query,
            }
        })
    }
}

/// A user agent for users whose own MCP client shows the page.
#[derive(Debug, Clone)]
pub(super) struct ClientUserAgent {
    pub(super) callbacks: SignInCallbacks,
    /// The port of the redirect URI, if it is fixed.
    pub(super) port: Option<u16>,
    /// The question that the user must confirm after the redirect.
    pub(super) question: Option<String>,
}

impl UserAgent for ClientUserAgent {
    fn begin(&self) -> Boxed<Result<Box<dyn Visit>, AuthError>> {
        let Self {
            callbacks,
            port,
            question,
        } = self.clone();
        Box::pin(async move {
            let listener = callbacks.listener(port).await?;
            Ok(Box::new(ClientPage { listener, question }) as Box<dyn Visit>)
        })
    }
}

/// A pending sign-in on a page that the MCP client shows.
struct ClientPage {
    listener: Arc<CallbackListener>,
    question: Option<String>,
}

impl Visit for ClientPage {
    fn redirect_uri(&self) -> &str {
        self.listener.redirect_uri()
    }

    fn show(self: Box<Self>, url: String) -> Boxed<Result<String, AuthError>> {
        let Self { listener, question } = *self;
        Box::pin(async move { listener.query(&state_in(&url), question).await })
    }
}

/// Reads redirect URLs that the user pastes, until one belongs to this sign-in; returns its query.
async fn read_pasted_redirect(state: &str) -> Result<String, AuthError> {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let query = line.trim().split_once('?').map(|(_, query)| query);
        match query {
            Some(query) if state_of(query).as_deref() == Some(state) => {
                return Ok(query.to_owned());
            }
            _ if line.trim().is_empty() => {}
            _ => announce::problem(&"this is not the URL that the sign-in page redirects to"),
        }
    }
    // If the input is closed, the redirect may still arrive.
    std::future::pending().await
}

/// The `state` parameter of the page's URL.
fn state_in(page: &str) -> String {
    let query = page.split_once('?').map(|(_, query)| query);
    query.and_then(state_of).unwrap_or_default()
}

/// Whether there is a desktop, and the session is not remote.
fn has_desktop() -> bool {
    let is_set = |name: &str| environment(name).is_some_and(|value| !value.is_empty());
    if is_set("SSH_CONNECTION") || is_set("SSH_TTY") {
        return false;
    }
    cfg!(target_os = "macos") || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")
}

/// Opens a page without a shell (SEC-08).
#[expect(
    clippy::disallowed_methods,
    reason = "a browser must outlive this process, unlike all other children"
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
