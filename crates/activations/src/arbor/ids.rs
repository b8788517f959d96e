//! Ids that sort by age.

use std::sync::Mutex;

use jiff::Timestamp;
use uuid::{ContextV7, Uuid};

/// Makes UUIDs of version 7, which sort by the time at which they were made, even within one
/// millisecond.
pub(crate) struct Ids(Mutex<ContextV7>);

impl Ids {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(ContextV7::new()))
    }

    pub(crate) fn next(&self, now: Timestamp) -> String {
        let since_1970 = now.as_duration();
        let seconds = u64::try_from(since_1970.as_secs()).unwrap_or(0);
        let nanoseconds = since_1970.subsec_nanos().unsigned_abs();
        let time = uuid::Timestamp::from_unix(&self.0, seconds, nanoseconds);
        Uuid::new_v7(time).to_string()
    }
}
