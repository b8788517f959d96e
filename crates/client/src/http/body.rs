//! The body of an answer, and the connection that it comes by.

use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Weak};

use bytes::Bytes;

use super::connection::Connection;
use super::error::HttpError;
use super::origin::Origin;
use super::pool::Pool;

/// A body that is still to be read. Dropping it closes the connection if the body has not arrived.
pub(super) struct ResponseBody {
    /// How long it was to be at least, before any of it was taken.
    announced: u64,
    /// None after the end, when others may use it.
    connection: Option<Box<Connection>>,
    pool: Weak<Pool>,
}

impl ResponseBody {
    pub(super) fn new(connection: Box<Connection>, pool: &Arc<Pool>, origin: &Origin) -> Self {
        let mut body = Self {
            announced: connection.at_least(),
            connection: Some(connection),
            pool: Arc::downgrade(pool),
        };
        body.part_at_the_end(origin);
        body
    }

    /// The length that was announced, or 0.
    pub(super) fn announced(&self) -> u64 {
        self.announced
    }

    /// Whether all of it has been read.
    pub(super) fn is_at_its_end(&self) -> bool {
        self.connection.is_none()
    }

    /// The next part; none after the end. Dropping the future loses nothing.
    pub(super) async fn next(&mut self, origin: &Origin) -> Result<Option<Bytes>, HttpError> {
        let Some(connection) = &mut self.connection else {
            return Ok(None);
        };
        let part = poll_fn(|cx| connection.poll_part(cx)).await;
        let part = part.map_err(|breach| HttpError::broken(origin.clone(), breach))?;
        self.part_at_the_end(origin);
        Ok(part)
    }

    fn part_at_the_end(&mut self, origin: &Origin) {
        if self
            .connection
            .as_ref()
            .is_some_and(|connection| connection.is_at_the_end())
        {
            self.part(origin);
        }
    }

    /// Leaves the connection to others, unless it is not to be used again.
    fn part(&mut self, origin: &Origin) {
        if let Some(connection) = self.connection.take()
            && let Some(pool) = self.pool.upgrade()
            && connection.is_ready()
        {
            pool.put(origin, connection);
        }
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody")
            .field("announced", &self.announced)
            .finish_non_exhaustive()
    }
}
