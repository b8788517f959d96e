//! What servers and authorization servers publish about themselves (RFC 9728, RFC 8414, OIDC).

use serde::{Deserialize, Serialize};
use url::Url;

use crate::error::OAuthError;

/// The metadata of a protected resource: who issues tokens for it (RFC 9728).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResourceMetadata {
    /// The resource, exactly as tokens are to be asked for it.
    pub resource: String,
    /// Who issues tokens for it.
    #[serde(default)]
    pub authorization_servers: Vec<String>,
    /// What can be asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes_supported: Option<Vec<String>>,
    /// How tokens may be presented.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bearer_methods_supported: Option<Vec<String>>,
    /// Algorithms of proofs, if tokens may be bound to a key.
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

    /// Refuses the metadata of another resource than the one that `server` is part of (AUTH26-17):
    /// it must have the same origin, and its path must lead to the server's.
    ///
    /// # Errors
    /// It is another resource.
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
        let named = crate::error::presentable(&self.resource);
        Err(OAuthError::ResourceMismatch { named })
    }

    /// Whether tokens can be bound to a key of ours.
    pub fn takes_dpop(&self) -> bool {
        let supported = self.dpop_signing_alg_values_supported.as_deref();
        self.dpop_bound_access_tokens_required == Some(true) || lists(supported, "ES256")
    }
}

/// The metadata of an authorization server (RFC 8414, RFC 9207, RFC 9449, and the discovery of `OpenID`
/// Connect).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServerMetadata {
    /// Who it is; compared byte by byte.
    pub issuer: String,
    /// Where users sign in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization_endpoint: Option<String>,
    /// Where tokens are got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_endpoint: Option<String>,
    /// Where clients register.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration_endpoint: Option<String>,
    /// Where tokens are given back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revocation_endpoint: Option<String>,
    /// Where others ask what a token is worth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub introspection_endpoint: Option<String>,
    /// Where its keys are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks_uri: Option<String>,
    /// What can be asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes_supported: Option<Vec<String>>,
    /// What the sign-in page can answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_types_supported: Option<Vec<String>>,
    /// How a token can be got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_types_supported: Option<Vec<String>>,
    /// How clients prove who they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// Algorithms with which they may sign that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_endpoint_auth_signing_alg_values_supported: Option<Vec<String>>,
    /// How the beginning and the end of a sign-in are tied together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_challenge_methods_supported: Option<Vec<String>>,
    /// Whether a URL can be a client id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id_metadata_document_supported: Option<bool>,
    /// Whether the answer of the sign-in page says whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization_response_iss_parameter_supported: Option<bool>,
    /// Algorithms of proofs, if tokens can be bound to a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpop_signing_alg_values_supported: Option<Vec<String>>,
}

impl ServerMetadata {
    /// The metadata of `issuer`, with nothing else said.
    pub fn new(issuer: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            ..Self::default()
        }
    }

    /// What a server of 2025-03-26 is taken to be that publishes nothing (AUTH03-06).
    pub fn at_default_places(origin: &str) -> Self {
        Self {
            issuer: origin.to_owned(),
            authorization_endpoint: Some(format!("{origin}/authorize")),
            token_endpoint: Some(format!("{origin}/token")),
            registration_endpoint: Some(format!("{origin}/register")),
            code_challenge_methods_supported: Some(vec!["S256".to_owned()]),
            ..Self::default()
        }
    }

    /// Refuses the metadata of another issuer than the one that was asked for it, byte by byte
    /// (AUTH26-01, AUTH26-05).
    ///
    /// # Errors
    /// It is another's.
    pub fn check_issuer(&self, expected: &str) -> Result<(), OAuthError> {
        if self.issuer == expected {
            return Ok(());
        }
        Err(OAuthError::IssuerMismatch {
            expected: crate::error::presentable(expected),
            named: crate::error::presentable(&self.issuer),
        })
    }

    /// Whether the S256 method of PKCE is listed; one that lists none must be refused (AUTH11-13).
    pub fn supports_pkce(&self) -> bool {
        lists(self.code_challenge_methods_supported.as_deref(), "S256")
    }

    /// Whether tokens can be bound to a key of ours.
    pub fn supports_dpop(&self) -> bool {
        lists(self.dpop_signing_alg_values_supported.as_deref(), "ES256")
    }

    /// Whether a client may prove who it is in this way. A list that is absent says nothing.
    pub(crate) fn takes_auth_method(&self, method: &str) -> Option<bool> {
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

    /// AUTH26-01, AUTH26-05: no slash, case or port is made up for.
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
