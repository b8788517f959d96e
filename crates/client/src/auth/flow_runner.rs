//! Runs the sans-I/O state machines of the `oauth` crate over HTTP.

use std::net::IpAddr;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{Request, Response, Uri};
use plexus_mcp_oauth::{Ambient, OAuthError, Reach, Renewal, Session, SignIn, Step};

use super::{AuthError, Visit};
use crate::error_text::error_text;
use crate::http::{HttpClient, HttpClientOptions, HttpError};
use crate::lock::lock;

/// Timeout for a response of an authorization server.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// The largest metadata document or token response.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;

/// The system's clock and random number generator.
#[derive(Debug, Clone, Copy)]
pub(super) struct System;

impl Ambient for System {
    #[expect(
        clippy::disallowed_methods,
        reason = "tokens expire by wall-clock time"
    )]
    fn now(&self) -> u64 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        since.map_or(0, |since| since.as_secs())
    }

    #[expect(
        clippy::expect_used,
        reason = "without randomness, tokens and keys would be insecure"
    )]
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the system has randomness");
    }
}

/// Runs sign-ins and renewals: sends their requests to the authorization server.
#[derive(Debug, Default)]
pub(super) struct FlowRunner {
    /// One HTTP client for each network reach that was needed so far.
    clients: Mutex<Vec<(Option<Reach>, HttpClient)>>,
}

impl FlowRunner {
    /// Runs a sign-in to its end. `visit` shows the sign-in page to the user, if the grant needs one.
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
                    flow.handle_response(&response, &System)?
                }
                Step::Visit { url } => {
                    let visit = visit.take().ok_or(OAuthError::WrongState)?;
                    let query = visit.show(url.into()).await?;
                    flow.handle_redirect(&query, &System)?
                }
                Step::Done(session) => return Ok(*session),
            };
        }
    }

    /// Runs a token renewal to its end.
    pub(super) async fn renew(&self, mut renewal: Renewal) -> Result<Session, AuthError> {
        let mut step = renewal.start(&System)?;
        loop {
            step = match step {
                Step::Send { request, reach } => {
                    let response = self.send(request, reach).await?;
                    renewal.handle_response(&response, &System)?
                }
                Step::Visit { .. } => return Err(OAuthError::WrongState.into()),
                Step::Done(session) => return Ok(*session),
            };
        }
    }

    /// Sends one request, to an address within `reach`.
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
        match tokio::time::timeout(RESPONSE_TIMEOUT, exchange).await {
            Ok(response) => response.map_err(|error| AuthError::Http(error_text(&error))),
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
            max_body: MAX_RESPONSE_BYTES,
            reach,
            ..HttpClientOptions::default()
        };
        let client =
            HttpClient::new(&options).map_err(|error| AuthError::Http(error_text(&error)))?;
        clients.push((reach, client.clone()));
        Ok(client)
    }
}

/// The networks that the metadata of `server` may point to: those that the server itself is in.
pub(super) async fn reach_of(server: &Uri) -> Reach {
    let host = server.host().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Reach::of_server(&[address]);
    }
    // A name that only a proxy can resolve counts as public.
    let resolved = tokio::net::lookup_host((bare, server.port_u16().unwrap_or(443))).await;
    let addresses = resolved.map(|found| found.map(|address| address.ip()).collect::<Vec<_>>());
    Reach::of_server(&addresses.unwrap_or_default())
}
