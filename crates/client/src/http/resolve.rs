//! DNS resolution, restricted to the allowed networks.

use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};
use std::vec;

use futures_util::future::BoxFuture;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use plexus_mcp_oauth::Reach;
use tower_service::Service;

/// Resolves names with the system's resolver. Drops forbidden addresses (SSRF); checking the resolved
/// address also prevents DNS rebinding (SEC-07).
#[derive(Debug, Clone)]
pub(super) struct Resolver {
    pub(super) reach: Option<Reach>,
}

impl Service<Name> for Resolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let reach = self.reach;
        let resolving = GaiResolver::new().call(name);
        Box::pin(async move {
            let found = resolving.await?;
            let may_visit =
                |address: &SocketAddr| reach.is_none_or(|reach| reach.allows(address.ip()));
            let admitted: Vec<_> = found.filter(may_visit).collect();
            if admitted.is_empty() {
                return Err(io::Error::new(
                    io::ErrorKind::PermissionDenied,
                    "the name leads into a network that this server may not send us to",
                ));
            }
            Ok(admitted.into_iter())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SEC-07: the resolved address decides, not the name.
    #[tokio::test]
    async fn a_name_leads_no_further_than_it_may() {
        let resolve = |reach| {
            let name: Name = "localhost".parse().unwrap();
            Resolver { reach }.call(name)
        };
        for free in [None, Some(Reach::Loopback)] {
            assert!(
                resolve(free)
                    .await
                    .unwrap()
                    .all(|found| found.ip().is_loopback())
            );
        }
        for kept_out in [Reach::Public, Reach::Private] {
            let error = resolve(Some(kept_out)).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        }
    }
}
