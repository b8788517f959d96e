//! The body of an answer, and the connection that it comes by.

use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use http_body::Body;
use hyper::body::Incoming;

use super::connection::Connection;
use super::error::HttpError;
use super::origin::Origin;
use super::pool::Pool;

/// A body that is still to be read. Dropping it closes the connection if the body has not arrived.
pub(super) struct ResponseBody {
    incoming: Incoming,
    /// None after the end, when others may use it.
    connection: Option<Connection>,
    pool: Weak<Pool>,
}

impl ResponseBody {
    pub(super) fn new(
        incoming: Incoming,
        connection: Connection,
        pool: &Arc<Pool>,
        origin: &Origin,
    ) -> Self {
        let mut body = Self {
            incoming,
            connection: Some(connection),
            pool: Arc::downgrade(pool),
        };
        body.part_at_the_end(origin);
        body
    }

    /// The length that was announced, or 0.
    pub(super) fn at_least(&self) -> u64 {
        self.incoming.size_hint().lower()
    }

    /// Whether all of it has been read.
    pub(super) fn is_at_its_end(&self) -> bool {
        self.connection.is_none()
    }

    /// The next part; none after the end. Dropping the future loses nothing.
    pub(super) async fn next(&mut self, origin: &Origin) -> Result<Option<Bytes>, HttpError> {
        loop {
            let Some(connection) = &mut self.connection else {
                return Ok(None);
            };
            let frame = poll_fn(|cx| connection.poll_frame(cx, &mut self.incoming)).await;
            let Some(frame) = frame else {
                self.part(origin);
                return Ok(None);
            };
            let frame = frame.map_err(|error| HttpError::broken(origin.clone(), error))?;
            self.part_at_the_end(origin);
            // Trailers say nothing to us.
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
    }

    fn part_at_the_end(&mut self, origin: &Origin) {
        if self.incoming.is_end_stream() {
            self.part(origin);
        }
    }

    /// Leaves the connection to others, unless it is not to be used again.
    fn part(&mut self, origin: &Origin) {
        if let Some(mut connection) = self.connection.take()
            && let Some(pool) = self.pool.upgrade()
            && connection.is_ready()
        {
            pool.put(origin, connection);
        }
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ResponseBody").field(&self.incoming).finish()
    }
}
