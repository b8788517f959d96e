//! The body of a response.

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};

use super::error::HttpError;
use super::origin::Origin;

/// A body that is read in parts. Dropping it before its end cancels the request.
#[derive(Debug)]
pub(super) struct ResponseBody(Incoming);

impl ResponseBody {
    pub(super) fn new(body: Incoming) -> Self {
        Self(body)
    }

    /// The length according to `Content-Length`, or 0.
    pub(super) fn announced_length(&self) -> u64 {
        self.0.size_hint().lower()
    }

    /// Whether all of it has been read.
    pub(super) fn is_at_end(&self) -> bool {
        self.0.is_end_stream()
    }

    /// The next part; none after the end. Cancel-safe.
    pub(super) async fn next(&mut self, origin: &Origin) -> Result<Option<Bytes>, HttpError> {
        while let Some(frame) = self.0.frame().await {
            let frame = frame.map_err(|error| HttpError::broken(origin.clone(), error))?;
            // Trailers are ignored.
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}
