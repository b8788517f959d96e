//! Builds requests to authorization servers, and decodes their JSON and error responses.

use std::fmt::Display;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::Url;

use crate::error::{OAuthError, sanitized};

/// A GET request for a JSON document.
pub(crate) fn get(url: &Url) -> Result<Request<Bytes>, OAuthError> {
    request(Method::GET, url, Bytes::new())
}

/// A POST request.
pub(crate) fn post(
    url: &Url,
    content_type: &'static str,
    body: Bytes,
) -> Result<Request<Bytes>, OAuthError> {
    let mut request = request(Method::POST, url, body)?;
    let content_type = HeaderValue::from_static(content_type);
    request.headers_mut().insert(CONTENT_TYPE, content_type);
    Ok(request)
}

/// Decodes the JSON body of a response. `what` names the response in errors.
pub(crate) fn decode_json<T: DeserializeOwned>(
    what: &'static str,
    response: &Response<Bytes>,
) -> Result<T, OAuthError> {
    serde_json::from_slice(response.body()).map_err(|error| {
        // The error text of serde may quote a secret.
        let reason = format!("{:?} at column {}", error.classify(), error.column());
        OAuthError::Malformed { what, reason }
    })
}

/// The error of a response whose status is not a success.
pub(crate) fn error_response(what: &'static str, response: &Response<Bytes>) -> OAuthError {
    #[derive(Deserialize)]
    struct Error {
        error: String,
        error_description: Option<String>,
    }
    match serde_json::from_slice::<Error>(response.body()) {
        Ok(error) => OAuthError::Refused {
            code: sanitized(&error.error),
            description: error.error_description.as_deref().map(sanitized),
        },
        Err(_other) => OAuthError::Status {
            what,
            status: response.status().as_u16(),
        },
    }
}

pub(crate) fn malformed(what: &'static str, reason: &dyn Display) -> OAuthError {
    let reason = reason.to_string();
    OAuthError::Malformed { what, reason }
}

fn request(method: Method, url: &Url, body: Bytes) -> Result<Request<Bytes>, OAuthError> {
    let request = Request::builder()
        .method(method)
        .uri(url.as_str())
        .header(ACCEPT, "application/json")
        .body(body);
    request.map_err(|error| malformed("address", &error))
}
