//! A bare hyper server: it reads a request and answers with a fixed body.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::{runtime, spawn};
use crate::message::{SIZES, fixed_answer, fixed_progress};

/// The path of the file.
pub(crate) const FILE: &str = "/file";

/// The path of a response with a text of `bytes` bytes.
pub(crate) fn path_of(bytes: usize, is_stream: bool) -> String {
    let kind = if is_stream { "stream" } else { "json" };
    format!("/{kind}/{bytes}")
}

/// Serves responses of every size, as JSON and as event streams, and `file`, if it is given.
pub(crate) fn serve(address: SocketAddr, file: Option<&Path>) -> anyhow::Result<()> {
    let answers = Arc::new(prepare(file)?);
    runtime()?.block_on(async {
        let listener = TcpListener::bind(address).await?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let answers = Arc::clone(&answers);
            spawn(async move {
                let service = service_fn(|request| answer(&answers, request));
                let connection = http1::Builder::new();
                let served = connection.serve_connection(TokioIo::new(stream), service);
                // A client that closes the connection is not an error.
                drop(served.await);
            });
        }
    })
}

type Answers = HashMap<String, Fixed>;

fn prepare(file: Option<&Path>) -> anyhow::Result<Answers> {
    let mut answers = HashMap::new();
    for bytes in SIZES {
        for is_stream in [false, true] {
            let message = fixed_answer(bytes);
            let parts = if is_stream {
                vec![event(&fixed_progress()), event(&message)]
            } else {
                vec![message.into()]
            };
            answers.insert(path_of(bytes, is_stream), Fixed::new(parts, is_stream));
        }
    }
    if let Some(file) = file {
        let fixed = Fixed::new(vec![fs::read(file)?.into()], false);
        answers.insert(FILE.to_owned(), fixed);
    }
    Ok(answers)
}

fn event(message: &str) -> Bytes {
    format!("data: {message}\n\n").into()
}

async fn answer(
    answers: &Answers,
    request: Request<Incoming>,
) -> Result<Response<Fixed>, Infallible> {
    let (head, mut body) = request.into_parts();
    while let Some(Ok(_)) = body.frame().await {}
    let fixed = answers.get(head.uri.path()).cloned();
    let is_known = fixed.is_some();
    let fixed = fixed.unwrap_or_default();
    let media_type = if fixed.is_stream {
        "text/event-stream"
    } else {
        "application/json"
    };
    let mut response = Response::new(fixed);
    if !is_known {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    Ok(response)
}

/// A body in memory. A stream has several parts and does not announce its length.
#[derive(Debug, Clone, Default)]
struct Fixed {
    parts: VecDeque<Bytes>,
    is_stream: bool,
}

impl Fixed {
    fn new(parts: Vec<Bytes>, is_stream: bool) -> Self {
        Self {
            parts: parts.into(),
            is_stream,
        }
    }
}

impl Body for Fixed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.parts.pop_front().map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.parts.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        if self.is_stream {
            return SizeHint::default();
        }
        let length: usize = self.parts.iter().map(Bytes::len).sum();
        SizeHint::with_exact(length as u64)
    }
}
