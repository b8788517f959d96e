//! Requests with credentials.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, Request, StatusCode};

use super::Refusal;
use crate::definition::HttpTarget;
use crate::http::{HttpClient, HttpResponse, Template};
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
    Box::pin(async move {
        let (head, body) = request.into_parts();
        let template = client.template(head.method, &head.uri, head.headers);
        let template = template.map_err(|error| failed(&error))?;
        send_as(client, target, &template, &[], body).await
    })
}

/// The same for a request whose head is made of a template, with `more` headers.
pub(crate) async fn send_as(
    client: &HttpClient,
    target: &HttpTarget,
    template: &Template,
    more: &[(HeaderName, HeaderValue)],
    body: Bytes,
) -> Result<HttpResponse, LinkError> {
    let Some(authorizer) = &target.authorizer else {
        let response = client.send_as(template, more, body).await;
        return response.map_err(|error| failed(&error));
    };
    let mut attempt = 0;
    loop {
        let credentials = authorizer.headers(&template.method, &template.url).await;
        let credentials = credentials.map_err(|error| LinkError::NeedsAuth {
            status: StatusCode::UNAUTHORIZED.as_u16(),
            challenge: None,
            wants_user: error.wants_user(),
            reason: Some(error.to_string()),
        })?;
        let sent = credentials.get(AUTHORIZATION).cloned();
        let response = if credentials.is_empty() {
            client.send_as(template, more, body.clone()).await
        } else {
            let credentials = credentials
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()));
            let more: Vec<_> = more.iter().cloned().chain(credentials).collect();
            Box::pin(client.send_as(template, &more, body.clone())).await
        };
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
