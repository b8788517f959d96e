//! Sends requests with credentials, and retries refused ones with better credentials.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{Request, StatusCode};

use super::{AuthError, Refusal};
use crate::definition::HttpTarget;
use crate::http::{HttpClient, HttpResponse};
use crate::link::{LinkError, failed};

/// How often a request is sent: first with the stored token, then with a renewed token, after a new
/// sign-in, with more scopes, and with a DPoP nonce (AUTH26-18).
const MAX_ATTEMPTS: u32 = 5;

/// Sends a request with the credentials of its target's authorizer. After a refusal, sends it again if
/// the authorizer has better credentials. A server does not execute a request that it refuses, so no
/// request is executed twice.
///
/// Boxed to keep the futures of all requests small.
pub(crate) fn send<'a>(
    client: &'a HttpClient,
    target: &'a HttpTarget,
    request: Request<Bytes>,
) -> BoxFuture<'a, Result<HttpResponse, LinkError>> {
    Box::pin(send_authorized(client, target, request))
}

async fn send_authorized(
    client: &HttpClient,
    target: &HttpTarget,
    request: Request<Bytes>,
) -> Result<HttpResponse, LinkError> {
    let Some(authorizer) = &target.authorizer else {
        let response = client.send(request).await;
        return response.map_err(|error| failed(&error));
    };
    let mut attempt = 0;
    loop {
        let credentials = authorizer.headers(request.method(), request.uri()).await;
        let credentials =
            credentials.map_err(|error| refused(&error, StatusCode::UNAUTHORIZED, None))?;
        let sent = credentials.get(AUTHORIZATION).cloned();
        let mut attempted = request.clone();
        for (name, value) in &credentials {
            attempted.headers_mut().insert(name, value.clone());
        }
        let response = client.send(attempted).await;
        let response = response.map_err(|error| failed(&error))?;
        authorizer.inspect_response(&response.headers);
        let status = response.status;
        let is_refused = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        attempt += 1;
        if !is_refused || attempt == MAX_ATTEMPTS {
            return Ok(response);
        }
        let refusal = Refusal {
            status,
            headers: response.headers.clone(),
            sent,
            attempt: attempt - 1,
        };
        match authorizer.handle_refusal(refusal).await {
            Ok(true) => {}
            Ok(false) => return Ok(response),
            Err(error) => {
                let challenge = response.headers.get(WWW_AUTHENTICATE);
                let challenge = challenge.and_then(|value| value.to_str().ok());
                return Err(refused(&error, status, challenge));
            }
        }
    }
}

/// The failure of a request for which no credentials could be obtained.
fn refused(error: &AuthError, status: StatusCode, challenge: Option<&str>) -> LinkError {
    let reason = error.to_string();
    if error.is_transient() {
        return LinkError::NoCredentials(reason);
    }
    LinkError::NeedsAuth {
        status: status.as_u16(),
        challenge: challenge.map(str::to_owned),
        wants_user: error.wants_user(),
        reason: Some(reason),
    }
}
