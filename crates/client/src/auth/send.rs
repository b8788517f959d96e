//! Requests with credentials.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{Request, StatusCode};

use super::Refusal;
use crate::definition::HttpTarget;
use crate::http::{HttpClient, HttpResponse};
use crate::link::{LinkError, failed};

/// How often a request is tried: as it is, with a renewed token, with one that a new sign-in gave,
/// with more scopes, and once more with a nonce (AUTH26-18).
const MAX_ATTEMPTS: u32 = 5;

/// Sends a request with what its target's authorizer has, and again where that could do something
/// about a refusal. A refused request was not carried out, so this sends nothing twice.
///
/// It is boxed, since it is part of every future that leads to a server.
pub(crate) fn send<'a>(
    client: &'a HttpClient,
    target: &'a HttpTarget,
    request: Request<Bytes>,
) -> BoxFuture<'a, Result<HttpResponse, LinkError>> {
    Box::pin(authorized(client, target, request))
}

async fn authorized(
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
        let mut request = request.clone();
        let credentials = authorizer.headers(request.method(), request.uri()).await;
        let credentials = credentials.map_err(|error| LinkError::NeedsAuth {
            status: StatusCode::UNAUTHORIZED.as_u16(),
            challenge: None,
            wants_user: error.wants_user(),
            reason: Some(error.to_string()),
        })?;
        let sent = credentials.get(AUTHORIZATION).cloned();
        request.headers_mut().extend(credentials);
        let response = client.send(request).await;
        let response = response.map_err(|error| failed(&error))?;
        authorizer.noted(&response.headers);
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
        match authorizer.refused(refusal).await {
            Ok(true) => {}
            Ok(false) => return Ok(response),
            Err(error) => {
                let challenge = response.headers.get(WWW_AUTHENTICATE);
                let challenge = challenge.and_then(|value| value.to_str().ok());
                return Err(LinkError::NeedsAuth {
                    status: status.as_u16(),
                    challenge: challenge.map(str::to_owned),
                    wants_user: error.wants_user(),
                    reason: Some(error.to_string()),
                });
            }
        }
    }
}
