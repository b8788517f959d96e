//! A bare hyper server: it reads a request and answers with a fixed body.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::LocalSet;

use super::runtime;
use crate::message::{SIZES, fixed_answer};

/// The path of the file.
pub(crate) const FILE: &str = "/file";

/// The path of a response with a text of `bytes` bytes.
pub(crate) fn echo_path(bytes: usize, is_stream: bool) -> String {
    let kind = if is_stream { "stream" } else { "echo" };
    format!("/{kind}/{bytes}")
}

/// Serves responses of every size, as JSON and as event streams, and `file`, if it is given.
pub(crate) fn serve(address: SocketAddr, file: Option<&Path>) -> anyhow::Result<()> {
    let answers = Rc::new(prepare(file)?);
    let runtime = runtime()?;
    LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind(address).await?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let answers = Rc::clone(&answers);
            tokio::task::spawn_local(async move {
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
            let body = if is_stream {
                format!("data: {message}\n\n")
            } else {
                message
            };
            let fixed = Fixed {
                bytes: Some(body.into()),
                is_stream,
            };
            answers.insert(echo_path(bytes, is_stream), fixed);
        }
    }
    if let Some(file) = file {
        let fixed = Fixed {
            bytes: Some(fs::read(file)?.into()),
            is_stream: false,
        };
        answers.insert(FILE.to_owned(), fixed);
    }
    Ok(answers)
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

/// A body in memory; a stream does not announce its length.
#[derive(Debug, Clone, Default)]
struct Fixed {
    bytes: Option<Bytes>,
    is_stream: bool,
}

impl Body for Fixed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.bytes.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.bytes {
            Some(bytes) if !self.is_stream => SizeHint::with_exact(bytes.len() as u64),
            Some(_) => SizeHint::default(),
            None => SizeHint::with_exact(0),
        }
    }
}
