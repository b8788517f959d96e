//! Chooses or registers the OAuth client of a sign-in.

use bytes::Bytes;
use http::Response;
use url::Url;

use super::{Phase, SignIn, Step};
use crate::ambient::Ambient;
use crate::client_auth::AuthMethod;
use crate::error::OAuthError;
use crate::plan::{Client, UserGrant};
use crate::registration::{self, ClientMetadata, Registration};

impl SignIn {
    /// Chooses the client to sign in as. In this order: the configured client, the client metadata
    /// document, an earlier registration, a new registration (AUTH11-09).
    pub(super) fn choose_client(
        &mut self,
        user: &UserGrant,
        ambient: &dyn Ambient,
    ) -> Result<Step, OAuthError> {
        if self.plan.client.is_some() {
            let registration = self.configured_client()?;
            return self.visit(registration, ambient);
        }
        let server = &self.discovered.server;
        if let Some(url) = &user.metadata_url
            && server.client_id_metadata_document_supported == Some(true)
        {
            let registration = Registration::public(&server.issuer, url);
            return self.visit(registration, ambient);
        }
        let (now, redirect_uri) = (ambient.now(), &user.redirect_uri);
        let mut known = self.plan.registrations.iter();
        if let Some(known) = known.find(|one| one.is_usable_for(&server.issuer, redirect_uri, now))
        {
            let registration = known.clone();
            return self.visit(registration, ambient);
        }
        let Some(endpoint) = &server.registration_endpoint else {
            let issuer = server.issuer.clone();
            return Err(OAuthError::NoClient { issuer });
        };
        let endpoint = self.checked_url("registration endpoint", endpoint)?;
        let mut metadata = ClientMetadata::new(&user.client_name, redirect_uri);
        let method = AuthMethod::to_register(server)?;
        metadata.token_endpoint_auth_method = Some(method.as_str().to_owned());
        metadata.scope = self.scopes();
        self.register(endpoint, metadata)
    }

    fn register(&mut self, endpoint: Url, metadata: ClientMetadata) -> Result<Step, OAuthError> {
        let request = registration::request(&endpoint, &metadata)?;
        let metadata = Box::new(metadata);
        self.phase = Phase::Register { endpoint, metadata };
        Ok(self.send(request))
    }

    pub(super) fn handle_registration_response(
        &mut self,
        response: &Response<Bytes>,
        endpoint: Url,
        mut metadata: ClientMetadata,
        ambient: &dyn Ambient,
    ) -> Result<Step, OAuthError> {
        match registration::decode_response(response, &self.discovered.server, &metadata) {
            // Authorization servers without OpenID Connect may not know the member (AUTH26-09).
            Err(OAuthError::Refused { code, .. })
                if code == "invalid_client_metadata" && metadata.application_type.is_some() =>
            {
                metadata.application_type = None;
                self.register(endpoint, metadata)
            }
            registration => self.visit(registration?, ambient),
        }
    }

    /// The configured client, if it is for this authorization server (AUTH26-08).
    pub(super) fn configured_client(&self) -> Result<Registration, OAuthError> {
        let server = &self.discovered.server;
        let issuer = server.issuer.clone();
        let Some(client) = &self.plan.client else {
            return Err(OAuthError::NoClient { issuer });
        };
        let Client {
            client_id,
            client_secret,
            key,
            method,
            issuer: configured,
        } = client.clone();
        if let Some(configured) = configured
            && configured != issuer
        {
            return Err(OAuthError::ClientOfAnother { configured, issuer });
        }
        let method = match method {
            Some(method) => method,
            None => AuthMethod::choose(server, client_secret.is_some(), key.is_some())?,
        };
        Ok(Registration {
            client_secret,
            key,
            method,
            ..Registration::public(&issuer, &client_id)
        })
    }
}
