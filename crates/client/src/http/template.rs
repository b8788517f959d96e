//! Requests that differ in little from one another.

use std::fmt::Write;

use bytes::{BufMut, Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, HOST, PROXY_AUTHORIZATION, TRANSFER_ENCODING};
use http::uri::{PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};

use super::origin::Origin;
use super::{HttpError, ProxyRules};

/// Up to which length a body is copied behind its head, so that both are written as one.
const SHORT: usize = 4 * 1024;
/// How much a length takes at most, with the ends of its line and of the head.
const LENGTH: usize = 48;

/// The head of requests to one place, made once for all of them.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    pub(super) origin: Origin,
    pub(crate) url: Uri,
    pub(crate) method: Method,
    headers: HeaderMap,
    /// The head as it is written where no proxy reads it, without its end.
    written: Bytes,
}

impl Template {
    pub(super) fn new(
        method: Method,
        url: &Uri,
        mut headers: HeaderMap,
        proxies: &ProxyRules,
    ) -> Result<Self, HttpError> {
        let origin = Origin::of(url)?;
        if let Some(authorization) = proxies.authorization(url) {
            headers.entry(PROXY_AUTHORIZATION).or_insert(authorization);
        }
        headers.entry(HOST).or_insert_with(|| host(url));
        // Where a body ends is ours to say.
        headers.remove(CONTENT_LENGTH);
        headers.remove(TRANSFER_ENCODING);
        Ok(Self {
            written: beginning(&method, path_of(url), &headers).freeze(),
            origin,
            url: url.clone(),
            method,
            headers,
        })
    }

    /// The bytes of a request with `more` headers, which replace those of the template. Its body is
    /// among them if it is short, else it is given back.
    pub(super) fn fill(
        &self,
        more: &[(HeaderName, HeaderValue)],
        body: Bytes,
        is_proxied: bool,
    ) -> (Bytes, Bytes) {
        let prepared = if is_proxied {
            None
        } else {
            self.extended(more, body.len())
        };
        let mut bytes = prepared.unwrap_or_else(|| self.rewritten(more, is_proxied));
        if !body.is_empty() || self.method == Method::POST {
            put_length(&mut bytes, body.len());
        }
        bytes.put_slice(b"\r\n");
        if body.len() <= SHORT {
            bytes.put_slice(&body);
            return (bytes.freeze(), Bytes::new());
        }
        (bytes.freeze(), body)
    }

    /// The head with `more` headers at its end; none if one of them is to replace another.
    fn extended(&self, more: &[(HeaderName, HeaderValue)], body: usize) -> Option<BytesMut> {
        let lines = more.iter().map(|(name, value)| line_length(name, value));
        let length = self.written.len() + lines.sum::<usize>() + LENGTH + body.min(SHORT);
        let mut bytes = BytesMut::with_capacity(length);
        bytes.put_slice(&self.written);
        for (name, value) in more {
            match self.headers.get(name) {
                None => put_line(&mut bytes, name, value),
                Some(same) if same == value => {}
                Some(_) => return None,
            }
        }
        Some(bytes)
    }

    /// The head with `more` headers, made anew.
    fn rewritten(&self, more: &[(HeaderName, HeaderValue)], is_proxied: bool) -> BytesMut {
        let mut headers = self.headers.clone();
        for (name, value) in more {
            headers.insert(name, value.clone());
        }
        if is_proxied {
            return beginning(&self.method, &self.url.to_string(), &headers);
        }
        beginning(&self.method, path_of(&self.url), &headers)
    }
}

/// A head without its end.
fn beginning(method: &Method, target: &str, headers: &HeaderMap) -> BytesMut {
    let lines = headers.iter().map(|(name, value)| line_length(name, value));
    let length = method.as_str().len() + target.len() + 16 + lines.sum::<usize>();
    let mut bytes = BytesMut::with_capacity(length + LENGTH);
    bytes.put_slice(method.as_str().as_bytes());
    bytes.put_slice(b" ");
    bytes.put_slice(target.as_bytes());
    bytes.put_slice(b" HTTP/1.1\r\n");
    for (name, value) in headers {
        put_line(&mut bytes, name, value);
    }
    bytes
}

fn line_length(name: &HeaderName, value: &HeaderValue) -> usize {
    name.as_str().len() + value.len() + 4
}

fn put_line(bytes: &mut BytesMut, name: &HeaderName, value: &HeaderValue) {
    bytes.put_slice(name.as_str().as_bytes());
    bytes.put_slice(b": ");
    bytes.put_slice(value.as_bytes());
    bytes.put_slice(b"\r\n");
}

fn put_length(bytes: &mut BytesMut, length: usize) {
    let written = write!(bytes, "content-length: {length}\r\n");
    debug_assert!(written.is_ok(), "writing to memory does not fail");
}

/// What a request to `url` says in its `Host` header.
fn host(url: &Uri) -> HeaderValue {
    let authority = url.authority().map_or("", |authority| authority.as_str());
    let default = match url.scheme() {
        Some(scheme) if *scheme == Scheme::HTTPS => ":443",
        _ => ":80",
    };
    let host = authority.strip_suffix(default).unwrap_or(authority);
    HeaderValue::from_str(host).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// What a request to `url` asks for, where no proxy reads it.
fn path_of(url: &Uri) -> &str {
    url.path_and_query().map_or("/", PathAndQuery::as_str)
}
