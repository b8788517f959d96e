//! Where users come back to from sign-in pages: one port of this machine for all sign-ins of this
//! process, each known by its state.

use std::collections::HashMap;
use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use plexus_client::auth::AuthError;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex as AsyncMutex, oneshot};
use tokio::task::JoinSet;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use url::form_urlencoded;

/// The port that is tried first, since some authorization servers remember it.
const USUAL: u16 = 4446;
const PATH: &str = "/callback";
const CONFIRM: &str = "/confirm";
const LONGEST: usize = 16 * 1024;
/// How long a browser may take to say what it wants, and how many may be about to.
const PATIENCE: Duration = Duration::from_secs(10);
const MAX_VISITORS: usize = 32;
/// How long a user may take to sign in.
const SIGN_IN: Duration = Duration::from_mins(10);

const THANKS: &str = "Plexus has the answer. You can close this page and go back.";
const STRANGER: &str = "This is not the answer to a sign-in that Plexus waits for.";
/// Nothing but what is here, and in no other page.
const POLICY: &str = "default-src 'none'; form-action 'self'; frame-ancestors 'none'";

/// All places of this process where users come back to. All clones are one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Landing {
    /// By the port that was wished for. One that nobody waits at is closed.
    doors: Arc<AsyncMutex<HashMap<Option<u16>, Weak<Door>>>>,
}

impl Landing {
    /// The place at `port`, or if none is named, at the usual one or any that is free.
    pub(super) async fn door(&self, port: Option<u16>) -> Result<Arc<Door>, AuthError> {
        let mut doors = self.doors.lock().await;
        if let Some(door) = doors.get(&port).and_then(Weak::upgrade) {
            return Ok(door);
        }
        let door = Arc::new(Door::open(port).await?);
        doors.insert(port, Arc::downgrade(&door));
        Ok(door)
    }
}

/// Users who are awaited, by the state of their sign-in.
type Awaited = Arc<Mutex<HashMap<String, Waiting>>>;

/// Who waits for a user.
#[derive(Debug)]
struct Waiting {
    sender: oneshot::Sender<String>,
    /// What the user must say yes to first, in the browser that came back.
    question: Option<String>,
    /// With what they came back, and what only that browser was told.
    back: Option<(String, String)>,
}

/// One port. It is closed when it is dropped.
#[derive(Debug)]
pub(super) struct Door {
    redirect_uri: String,
    awaited: Awaited,
    _receiving: AbortOnDropHandle<()>,
}

impl Door {
    async fn open(port: Option<u16>) -> Result<Self, AuthError> {
        let bound = match port {
            Some(port) => bind(port).await,
            None => match bind(USUAL).await {
                Err(_taken) => bind(0).await,
                bound => bound,
            },
        };
        let failed = |error: io::Error| {
            let port = port.map_or_else(|| "no port".to_owned(), |port| format!("port {port}"));
            let text = format!(
                "cannot listen on {port} for the answer of the sign-in page: {error}; end what \
                 listens there, or name another with --port"
            );
            AuthError::Page(text)
        };
        let listener = bound.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let awaited = Awaited::default();
        let receiving = TaskTracker::new().spawn(receive(listener, Arc::clone(&awaited)));
        Ok(Self {
            redirect_uri: format!("http://127.0.0.1:{port}{PATH}"),
            awaited,
            _receiving: AbortOnDropHandle::new(receiving),
        })
    }

    pub(super) fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// The query with which the user came back whose sign-in has this state, if it comes in time,
    /// and if they say yes to the question.
    pub(super) async fn query(
        &self,
        state: &str,
        question: Option<String>,
    ) -> Result<String, AuthError> {
        let (sender, back) = oneshot::channel();
        let waiting = Waiting {
            sender,
            question,
            back: None,
        };
        lock(&self.awaited).insert(state.to_owned(), waiting);
        let _forgotten = Forget(&self.awaited, state);
        if let Ok(Ok(query)) = tokio::time::timeout(SIGN_IN, back).await {
            return Ok(query);
        }
        let minutes = SIGN_IN.as_secs() / 60;
        let text = format!("nobody came back from the sign-in page in {minutes} minutes");
        Err(AuthError::Page(text))
    }
}

/// Whoever is not awaited any more is a stranger.
struct Forget<'a>(&'a Awaited, &'a str);

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        lock(self.0).remove(self.1);
    }
}

/// The state in a query.
pub(super) fn state_of(query: &str) -> Option<String> {
    field(query, "state")
}

fn field(query: &str, name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let pair = pairs.find(|(key, _)| key == name);
    pair.map(|(_, value)| value.into_owned())
}

fn lock(awaited: &Awaited) -> MutexGuard<'_, HashMap<String, Waiting>> {
    awaited.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn bind(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await
}

/// Hears visitors, of whom one that says nothing keeps no other waiting.
async fn receive(listener: TcpListener, awaited: Awaited) {
    let mut visitors = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if visitors.len() < MAX_VISITORS => {
                if let Ok((stream, _)) = accepted {
                    visitors.spawn(received(stream, Arc::clone(&awaited)));
                }
            }
            Some(_) = visitors.join_next() => {}
        }
    }
}

/// What a visitor brings.
enum Brought {
    /// The answer that somebody waits for.
    Answer(oneshot::Sender<String>, String),
    /// An answer that counts once they say yes to this question, by this word.
    Question(String, String),
    Nothing,
}

/// Takes what one visitor brings, if it is awaited. Whoever comes with another state is sent away,
/// and ends nothing.
async fn received(mut stream: TcpStream, awaited: Awaited) {
    let said = tokio::time::timeout(PATIENCE, target(&mut stream)).await;
    let Some((method, target)) = said.ok().flatten() else {
        return;
    };
    match brought(&awaited, &method, &target) {
        Brought::Nothing => answer(&mut stream, "404 Not Found", &paragraph(STRANGER)).await,
        Brought::Question(text, word) => {
            let (text, action) = (paragraph(&text), format!("{CONFIRM}?word={word}"));
            let form = format!(
                "{text}<form method=post action=\"{action}\"><button>Yes, go on</button></form>"
            );
            answer(&mut stream, "200 OK", &form).await;
        }
        Brought::Answer(waiting, query) => {
            answer(&mut stream, "200 OK", &paragraph(THANKS)).await;
            // Whoever waited may have given up meanwhile.
            drop(waiting.send(query));
        }
    }
}

fn brought(awaited: &Awaited, method: &str, target: &str) -> Brought {
    let Some((path, query)) = target.split_once('?') else {
        return Brought::Nothing;
    };
    let mut awaited = lock(awaited);
    let taken = |waiting: Option<Waiting>, query: String| match waiting {
        Some(waiting) => Brought::Answer(waiting.sender, query),
        None => Brought::Nothing,
    };
    match (method, path) {
        ("GET", PATH) => {
            let state = state_of(query).unwrap_or_default();
            match awaited.get_mut(&state) {
                None => Brought::Nothing,
                Some(waiting) => match (&waiting.question, &waiting.back) {
                    (None, _) => taken(awaited.remove(&state), query.to_owned()),
                    (Some(question), None) => {
                        let question = question.clone();
                        let word = unguessable();
                        waiting.back = Some((query.to_owned(), word.clone()));
                        Brought::Question(question, word)
                    }
                    // One browser was asked already, and no other has a say in it.
                    (Some(_), Some(_)) => Brought::Nothing,
                },
            }
        }
        // What is fetched ahead, or by an image, is no yes.
        ("POST", CONFIRM) => {
            let word = field(query, "word").unwrap_or_default();
            let is_it = |(state, waiting): (&String, &Waiting)| {
                let (back, own) = waiting.back.as_ref()?;
                (*own == word).then(|| (state.clone(), back.clone()))
            };
            match awaited.iter().find_map(is_it) {
                Some((state, back)) => taken(awaited.remove(&state), back),
                None => Brought::Nothing,
            }
        }
        _ => Brought::Nothing,
    }
}

#[expect(
    clippy::expect_used,
    reason = "without randomness there is no security to go on with"
)]
fn unguessable() -> String {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Method and target of a request.
async fn target(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read(&mut buffer).await.ok()?;
        if count == 0 || head.len() > LONGEST {
            return None;
        }
        head.extend_from_slice(buffer.get(..count)?);
    }
    let head = String::from_utf8(head).ok()?;
    let mut words = head.lines().next()?.split(' ');
    Some((words.next()?.to_owned(), words.next()?.to_owned()))
}

async fn answer(stream: &mut TcpStream, status: &str, body: &str) {
    let page = format!("<!doctype html><title>Plexus</title>{body}\n");
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\n\
         content-security-policy: {POLICY}\r\nconnection: close\r\n\r\n{page}",
        page.len()
    );
    // Whether the user reads it changes nothing.
    drop(stream.write_all(answer.as_bytes()).await);
    drop(stream.shutdown().await);
}

/// Text as a page shows it, whatever is in it.
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

    async fn get(door: &Door, target: &str) -> String {
        ask(door, "GET", target).await
    }

    async fn ask(door: &Door, method: &str, target: &str) -> String {
        let mut stream = connect(door).await;
        let request = format!("{method} {target} HTTP/1.1\r\nhost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    async fn connect(door: &Door) -> TcpStream {
        TcpStream::connect(("127.0.0.1", port_of(door)))
            .await
            .unwrap()
    }

    fn port_of(door: &Door) -> u16 {
        let address = door.redirect_uri().strip_prefix("http://127.0.0.1:");
        let port = address.unwrap().strip_suffix(PATH);
        port.unwrap().parse().unwrap()
    }

    async fn door() -> Arc<Door> {
        Landing::default().door(None).await.unwrap()
    }

    /// A wrong state ends nothing: the user can still come back.
    #[tokio::test]
    async fn strangers_are_sent_away() {
        let door = door().await;
        let visits = async {
            let _silent = connect(&door).await;
            for stranger in [
                "/callback?code=c&state=guessed",
                "/callback?code=c&state=",
                "/callback?code=c",
                "/favicon.ico",
                "/other?code=c&state=mine",
            ] {
                let answer = get(&door, stranger).await;
                assert!(answer.starts_with("HTTP/1.1 404"), "{stranger}: {answer}");
            }
            let welcome = get(&door, "/callback?code=c&state=mi%6Ee").await;
            assert!(welcome.starts_with("HTTP/1.1 200"), "{welcome}");
            get(&door, "/callback?code=c&state=mine").await
        };
        let (query, again) = tokio::join!(door.query("mine", None), visits);
        assert_eq!(query.unwrap(), "code=c&state=mi%6Ee");
        assert!(again.starts_with("HTTP/1.1 404"), "an answer counts once");
    }

    /// All sign-ins of a process share one port, and get each their own answer.
    #[tokio::test]
    async fn one_port_serves_many_sign_ins() {
        let landing = Landing::default();
        let (first, second) = (landing.door(None).await, landing.door(None).await);
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

    /// ELIC-12: who is asked whether it is them counts only after they say yes, in the browser that
    /// came back; whoever else knows the page cannot say it for them.
    #[tokio::test]
    async fn a_user_says_yes_in_their_own_browser() {
        let door = door().await;
        let question = Some("are you <ann>?".to_owned());
        let visits = async {
            let asked = get(&door, "/callback?code=c&state=mine").await;
            assert!(asked.starts_with("HTTP/1.1 200"), "{asked}");
            assert!(asked.contains("are you &lt;ann&gt;?"), "{asked}");
            assert!(asked.contains("frame-ancestors 'none'"), "{asked}");
            let other = get(&door, "/callback?code=d&state=mine").await;
            assert!(other.starts_with("HTTP/1.1 404"), "{other}");
            let action = asked.split_once("action=\"").unwrap().1;
            let action = action.split_once('"').unwrap().0;
            for (method, target) in [
                ("GET", action),
                ("POST", "/confirm?word=guessed"),
                ("POST", "/confirm?word="),
                ("POST", "/callback?code=c&state=mine"),
            ] {
                let refused = ask(&door, method, target).await;
                assert!(refused.starts_with("HTTP/1.1 404"), "{method} {target}");
            }
            ask(&door, "POST", action).await
        };
        let (query, thanks) = tokio::join!(door.query("mine", question), visits);
        assert_eq!(query.unwrap(), "code=c&state=mine");
        assert!(thanks.starts_with("HTTP/1.1 200"), "{thanks}");
    }

    /// A page that was not visited in time is worth nothing any more.
    #[tokio::test(start_paused = true)]
    async fn a_sign_in_expires() {
        let door = door().await;
        let error = door.query("mine", None).await.unwrap_err().to_string();
        assert!(error.contains("nobody came back"), "{error}");
        assert!(lock(&door.awaited).is_empty());
    }

    /// A port is open only while somebody is awaited there.
    #[tokio::test]
    async fn nobody_listens_for_nobody() {
        let landing = Landing::default();
        let door = landing.door(None).await.unwrap();
        let port = port_of(&door);
        drop(door);
        // The task that listened ends at once, but not in this very moment.
        while TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            tokio::task::yield_now().await;
        }
        landing.door(None).await.unwrap();
    }

    /// TRAP-33
    #[tokio::test]
    async fn a_port_that_is_taken_is_told() {
        let first = door().await;
        let port = port_of(&first);
        let error = Landing::default().door(Some(port)).await.unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("--port") && error.contains(&port.to_string()),
            "{error}"
        );
        // Without a wish, two processes can sign in at once.
        assert_ne!(door().await.redirect_uri(), first.redirect_uri());
    }
}
