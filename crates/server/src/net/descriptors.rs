//! The limit on open file descriptors.

/// The part of the file descriptors, as a fraction of 1/`RESERVED_PART`, that connections of clients
/// leave free: for servers, databases and programs.
const RESERVED_PART: usize = 4;
/// At least this many file descriptors are left free, if there are so many.
const MIN_RESERVED: usize = 128;
/// Connections may take this part of a very small limit in any case.
const MIN_CONNECTIONS_PART: usize = 4;

/// The number of connections, at most `wanted`, that the limit on open file descriptors allows.
pub(super) fn connections_within_limit(wanted: usize) -> usize {
    let Some(limit) = soft_limit() else {
        return wanted;
    };
    let allowed = allowed(limit);
    if wanted > allowed {
        tracing::debug!(
            descriptors = limit,
            connections = allowed,
            "the limit on open files (ulimit -n) allows fewer HTTP connections than max_connections"
        );
    }
    wanted.min(allowed)
}

fn allowed(descriptors: usize) -> usize {
    let reserve = (descriptors / RESERVED_PART).max(MIN_RESERVED);
    let rest = descriptors.saturating_sub(reserve);
    rest.max(descriptors / MIN_CONNECTIONS_PART).max(1)
}

#[cfg(unix)]
fn soft_limit() -> Option<usize> {
    use rustix::process::{Resource, getrlimit};
    let limit = getrlimit(Resource::Nofile).current?;
    usize::try_from(limit).ok()
}

#[cfg(not(unix))]
fn soft_limit() -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_descriptors_is_left_for_servers() {
        for (descriptors, connections) in [(256, 128), (1024, 768), (65_536, 49_152)] {
            assert_eq!(allowed(descriptors), connections);
        }
        assert_eq!(allowed(64), 16, "a small limit is shared");
        assert_eq!(allowed(0), 1);
    }
}
