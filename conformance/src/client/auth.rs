//! Signing in at the suites' authorization servers, whose pages need no user.

use std::sync::Arc;

use anyhow::Context as _;
use bytes::Bytes;
use http::header::LOCATION;
use http::{Request, Uri};
use plexus_mcp_client::auth::rules::{Client, ClientKey, Grant, Secret};
use plexus_mcp_client::auth::{AuthError, OAuth, OAuthOptions, SignInMethod, UserAgent, Visit};
use plexus_mcp_client::http::{HttpClient, HttpClientOptions};
use plexus_mcp_core::Boxed;
use serde::Deserialize;

/// The redirect URI. No user visits it.
const REDIRECT: &str = "http://localhost:3000/callback";
/// The URL of the client's metadata document, which the suites expect as its client id.
const METADATA: &str = "https://conformance-test.local/client-metadata.json";

/// The credentials that a scenario gives its client.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Credentials {
    client_id: Option<String>,
    client_secret: Option<Secret>,
    private_key_pem: Option<Secret>,
    signing_algorithm: Option<String>,
    idp_client_id: Option<String>,
    idp_id_token: Option<Secret>,
    idp_token_endpoint: Option<String>,
    valid_jwt: Option<Secret>,
}

/// The authorizer for `server`, with the grant that the scenario tests.
pub(crate) fn authorizer(
    scenario: &str,
    credentials: &Credentials,
    server: &Uri,
) -> anyhow::Result<OAuth> {
    let mut options = OAuthOptions::new(server.clone());
    options.client = client(credentials);
    options.method = match scenario {
        "auth/client-credentials-jwt" | "auth/client-credentials-basic" => {
            SignInMethod::Grant(Grant::ClientCredentials)
        }
        "auth/wif-jwt-bearer" => {
            let assertion = credentials.valid_jwt.clone().context("no valid_jwt")?;
            SignInMethod::Grant(Grant::Workload { assertion })
        }
        "auth/enterprise-managed-authorization" | "auth/cross-app-access-complete-flow" => {
            let given = credentials.clone();
            SignInMethod::Grant(Grant::Enterprise {
                token_endpoint: given.idp_token_endpoint.context("no idp_token_endpoint")?,
                client_id: given.idp_client_id.context("no idp_client_id")?,
                id_token: given.idp_id_token.context("no idp_id_token")?,
            })
        }
        _ => SignInMethod::Page {
            agent: Some(Arc::new(Agreeable {
                client: HttpClient::new(&HttpClientOptions::default())?,
            })),
            client_name: "Plexus conformance client".to_owned(),
            metadata_url: Some(METADATA.to_owned()),
        },
    };
    Ok(OAuth::new(options))
}

/// A part of the error that the client must report, for scenarios in which it must refuse the
/// server.
pub(crate) fn refusal(scenario: &str) -> Option<&'static str> {
    match scenario {
        "auth/resource-mismatch" => Some("which is not the server that was asked"),
        "auth/metadata-issuer-mismatch" => Some("names another issuer"),
        "auth/iss-supported-missing"
        | "auth/iss-wrong-issuer"
        | "auth/iss-unexpected"
        | "auth/iss-normalized" => Some("is not from the authorization server that was asked"),
        "auth/scope-retry-limit" => Some("refuses the token that was issued for them"),
        _ => None,
    }
}

fn client(credentials: &Credentials) -> Option<Client> {
    let given = credentials.clone();
    let key = given.private_key_pem.map(|pem| ClientKey {
        pem,
        algorithm: given
            .signing_algorithm
            .unwrap_or_else(|| "ES256".to_owned()),
        key_id: None,
    });
    Some(Client {
        client_id: given.client_id?,
        client_secret: given.client_secret,
        key,
        method: None,
        issuer: None,
    })
}

/// A user who agrees to everything at once.
#[derive(Debug, Clone)]
struct Agreeable {
    client: HttpClient,
}

impl UserAgent for Agreeable {
    fn begin(&self) -> Boxed<Result<Box<dyn Visit>, AuthError>> {
        let visit = Box::new(self.clone()) as Box<dyn Visit>;
        Box::pin(std::future::ready(Ok(visit)))
    }
}

impl Visit for Agreeable {
    fn redirect_uri(&self) -> &str {
        REDIRECT
    }

    fn show(self: Box<Self>, url: String) -> Boxed<Result<String, AuthError>> {
        let failed = |what: String| AuthError::Page(format!("the sign-in page: {what}"));
        Box::pin(async move {
            let request = Request::get(url).body(Bytes::new());
            let request = request.map_err(|error| failed(error.to_string()))?;
            let page = self.client.send(request).await;
            let page = page.map_err(|error| failed(error.to_string()))?;
            let location = page.headers.get(LOCATION);
            let location = location.and_then(|location| location.to_str().ok());
            let query = location.and_then(|location| location.split_once('?'));
            let status = page.status;
            let query = query.ok_or_else(|| failed(format!("it does not lead back ({status})")));
            Ok(query?.1.to_owned())
        })
    }
}
