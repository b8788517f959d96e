//! Where the user comes back to: one port of this machine, for one answer.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use plexus_client::auth::AuthError;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::browser::is_of;

/// The port that is tried first, since some authorization servers remember it.
const USUAL: u16 = 4446;
const PATH: &str = "/callback";
const LONGEST: usize = 16 * 1024;
/// How long a browser may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(10);

const THANKS: &str = "Plexus has the answer. You can close this page and go back.";
const STRANGER: &str = "This is not the answer to a sign-in that Plexus waits for.";

/// Listens for a user to come back.
#[derive(Debug)]
pub(super) struct Listener {
    listener: TcpListener,
    redirect_uri: String,
}

impl Listener {
    /// Listens on `port`, or if none is named, on the usual one or any that is free.
    pub(super) async fn bind(port: Option<u16>) -> Result<Self, AuthError> {
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
        Ok(Self {
            listener,
            redirect_uri: format!("http://127.0.0.1:{port}{PATH}"),
        })
    }

    pub(super) fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// The query with which the user came back. Whoever comes with another state is sent away, and
    /// ends nothing; nor does a browser that connects and says nothing keep others waiting.
    pub(super) async fn query(&self, state: &str) -> Result<String, AuthError> {
        let mut visitors = JoinSet::new();
        loop {
            tokio::select! {
                Ok((stream, _)) = self.listener.accept() => {
                    visitors.spawn(received(stream, state.to_owned()));
                }
                Some(Ok(Some(query))) = visitors.join_next() => return Ok(query),
            }
        }
    }
}

/// What one visitor brings, if it is the answer.
async fn received(mut stream: TcpStream, state: String) -> Option<String> {
    let said = tokio::time::timeout(PATIENCE, target(&mut stream)).await;
    let target = said.ok().flatten()?;
    let query = target
        .split_once('?')
        .filter(|(path, query)| *path == PATH && is_of(query, &state))
        .map(|(_, query)| query.to_owned());
    answer(&mut stream, query.is_some()).await;
    query
}

async fn bind(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await
}

/// What a GET request asks for.
async fn target(stream: &mut TcpStream) -> Option<String> {
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
    (words.next()? == "GET").then(|| words.next().map(str::to_owned))?
}

async fn answer(stream: &mut TcpStream, welcome: bool) {
    let (status, text) = if welcome {
        ("200 OK", THANKS)
    } else {
        ("404 Not Found", STRANGER)
    };
    let page = format!("<!doctype html><title>Plexus</title><p>{text}</p>\n");
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n{page}",
        page.len()
    );
    // Whether the user reads it changes nothing.
    drop(stream.write_all(answer.as_bytes()).await);
    drop(stream.shutdown().await);
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn get(listener: &Listener, target: &str) -> String {
        let address = listener.listener.local_addr().unwrap();
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {target} HTTP/1.1\r\nhost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    /// A wrong state ends nothing: the user can still come back.
    #[tokio::test]
    async fn strangers_are_sent_away() {
        let listener = Listener::bind(None).await.unwrap();
        let visits = async {
            let address = listener.listener.local_addr().unwrap();
            let _silent = TcpStream::connect(address).await.unwrap();
            let stranger = get(&listener, "/callback?code=c&state=guessed").await;
            assert!(stranger.starts_with("HTTP/1.1 404"), "{stranger}");
            let elsewhere = get(&listener, "/favicon.ico").await;
            assert!(elsewhere.starts_with("HTTP/1.1 404"), "{elsewhere}");
            get(&listener, "/callback?code=c&state=mine").await
        };
        let (query, welcome) = tokio::join!(listener.query("mine"), visits);
        assert_eq!(query.unwrap(), "code=c&state=mine");
        assert!(welcome.starts_with("HTTP/1.1 200"), "{welcome}");
    }

    /// TRAP-33
    #[tokio::test]
    async fn a_port_that_is_taken_is_told() {
        let first = Listener::bind(None).await.unwrap();
        let port = first.listener.local_addr().unwrap().port();
        let error = Listener::bind(Some(port)).await.unwrap_err().to_string();
        assert!(
            error.contains("--port") && error.contains(&port.to_string()),
            "{error}"
        );
        // Without a wish, two can sign in at once.
        assert_ne!(
            Listener::bind(None).await.unwrap().redirect_uri(),
            first.redirect_uri()
        );
    }
}
