//! Metadata documents of resource and authorization servers (RFC 9728, RFC 8414, OIDC).

use serde::{Deserialize, Serialize};
use url::Url;

use crate::error::OAuthError;

/// The metadata of a protected resource, with the issuers of its tokens (RFC 9728).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResourceMetadata {
    /// The resource identifier, sent unchanged in token requests.
    pub resource: String,
    /// The issuers of tokens for it.
    #[serde(default)]
    pub authorization_servers: Vec<String>,
    /// The supported scopes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes_supported: Option<Vec<String>>,
    /// How tokens may be sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bearer_methods_supported: Option<Vec<String>>,
    /// The algorithms of DPoP proofs, if tokens may be bound to a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpop_signing_alg_values_supported: Option<Vec<String>>,
    /// Whether tokens must be bound to a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpop_bound_access_tokens_required: Option<bool>,
}

impl ResourceMetadata {
    /// The metadata of `resource`, for which `issuer` issues tokens.
    pub fn new(resource: impl Into<String>, issuer: impl Into<String>) -> Self {
        Self {
            resource: resource.into(),
            authorization_servers: vec![issuer.into()],
            ..Self::default()
        }
    }

    /// Checks that `server` is part of the resource (AUTH26-17): the origins must be equal, and the path
    /// of the resource must be a prefix of the server's.
    ///
    /// # Errors
    /// The metadata is for another resource.
    pub fn check_resource(&self, server: &Url) -> Result<(), OAuthError> {
        let is_part = Url::parse(&self.resource).is_ok_and(|resource| {
            let segments = |url: &Url| {
                let path = url.path().trim_end_matches('/').to_owned();
                path.split('/').map(str::to_owned).collect::<Vec<_>>()
            };
            resource.origin() == server.origin()
                && resource.fragment().is_none()
                && segments(server).starts_with(&segments(&resource))
        });
        if is_part {
            return Ok(());
        }
        let named = crate::error::sanitized(&self.resource);
        Err(OAuthError::ResourceMismatch { named })
    }

    /// Whether the resource accepts tokens that are bound to an ES256 key.
    pub fn accepts_dpop(&self) -> bool {
        let supported = self.dpop_signing_alg_values_supported.as_deref();
        self.dpop_bound_access_tokens_required == Some(true) || lists(supported, "ES256")
    }
}

/// The metadata of an authorization server (RFC 8414, RFC 9207, RFC 9449, and the discovery of `OpenID`
/// Connect).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServerMetadata {
    /// The issuer, compared byte by byte.
    pub issuer: String,
    /// The URL of the sign-in page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization_endpoint: Option<String>,
    /// The URL for token requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_endpoint: Option<String>,
    /// The URL for client registration (RFC 7591).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration_endpoint: Option<String>,
    /// The URL for token revocation (RFC 7009).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revocation_endpoint: Option<String>,
    /// The URL for token introspection (RFC 7662).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub introspection_endpoint: Option<String>,
    /// The URL of its public keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks_uri: Option<String>,
    /// The supported scopes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes_supported: Option<Vec<String>>,
    /// The supported response types of the sign-in page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_types_supported: Option<Vec<String>>,
    /// The supported grant types.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_types_supported: Option<Vec<String>>,
    /// The supported methods of client authentication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// The signature algorithms for client authentication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_endpoint_auth_signing_alg_values_supported: Option<Vec<String>>,
    /// The supported PKCE methods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_challenge_methods_supported: Option<Vec<String>>,
    /// Whether a URL can be a client id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id_metadata_document_supported: Option<bool>,
    /// Whether redirects from the sign-in page have the `iss` parameter (RFC 9207).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization_response_iss_parameter_supported: Option<bool>,
    /// The algorithms of DPoP proofs, if tokens can be bound to a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpop_signing_alg_values_supported: Option<Vec<String>>,
}

impl ServerMetadata {
    /// The metadata of `issuer`, with all other members absent.
    pub fn new(issuer: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            ..Self::default()
        }
    }

    /// The default metadata of a server of 2025-03-26 that publishes none (AUTH03-06).
    pub fn with_default_endpoints(origin: &str) -> Self {
        Self {
            issuer: origin.to_owned(),
            authorization_endpoint: Some(format!("{origin}/authorize")),
            token_endpoint: Some(format!("{origin}/token")),
            registration_endpoint: Some(format!("{origin}/register")),
            code_challenge_methods_supported: Some(vec!["S256".to_owned()]),
            ..Self::default()
        }
    }

    /// Checks that the issuer is `expected`, byte by byte (AUTH26-01, AUTH26-05).
    ///
    /// # Errors
    /// The metadata is of another issuer.
    pub fn check_issuer(&self, expected: &str) -> Result<(), OAuthError> {
        if self.issuer == expected {
            return Ok(());
        }
        Err(OAuthError::IssuerMismatch {
            expected: crate::error::sanitized(expected),
            named: crate::error::sanitized(&self.issuer),
        })
    }

    /// Whether the S256 method of PKCE is listed; a server that does not list it must be refused
    /// (AUTH11-13).
    pub fn supports_pkce(&self) -> bool {
        lists(self.code_challenge_methods_supported.as_deref(), "S256")
    }

    /// Whether the server can bind tokens to an ES256 key.
    pub fn supports_dpop(&self) -> bool {
        lists(self.dpop_signing_alg_values_supported.as_deref(), "ES256")
    }

    /// Whether clients may authenticate with `method`; `None` if the server does not list its methods.
    pub(crate) fn supports_auth_method(&self, method: &str) -> Option<bool> {
        let supported = self.token_endpoint_auth_methods_supported.as_deref()?;
        Some(lists(Some(supported), method))
    }
}

pub(crate) fn lists(supported: Option<&[String]>, wanted: &str) -> bool {
    supported.is_some_and(|supported| supported.iter().any(|one| one == wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AUTH26-17
    #[test]
    fn metadata_of_another_resource_is_refused() {
        let server = Url::parse("https://s.example/a/mcp").unwrap();
        let check = |resource: &str| ResourceMetadata::new(resource, "").check_resource(&server);
        for own in [
            "https://s.example/a/mcp",
            "https://S.example:443/a/mcp",
            "https://s.example/a/mcp/",
            "https://s.example/a",
            "https://s.example",
            "https://s.example/",
        ] {
            assert!(check(own).is_ok(), "{own}");
        }
        for other in [
            "https://evil.example/a/mcp",
            "http://s.example/a/mcp",
            "https://s.example:8443/a/mcp",
            "https://s.example/a/mcp/x",
            "https://s.example/a/mc",
            "https://s.example/b",
            "not an address",
        ] {
            assert!(check(other).is_err(), "{other}");
        }
    }

    /// AUTH26-01, AUTH26-05: differences in a slash, the case or the port are not normalized away.
    #[test]
    fn issuers_are_compared_byte_by_byte() {
        let metadata = ServerMetadata::new("https://as.example");
        assert!(metadata.check_issuer("https://as.example").is_ok());
        for other in [
            "https://as.example/",
            "https://AS.example",
            "https://as.example:443",
        ] {
            assert!(metadata.check_issuer(other).is_err(), "{other}");
        }
    }
}
