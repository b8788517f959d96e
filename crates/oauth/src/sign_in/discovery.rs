//! From a server to the metadata of its authorization server.

use std::collections::VecDeque;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response};
use url::Url;

use super::{Phase, SignIn, Step};
use crate::ambient::Ambient;
use crate::answer;
use crate::error::OAuthError;
use crate::metadata::{ResourceMetadata, ServerMetadata};
use crate::well_known;

const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");

impl SignIn {
    pub(super) fn ask_resource(
        &mut self,
        mut places: VecDeque<Url>,
        ambient: &dyn Ambient,
    ) -> Result<Step, OAuthError> {
        let Some(place) = places.pop_front() else {
            return self.as_in_2025_03(ambient);
        };
        self.phase = Phase::Resource(places);
        self.fetch(&place)
    }

    pub(super) fn resource_answered(
        &mut self,
        response: &Response<Bytes>,
        places: VecDeque<Url>,
        ambient: &dyn Ambient,
    ) -> Result<Step, OAuthError> {
        let Some(metadata) = document::<ResourceMetadata>("metadata of the server", response)?
        else {
            return self.ask_resource(places, ambient);
        };
        metadata.check_resource(&self.server)?;
        let issuer = self.preferred(&metadata)?;
        self.found.resource = Some(metadata);
        let places = self.checked("authorization server", &issuer)?;
        self.ask_server(issuer, well_known::of_issuer(&places).into(), ambient)
    }

    /// Of several authorization servers, the one where we are known already, else the first.
    fn preferred(&self, metadata: &ResourceMetadata) -> Result<String, OAuthError> {
        let servers = &metadata.authorization_servers;
        let by_hand = self
            .plan
            .client
            .iter()
            .filter_map(|one| one.issuer.as_ref());
        let known = by_hand.chain(self.plan.registrations.iter().map(|one| &one.issuer));
        let mut known = known.filter(|issuer| servers.contains(issuer));
        let chosen = known.next().or(servers.first()).cloned();
        chosen.ok_or(OAuthError::NoAuthorizationServer)
    }

    /// A server of 2025-03-26 is its own authorization server (AUTH03-06).
    fn as_in_2025_03(&mut self, ambient: &dyn Ambient) -> Result<Step, OAuthError> {
        self.found.is_old = true;
        let origin = self.server.origin().ascii_serialization();
        let place = well_known::of_origin(&self.server);
        self.ask_server(origin, VecDeque::from([place]), ambient)
    }

    fn ask_server(
        &mut self,
        issuer: String,
        mut places: VecDeque<Url>,
        ambient: &dyn Ambient,
    ) -> Result<Step, OAuthError> {
        match places.pop_front() {
            Some(place) => {
                self.phase = Phase::Server { issuer, places };
                self.fetch(&place)
            }
            None if self.found.is_old => {
                self.found.server = ServerMetadata::at_default_places(&issuer);
                self.discovered(ambient)
            }
            None => Err(OAuthError::NoMetadata { issuer }),
        }
    }

    pub(super) fn server_answered(
        &mut self,
        response: &Response<Bytes>,
        issuer: String,
        places: VecDeque<Url>,
        ambient: &dyn Ambient,
    ) -> Result<Step, OAuthError> {
        const WHAT: &str = "metadata of the authorization server";
        let Some(metadata) = document::<ServerMetadata>(WHAT, response)? else {
            return self.ask_server(issuer, places, ambient);
        };
        // Where nobody named the issuer, we made its name from the origin, and a slash is no lie.
        let is_own = self.found.is_old && metadata.issuer.strip_suffix('/') == Some(&issuer);
        if !is_own {
            metadata.check_issuer(&issuer)?;
        }
        self.found.server = metadata;
        self.discovered(ambient)
    }

    fn fetch(&self, place: &Url) -> Result<Step, OAuthError> {
        let place = self.checked("place of metadata", place.as_str())?;
        let mut request = answer::get(&place)?;
        if let Some(Ok(revision)) = self.plan.revision.as_deref().map(HeaderValue::from_str) {
            request.headers_mut().insert(REVISION, revision);
        }
        Ok(self.send(request))
    }
}

/// The document in an answer; none if it is not there. Pages for people, which some servers answer
/// everything with, are not it.
fn document<T: serde::de::DeserializeOwned>(
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
    answer::json(what, response).map(Some)
}
