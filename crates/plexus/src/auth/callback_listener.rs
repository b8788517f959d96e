//! The HTTP listener for OAuth redirects: one port of this machine for all sign-ins of this
//! process, told apart by their `state`.

use std::collections::HashMap;
use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use plexus_mcp_client::auth::AuthError;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex as AsyncMutex, oneshot};
use tokio::task::JoinSet;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use url::form_urlencoded;

/// The port that is tried first, since some authorization servers require a registered redirect
/// URI.
const DEFAULT_PORT: u16 = 4446;
const CALLBACK_PATH: &str = "/callback";
const CONFIRM_PATH: &str = "/confirm";
const MAX_REQUEST_BYTES: usize = 16 * 1024;
/// How long a browser may take to send its request, and how many connections may be open.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_CONNECTIONS: usize = 32;
/// How long a user may take to sign in.
const SIGN_IN_TIMEOUT: Duration = Duration::from_mins(10);

const DONE_PAGE: &str = "The sign-in is complete. You can close this page.";
const UNKNOWN_STATE_PAGE: &str = "This request does not belong to a pending sign-in.";
/// Forbids scripts, external content, and framing.
const CONTENT_SECURITY_POLICY: &str =
    "default-src 'none'; form-action 'self'; frame-ancestors 'none'";

/// The redirect listeners of this process. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct SignInCallbacks {
    /// By the requested port. A listener is closed when it is no longer used.
    listeners: Arc<AsyncMutex<HashMap<Option<u16>, Weak<CallbackListener>>>>,
}

impl SignInCallbacks {
    /// The listener on `port`; without a port, on the default one or any free one.
    pub(super) async fn listener(
        &self,
        port: Option<u16>,
    ) -> Result<Arc<CallbackListener>, AuthError> {
        let mut listeners = self.listeners.lock().await;
        if let Some(listener) = listeners.get(&port).and_then(Weak::upgrade) {
            return Ok(listener);
        }
        let listener = Arc::new(CallbackListener::open(port).await?);
        listeners.insert(port, Arc::downgrade(&listener));
        Ok(listener)
    }
}

/// The pending sign-ins, by `state`.
type PendingSignIns = Arc<Mutex<HashMap<String, PendingSignIn>>>;

/// A pending sign-in.
#[derive(Debug)]
struct PendingSignIn {
    sender: oneshot::Sender<String>,
    /// The question that the user must confirm in the browser that was redirected.
    question: Option<String>,
    /// The query of the redirect, and a confirmation token that only that browser knows.
    redirected: Option<(String, String)>,
}

/// A listener on one port. Dropping it closes the port.
#[derive(Debug)]
pub(super) struct CallbackListener {
    redirect_uri: String,
    pending: PendingSignIns,
    _accepting: AbortOnDropHandle<()>,
}

impl CallbackListener {
    async fn open(port: Option<u16>) -> Result<Self, AuthError> {
        let bound = match port {
            Some(port) => bind(port).await,
            None => match bind(DEFAULT_PORT).await {
                Err(_taken) => bind(0).await,
                bound => bound,
            },
        };
        let failed = |error: io::Error| {
            let port = port.map_or_else(|| "no port".to_owned(), |port| format!("port {port}"));
            let text = format!(
                "cannot listen on {port} for the redirect of the sign-in page: {error}; stop \
                 the program that listens there, or choose another port with --port"
            );
            AuthError::Page(text)
        };
        let listener = bound.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let pending = PendingSignIns::default();
        let accepting = TaskTracker::new().spawn(accept(listener, Arc::clone(&pending)));
        Ok(Self {
            redirect_uri: format!("http://127.0.0.1:{port}{CALLBACK_PATH}"),
            pending,
            _accepting: AbortOnDropHandle::new(accepting),
        })
    }

    pub(super) fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// Waits for the redirect with this `state`, and for the user's confirmation of `question`;
    /// returns its query.
    pub(super) async fn query(
        &self,
        state: &str,
        question: Option<String>,
    ) -> Result<String, AuthError> {
        let (sender, receiver) = oneshot::channel();
        let pending_sign_in = PendingSignIn {
            sender,
            question,
            redirected: None,
        };
        lock(&self.pending).insert(state.to_owned(), pending_sign_in);
        let _remove_on_drop = RemoveOnDrop(&self.pending, state);
        if let Ok(Ok(query)) = tokio::time::timeout(SIGN_IN_TIMEOUT, receiver).await {
            return Ok(query);
        }
        let minutes = SIGN_IN_TIMEOUT.as_secs() / 60;
        let text = format!("the sign-in was not completed within {minutes} minutes");
        Err(AuthError::Page(text))
    }
}

/// Removes a pending sign-in when it is dropped, so that a later redirect is rejected.
struct RemoveOnDrop<'a>(&'a PendingSignIns, &'a str);

impl Drop for RemoveOnDrop<'_> {
    fn drop(&mut self) {
        lock(self.0).remove(self.1);
    }
}

/// The `state` in a query.
pub(super) fn state_of(query: &str) -> Option<String> {
    field(query, "state")
}

fn field(query: &str, name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let pair = pairs.find(|(key, _)| key == name);
    pair.map(|(_, value)| value.into_owned())
}

fn lock(pending: &PendingSignIns) -> MutexGuard<'_, HashMap<String, PendingSignIn>> {
    pending.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn bind(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await
}

/// Accepts connections. A connection that sends nothing does not block others.
async fn accept(listener: TcpListener, pending: PendingSignIns) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(handle_connection(stream, Arc::clone(&pending)));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// The outcome of a request to the listener.
enum CallbackOutcome {
    /// The pending sign-in is completed with this query.
    Complete(oneshot::Sender<String>, String),
    /// The user must confirm this question first; the confirmation has this token.
    Confirm(String, String),
    /// The request belongs to no pending sign-in.
    NotFound,
}

/// Handles one connection. A request with an unknown `state` is rejected and ends no sign-in.
async fn handle_connection(mut stream: TcpStream, pending: PendingSignIns) {
    let request = tokio::time::timeout(REQUEST_TIMEOUT, read_request_line(&mut stream)).await;
    let Some((method, target)) = request.ok().flatten() else {
        return;
    };
    match handle_request(&pending, &method, &target) {
        CallbackOutcome::NotFound => {
            respond(&mut stream, "404 Not Found", &paragraph(UNKNOWN_STATE_PAGE)).await;
        }
        CallbackOutcome::Confirm(text, token) => {
            let (text, action) = (paragraph(&text), format!("{CONFIRM_PATH}?word={token}"));
            let form = format!(
                "{text}<form method=post action=\"{action}\"><button>Yes, go on</button></form>"
            );
            respond(&mut stream, "200 OK", &form).await;
        }
        CallbackOutcome::Complete(sender, query) => {
            respond(&mut stream, "200 OK", &paragraph(DONE_PAGE)).await;
            // The receiver may have timed out meanwhile.
            drop(sender.send(query));
        }
    }
}

/// Finds the pending sign-in of a request, and updates it.
fn handle_request(pending: &PendingSignIns, method: &str, target: &str) -> CallbackOutcome {
    let Some((path, query)) = target.split_once('?') else {
        return CallbackOutcome::NotFound;
    };
    let mut pending_sign_ins = lock(pending);
    let complete = |pending: Option<PendingSignIn>, query: String| match pending {
        Some(pending) => CallbackOutcome::Complete(pending.sender, query),
        None => CallbackOutcome::NotFound,
    };
    match (method, path) {
        ("GET", CALLBACK_PATH) => {
            let state = state_of(query).unwrap_or_default();
            match pending_sign_ins.get_mut(&state) {
                None => CallbackOutcome::NotFound,
                Some(pending) => match (&pending.question, &pending.redirected) {
                    (None, _) => complete(pending_sign_ins.remove(&state), query.to_owned()),
                    (Some(question), None) => {
                        let question = question.clone();
                        let token = random_token();
                        pending.redirected = Some((query.to_owned(), token.clone()));
                        CallbackOutcome::Confirm(question, token)
                    }
                    // Another browser was already redirected, and only that one may confirm.
                    (Some(_), Some(_)) => CallbackOutcome::NotFound,
                },
            }
        }
        // Only POST confirms, so that prefetching and images cannot.
        ("POST", CONFIRM_PATH) => {
            let token = field(query, "word").unwrap_or_default();
            let with_token = |(state, pending): (&String, &PendingSignIn)| {
                let (query, expected) = pending.redirected.as_ref()?;
                (*expected == token).then(|| (state.clone(), query.clone()))
            };
            match pending_sign_ins.iter().find_map(with_token) {
                Some((state, query)) => complete(pending_sign_ins.remove(&state), query),
                None => CallbackOutcome::NotFound,
            }
        }
        _ => CallbackOutcome::NotFound,
    }
}

#[expect(
    clippy::expect_used,
    reason = "without random numbers, sign-ins are not secure"
)]
fn random_token() -> String {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).expect("the operating system has random numbers");
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Reads a request; returns its method and target.
async fn read_request_line(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read(&mut buffer).await.ok()?;
        if count == 0 || head.len() > MAX_REQUEST_BYTES {
            return None;
        }
        head.extend_from_slice(buffer.get(..count)?);
    }
    let head = String::from_utf8(head).ok()?;
    let mut words = head.lines().next()?.split(' ');
    Some((words.next()?.to_owned(), words.next()?.to_owned()))
}

async fn respond(stream: &mut TcpStream, status: &str, body: &str) {
    let page = format!("<!doctype html><title>Plexus</title>{body}\n");
    let response = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\n\
         content-security-policy: {CONTENT_SECURITY_POLICY}\r\nconnection: close\r\n\r\n{page}",
        page.len()
    );
    // It does not matter whether the browser reads the page.
    drop(stream.write_all(response.as_bytes()).await);
    drop(stream.shutdown().await);
}

/// Text as an HTML paragraph, escaped.
fn paragraph(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => shown.push_str("&amp;"),
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            '"' => shown.push_str("&quot;"),
            other => shown.push(other),
        }
    }
    format!("<p>{shown}</p>")
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn get(listener: &CallbackListener, target: &str) -> String {
        ask(listener, "GET", target).await
    }

    async fn ask(listener: &CallbackListener, method: &str, target: &str) -> String {
        let mut stream = connect(listener).await;
        let request = format!("{method} {target} HTTP/1.1\r\nhost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    async fn connect(listener: &CallbackListener) -> TcpStream {
        TcpStream::connect(("127.0.0.1", port_of(listener)))
            .await
            .unwrap()
    }

    fn port_of(listener: &CallbackListener) -> u16 {
        let address = listener.redirect_uri().strip_prefix("http://127.0.0.1:");
        let port = address.unwrap().strip_suffix(CALLBACK_PATH);
        port.unwrap().parse().unwrap()
    }

    async fn listener() -> Arc<CallbackListener> {
        SignInCallbacks::default().listener(None).await.unwrap()
    }

    /// A wrong `state` ends no sign-in: the user can still be redirected.
    #[tokio::test]
    async fn unknown_requests_are_rejected() {
        let listener = listener().await;
        let visits = async {
            let _silent = connect(&listener).await;
            for target in [
                "/callback?code=c&state=guessed",
                "/callback?code=c&state=",
                "/callback?code=c",
                "/favicon.ico",
                "/other?code=c&state=mine",
            ] {
                let answer = get(&listener, target).await;
                assert!(answer.starts_with("HTTP/1.1 404"), "{target}: {answer}");
            }
            let accepted = get(&listener, "/callback?code=c&state=mi%6Ee").await;
            assert!(accepted.starts_with("HTTP/1.1 200"), "{accepted}");
            get(&listener, "/callback?code=c&state=mine").await
        };
        let (query, again) = tokio::join!(listener.query("mine", None), visits);
        assert_eq!(query.unwrap(), "code=c&state=mi%6Ee");
        assert!(again.starts_with("HTTP/1.1 404"), "a redirect counts once");
    }

    /// All sign-ins of a process share one port, and each gets its own redirect.
    #[tokio::test]
    async fn one_port_serves_many_sign_ins() {
        let callbacks = SignInCallbacks::default();
        let (first, second) = (
            callbacks.listener(None).await,
            callbacks.listener(None).await,
        );
        let (first, second) = (first.unwrap(), second.unwrap());
        assert_eq!(first.redirect_uri(), second.redirect_uri());
        let visits = async {
            get(&first, "/callback?code=b&state=two").await;
            get(&first, "/callback?code=a&state=one").await;
        };
        let (one, two, ()) =
            tokio::join!(first.query("one", None), second.query("two", None), visits);
        assert_eq!(one.unwrap(), "code=a&state=one");
        assert_eq!(two.unwrap(), "code=b&state=two");
    }

    /// ELIC-12: a sign-in that needs confirmation counts only after the user confirms, in the
    /// browser that was redirected; another browser that knows the page cannot confirm it.
    #[tokio::test]
    async fn a_user_confirms_in_the_redirected_browser() {
        let listener = listener().await;
        let question = Some("are you <ann>?".to_owned());
        let visits = async {
            let page = get(&listener, "/callback?code=c&state=mine").await;
            assert!(page.starts_with("HTTP/1.1 200"), "{page}");
            assert!(page.contains("are you &lt;ann&gt;?"), "{page}");
            assert!(page.contains("frame-ancestors 'none'"), "{page}");
            let other = get(&listener, "/callback?code=d&state=mine").await;
            assert!(other.starts_with("HTTP/1.1 404"), "{other}");
            let action = page.split_once("action=\"").unwrap().1;
            let action = action.split_once('"').unwrap().0;
            for (method, target) in [
                ("GET", action),
                ("POST", "/confirm?word=guessed"),
                ("POST", "/confirm?word="),
                ("POST", "/callback?code=c&state=mine"),
            ] {
                let refused = ask(&listener, method, target).await;
                assert!(refused.starts_with("HTTP/1.1 404"), "{method} {target}");
            }
            ask(&listener, "POST", action).await
        };
        let (query, confirmed) = tokio::join!(listener.query("mine", question), visits);
        assert_eq!(query.unwrap(), "code=c&state=mine");
        assert!(confirmed.starts_with("HTTP/1.1 200"), "{confirmed}");
    }

    /// A sign-in that is not completed in time expires.
    #[tokio::test(start_paused = true)]
    async fn a_sign_in_expires() {
        let listener = listener().await;
        let error = listener.query("mine", None).await.unwrap_err().to_string();
        assert!(error.contains("was not completed"), "{error}");
        assert!(lock(&listener.pending).is_empty());
    }

    /// A port is open only while a sign-in is pending.
    #[tokio::test]
    async fn the_port_closes_after_the_last_sign_in() {
        let callbacks = SignInCallbacks::default();
        let listener = callbacks.listener(None).await.unwrap();
        let port = port_of(&listener);
        drop(listener);
        // The listening task ends soon, but not immediately.
        while TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            tokio::task::yield_now().await;
        }
        callbacks.listener(None).await.unwrap();
    }

    /// TRAP-33
    #[tokio::test]
    async fn a_taken_port_is_an_error() {
        let first = listener().await;
        let port = port_of(&first);
        let error = SignInCallbacks::default()
            .listener(Some(port))
            .await
            .unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("--port") && error.contains(&port.to_string()),
            "{error}"
        );
        // Without a fixed port, two processes can sign in at once.
        assert_ne!(listener().await.redirect_uri(), first.redirect_uri());
    }
}
