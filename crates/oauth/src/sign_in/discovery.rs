//! Discovery: fetches the metadata of a server and of its authorization server.

use std::collections::VecDeque;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response};
use url::Url;

use super::{Phase, SignIn, Step};
use crate::ambient::Ambient;
use crate::error::OAuthError;
use crate::http_exchange;
use crate::metadata::{ResourceMetadata, ServerMetadata};
use crate::well_known;

const PROTOCOL_VERSION_HEADER: HeaderName = HeaderName::from_static("mcp-protocol-version");

impl SignIn {
    pub(super) fn fetch_resource_metadata(
        &mut self,
        mut urls: VecDeque<Url>,
        ambient: &dyn Ambient,
    ) -> Result<Step, OAuthError> {
        let Some(url) = urls.pop_front() else {
            return self.discover_2025_03(ambient);
        };
        self.phase = Phase::Resource(urls);
        self.fetch(&url)
    }

    pub(super) fn handle_resource_response(
        &mut self,
        response: &Response<Bytes>,
        urls: VecDeque<Url>,
        ambient: &dyn Ambient,
    ) -> Result<Step, OAuthError> {
        let Some(metadata) =
            decode_document::<ResourceMetadata>("metadata of the server", response)?
        else {
            return self.fetch_resource_metadata(urls, ambient);
        };
        metadata.check_resource(&self.server)?;
        let issuer = self.preferred_issuer(&metadata)?;
        self.discovered.resource = Some(metadata);
        let urls = self.checked_url("authorization server", &issuer)?;
        self.fetch_server_metadata(issuer, well_known::of_issuer(&urls).into(), ambient)
    }

    /// Chooses one of the authorization servers: the configured one, one with a registration, or the
    /// first.
    fn preferred_issuer(&self, metadata: &ResourceMetadata) -> Result<String, OAuthError> {
        let servers = &metadata.authorization_servers;
        let configured_client = self
            .plan
            .client
            .iter()
            .filter_map(|one| one.issuer.as_ref());
        let known = configured_client.chain(self.plan.registrations.iter().map(|one| &one.issuer));
        let mut known = known.filter(|issuer| servers.contains(issuer));
        let chosen = known.next().or(servers.first()).cloned();
        chosen.ok_or(OAuthError::NoAuthorizationServer)
    }

    /// Continues with a server of 2025-03-26, which is its own authorization server (AUTH03-06).
    fn discover_2025_03(&mut self, ambient: &dyn Ambient) -> Result<Step, OAuthError> {
        self.discovered.is_2025_03 = true;
        let origin = self.server.origin().ascii_serialization();
        let url = well_known::of_origin(&self.server);
        self.fetch_server_metadata(origin, VecDeque::from([url]), ambient)
    }

    fn fetch_server_metadata(
        &mut self,
        issuer: String,
        mut urls: VecDeque<Url>,
        ambient: &dyn Ambient,
    ) -> Result<Step, OAuthError> {
        match urls.pop_front() {
            Some(url) => {
                self.phase = Phase::Server { issuer, urls };
                self.fetch(&url)
            }
            None if self.discovered.is_2025_03 => {
                self.discovered.server = ServerMetadata::with_default_endpoints(&issuer);
                self.begin_grant(ambient)
            }
            None => Err(OAuthError::NoMetadata { issuer }),
        }
    }

    pub(super) fn handle_server_response(
        &mut self,
        response: &Response<Bytes>,
        issuer: String,
        urls: VecDeque<Url>,
        ambient: &dyn Ambient,
    ) -> Result<Step, OAuthError> {
        const RESPONSE_OF: &str = "metadata of the authorization server";
        let Some(metadata) = decode_document::<ServerMetadata>(RESPONSE_OF, response)? else {
            return self.fetch_server_metadata(issuer, urls, ambient);
        };
        // If no metadata names the issuer, it is the origin, with or without a slash at the end.
        let is_own =
            self.discovered.is_2025_03 && metadata.issuer.strip_suffix('/') == Some(&issuer);
        if !is_own {
            metadata.check_issuer(&issuer)?;
        }
        self.discovered.server = metadata;
        self.begin_grant(ambient)
    }

    fn fetch(&self, url: &Url) -> Result<Step, OAuthError> {
        let url = self.checked_url("URL of metadata", url.as_str())?;
        let mut request = http_exchange::get(&url)?;
        if let Some(Ok(revision)) = self.plan.revision.as_deref().map(HeaderValue::from_str) {
            request
                .headers_mut()
                .insert(PROTOCOL_VERSION_HEADER, revision);
        }
        Ok(self.send(request))
    }
}

/// Decodes a metadata document; `None` if the response has none. Some servers respond to every request
/// with an HTML page.
fn decode_document<T: serde::de::DeserializeOwned>(
    what: &'static str,
    response: &Response<Bytes>,
) -> Result<Option<T>, OAuthError> {
    let status = response.status();
    if status.is_server_error() {
        let status = status.as_u16();
        return Err(OAuthError::Status { what, status });
    }
    if !status.is_success() || response.body().trim_ascii_start().first() != Some(&b'{') {
        return Ok(None);
    }
    http_exchange::decode_json(what, response).map(Some)
}
