//! The head of an answer.

use std::mem::MaybeUninit;

use bytes::{Buf, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Version};
use httparse::{ParserConfig, Status};

/// The longest head, in bytes and in fields.
pub(super) const MAX_HEAD: usize = 32 * 1024;
const MAX_FIELDS: usize = 100;

/// What an answer says before its body.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) version: Version,
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
}

/// A head that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadHead {
    #[error("the answer is not HTTP: {0}")]
    NotHttp(#[from] httparse::Error),
    #[error("the answer is not HTTP: invalid header name or value")]
    Field,
    #[error("the answer is not HTTP: invalid status")]
    Status,
    #[error("the head of the answer is longer than {MAX_HEAD} bytes")]
    TooLong,
}

impl Head {
    /// The next head in `unread`, if it is there. What only says that an answer will come is gone
    /// past.
    pub(super) fn take(unread: &mut BytesMut) -> Result<Option<Self>, BadHead> {
        while !unread.is_empty() {
            let Some(head) = Self::take_any(unread)? else {
                return Ok(None);
            };
            if !head.status.is_informational() || head.status == StatusCode::SWITCHING_PROTOCOLS {
                return Ok(Some(head));
            }
        }
        Ok(None)
    }

    fn take_any(unread: &mut BytesMut) -> Result<Option<Self>, BadHead> {
        let mut fields = [const { MaybeUninit::uninit() }; MAX_FIELDS];
        let mut response = httparse::Response::new(&mut []);
        let parser = ParserConfig::default();
        let parsed =
            parser.parse_response_with_uninit_headers(&mut response, unread, &mut fields)?;
        let Status::Complete(length) = parsed else {
            let is_too_long = unread.len() > MAX_HEAD;
            return (!is_too_long).then_some(None).ok_or(BadHead::TooLong);
        };
        let version = match response.version {
            Some(0) => Version::HTTP_10,
            _ => Version::HTTP_11,
        };
        let status = response.code.map(StatusCode::from_u16);
        let Some(Ok(status)) = status else {
            return Err(BadHead::Status);
        };
        let mut headers = HeaderMap::with_capacity(response.headers.len());
        for field in response.headers.iter() {
            let name = HeaderName::from_bytes(field.name.as_bytes());
            match (name, HeaderValue::from_bytes(field.value)) {
                (Ok(name), Ok(value)) => headers.append(name, value),
                _ => return Err(BadHead::Field),
            };
        }
        unread.advance(length);
        Ok(Some(Self {
            version,
            status,
            headers,
        }))
    }
}
