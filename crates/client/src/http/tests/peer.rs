//! A scripted HTTP server, which controls each byte and when it is sent.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::post;
use crate::http::HttpClient;

/// An answer without a body.
pub(super) const EMPTY: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// A listener on loopback.
pub(super) struct Peer {
    listener: TcpListener,
    pub(super) address: SocketAddr,
}

/// One connection, seen from the server.
pub(super) struct Link<S = TcpStream> {
    stream: S,
    unread: Vec<u8>,
}

impl Peer {
    pub(super) async fn bind() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        Self { listener, address }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(super) async fn accept(&self) -> Link {
        let (stream, _) = self.listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        Link::new(stream)
    }

    /// A connection that `client` had one request answered on, and keeps.
    pub(super) async fn used_by(&self, client: &HttpClient) -> Link {
        let url = self.url("/");
        let asking = async {
            let response = client.send(post(&url, "1")).await.unwrap();
            response.bytes().await.unwrap();
        };
        let answering = async {
            let mut link = self.accept().await;
            link.request().await;
            link.write(EMPTY).await;
            link
        };
        tokio::join!(asking, answering).1
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Link<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            unread: Vec::new(),
        }
    }

    /// The stream, when everything on it has been read.
    pub(super) fn into_inner(self) -> S {
        assert!(self.unread.is_empty());
        self.stream
    }

    /// The next request: head and body as they stand on the wire.
    pub(super) async fn request(&mut self) -> String {
        loop {
            if let Some(length) = request_length(&self.unread) {
                let rest = self.unread.split_off(length);
                let request = std::mem::replace(&mut self.unread, rest);
                return String::from_utf8(request).unwrap();
            }
            let read = self.stream.read_buf(&mut self.unread).await.unwrap();
            assert!(read > 0, "the connection ended within a request");
        }
    }

    /// Waits until the head of a request is there.
    pub(super) async fn request_head(&mut self) {
        while !self.unread.windows(4).any(|window| window == b"\r\n\r\n") {
            let read = self.stream.read_buf(&mut self.unread).await.unwrap();
            assert!(read > 0, "the connection ended within a request");
        }
    }

    /// The next request; never, if the client closes its end instead.
    pub(super) async fn request_or_end(&mut self) -> String {
        while request_length(&self.unread).is_none() {
            if self.stream.read_buf(&mut self.unread).await.unwrap_or(0) == 0 {
                std::future::pending::<()>().await;
            }
        }
        self.request().await
    }

    pub(super) async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    /// Answers 200 with this body in as many chunks.
    pub(super) async fn answer(&mut self, content_type: &str, chunks: &[&[u8]]) {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n"
        );
        self.write(head).await;
        for chunk in chunks.iter().filter(|chunk| !chunk.is_empty()) {
            self.chunk(chunk).await;
        }
        self.write("0\r\n\r\n").await;
    }

    pub(super) async fn chunk(&mut self, chunk: &[u8]) {
        self.write(format!("{:x}\r\n", chunk.len())).await;
        self.write(chunk).await;
        self.write("\r\n").await;
    }

    /// Ends our direction.
    pub(super) async fn shut_down(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// Waits until the client has closed its end.
    pub(super) async fn closed(&mut self) {
        // A reset is a close as well: the client may have left bytes of ours unread.
        let read = self.stream.read_buf(&mut self.unread).await.unwrap_or(0);
        assert_eq!(read, 0, "the client sent more");
    }

    /// The same, whatever the client still sends before.
    pub(super) async fn closed_at_last(&mut self) {
        while self.stream.read_buf(&mut self.unread).await.unwrap_or(0) > 0 {}
    }
}

/// How many of the bytes are the first request, if it is all there.
fn request_length(bytes: &[u8]) -> Option<usize> {
    let head_end = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..head_end]).to_ascii_lowercase();
    let body = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |length| length.parse::<usize>().unwrap());
    (bytes.len() >= head_end + body).then_some(head_end + body)
}
