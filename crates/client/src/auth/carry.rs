//! Carries out what the rules say, over HTTP.

use std::net::IpAddr;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{Request, Response, Uri};
use plexus_oauth::{Ambient, OAuthError, Reach, Renewal, Session, SignIn, Step};

use super::{AuthError, Visit};
use crate::chain::chain;
use crate::http::{HttpClient, HttpClientOptions, HttpError};
use crate::lock::lock;

/// How long an authorization server may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a document or an answer may be.
const LONGEST: usize = 1024 * 1024;

/// The clock and the randomness of the system.
#[derive(Debug, Clone, Copy)]
pub(super) struct System;

impl Ambient for System {
    #[expect(
        clippy::disallowed_methods,
        reason = "tokens live by the clock on the wall"
    )]
    fn now(&self) -> u64 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        since.map_or(0, |since| since.as_secs())
    }

    #[expect(
        clippy::expect_used,
        reason = "without randomness there is no security to go on with"
    )]
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the system has randomness");
    }
}

/// Makes requests to authorization servers.
#[derive(Debug, Default)]
pub(super) struct Carrier {
    /// One client for each reach that was needed so far.
    clients: Mutex<Vec<(Option<Reach>, HttpClient)>>,
}

impl Carrier {
    /// Carries a sign-in to its end. The user is shown pages by `visit`, if there is one.
    pub(super) async fn sign_in(
        &self,
        mut flow: SignIn,
        mut visit: Option<Box<dyn Visit>>,
    ) -> Result<Session, AuthError> {
        let mut step = flow.start(&System)?;
        loop {
            step = match step {
                Step::Send { request, reach } => {
                    let response = self.send(request, reach).await?;
                    flow.answered(&response, &System)?
                }
                Step::Visit { url } => {
                    let visit = visit.take().ok_or(OAuthError::WrongState)?;
                    let query = visit.show(url.into()).await?;
                    flow.returned(&query, &System)?
                }
                Step::Done(session) => return Ok(*session),
            };
        }
    }

    /// Carries a renewal to its end.
    pub(super) async fn renew(&self, mut renewal: Renewal) -> Result<Session, AuthError> {
        let mut step = renewal.start(&System)?;
        loop {
            step = match step {
                Step::Send { request, reach } => {
                    let response = self.send(request, reach).await?;
                    renewal.answered(&response, &System)?
                }
                Step::Visit { .. } => return Err(OAuthError::WrongState.into()),
                Step::Done(session) => return Ok(*session),
            };
        }
    }

    /// Sends one request, to no further than `reach`.
    pub(super) async fn send(
        &self,
        request: Request<Bytes>,
        reach: Option<Reach>,
    ) -> Result<Response<Bytes>, AuthError> {
        let client = self.client(reach)?;
        let origin = request.uri().authority().map(ToString::to_string);
        let exchange = async {
            let response = client.send(request).await?;
            let mut whole = Response::new(Bytes::new());
            *whole.status_mut() = response.status;
            *whole.headers_mut() = response.headers.clone();
            *whole.body_mut() = response.bytes().await?;
            Ok::<_, HttpError>(whole)
        };
        match tokio::time::timeout(PATIENCE, exchange).await {
            Ok(response) => response.map_err(|error| AuthError::Http(chain(&error))),
            Err(_elapsed) => Err(AuthError::Http(format!(
                "{} did not answer in time",
                origin.unwrap_or_default()
            ))),
        }
    }

    fn client(&self, reach: Option<Reach>) -> Result<HttpClient, AuthError> {
        let mut clients = lock(&self.clients);
        if let Some((_, client)) = clients.iter().find(|(known, _)| *known == reach) {
            return Ok(client.clone());
        }
        let options = HttpClientOptions {
            max_body: LONGEST,
            reach,
            ..HttpClientOptions::default()
        };
        let client = HttpClient::new(&options).map_err(|error| AuthError::Http(chain(&error)))?;
        clients.push((reach, client.clone()));
        Ok(client)
    }
}

/// How far a server may lead us: no further than it is itself.
pub(super) async fn reach_of(server: &Uri) -> Reach {
    let host = server.host().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Reach::of_server(&[address]);
    }
    // A name that only a proxy knows is one of the internet.
    let resolved = tokio::net::lookup_host((bare, server.port_u16().unwrap_or(443))).await;
    let addresses = resolved.map(|found| found.map(|address| address.ip()).collect::<Vec<_>>());
    Reach::of_server(&addresses.unwrap_or_default())
}
