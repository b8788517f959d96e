//! CORS headers, for web pages whose origin the guard allows. Each response names one origin, never
//! a wildcard.

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};

use crate::net::{Body, respond};

/// Tells the browser of a page of `origin` that it may read the response.
pub(super) fn allow(mut response: Response<Body>, origin: Option<&HeaderValue>) -> Response<Body> {
    let Some(origin) = origin else {
        return response;
    };
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.insert(header::VARY, HeaderValue::from_static("origin"));
    headers.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("mcp-session-id, www-authenticate, dpop-nonce"),
    );
    response
}

/// Answers the CORS preflight request of a browser.
pub(super) fn preflight(request: &HeaderMap) -> Response<Body> {
    let mut response = respond::empty(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    headers.insert(header::ALLOW, HeaderValue::from_static("POST, GET, DELETE"));
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("POST, GET, DELETE"),
    );
    if let Some(wanted) = request.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    headers.insert(
        header::ACCESS_CONTROL_MAX_AGE,
        HeaderValue::from_static("600"),
    );
    response
}
