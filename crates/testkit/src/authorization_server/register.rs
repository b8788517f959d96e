//! Client registration.

use std::error::Error;

use bytes::Bytes;
use http::header::HOST;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use plexus_mcp_oauth::ClientMetadata;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use url::Url;

use super::endpoints::{Refused, oauth_error};
use super::state::{RegisteredClient, random_id};
use super::{ParsedRequest, SharedState};
use crate::timeout::within;

/// The maximum size of a client metadata document, in bytes.
const MAX_DOCUMENT_BYTES: usize = 64 * 1024;

pub(super) fn register(shared: &SharedState, request: &ParsedRequest) -> Result<Value, Refused> {
    let invalid = |why: &str| oauth_error(StatusCode::BAD_REQUEST, "invalid_client_metadata", why);
    let metadata: ClientMetadata =
        serde_json::from_slice(&request.body).map_err(|error| invalid(&error.to_string()))?;
    if metadata.redirect_uris.is_empty() {
        return Err(invalid("no redirect_uris"));
    }
    let kind = metadata.application_type.as_deref();
    let is_said = matches!(kind, Some("native" | "web"));
    if shared.behaviour.wants_application_type && !is_said {
        return Err(invalid("no application_type"));
    }
    let method = metadata.token_endpoint_auth_method.as_deref();
    let is_public = method == Some("none");
    let client_id = random_id();
    let secret = (!is_public).then(random_id);
    let mut answer = json!({
        "client_id": client_id,
        "token_endpoint_auth_method": method.unwrap_or("client_secret_basic"),
        "redirect_uris": metadata.redirect_uris,
    });
    if let Some(secret) = &secret {
        answer["client_secret"] = json!(secret);
        answer["client_secret_expires_at"] = json!(0);
    }
    let client = RegisteredClient {
        secret,
        key: None,
        redirect_uris: Some(metadata.redirect_uris),
    };
    shared.state().clients.insert(client_id, client);
    shared.count(|counts| counts.registrations += 1);
    Ok(answer)
}

/// The client with this id: a known one, or one whose id is the URL of its metadata document.
pub(super) async fn client(
    shared: &SharedState,
    client_id: &str,
) -> Result<RegisteredClient, String> {
    if let Some(client) = shared.state().clients.get(client_id) {
        return Ok(client.clone());
    }
    if !shared.behaviour.fetches_documents || !client_id.contains("://") {
        return Err("unknown client".to_owned());
    }
    let document = fetch(client_id).await?;
    let metadata: ClientMetadata =
        serde_json::from_str(&document).map_err(|error| error.to_string())?;
    if metadata.client_id.as_deref() != Some(client_id) {
        return Err("the document is about another client".to_owned());
    }
    Ok(RegisteredClient {
        secret: None,
        key: None,
        redirect_uris: Some(metadata.redirect_uris),
    })
}

/// Fetches a document. Tests have no certificates, so this server accepts plain HTTP from loopback.
async fn fetch(address: &str) -> Result<String, String> {
    let url = Url::parse(address).map_err(|error| error.to_string())?;
    let host = url.host_str().unwrap_or_default();
    if url.scheme() != "http" || host != "127.0.0.1" {
        return Err("documents are fetched from this machine only".to_owned());
    }
    let port = url.port().unwrap_or(80);
    let exchange = async {
        let stream = TcpStream::connect((host, port)).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let mut connections = JoinSet::new();
        connections.spawn(connection);
        let request = Request::get(url.path())
            .header(HOST, format!("{host}:{port}"))
            .body(Empty::<Bytes>::new())?;
        let body = sender.send_request(request).await?.into_body();
        let body = Limited::new(body, MAX_DOCUMENT_BYTES)
            .collect()
            .await?
            .to_bytes();
        Ok::<_, Box<dyn Error + Send + Sync>>(String::from_utf8(body.to_vec())?)
    };
    let document = within("a document", exchange).await;
    document.map_err(|error| error.to_string())
}
