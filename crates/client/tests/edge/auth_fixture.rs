//! A server that wants tokens, its authorization server, and a user who agrees to everything.

use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http::header::LOCATION;
use plexus_client::auth::{AuthError, Means, OAuth, OAuthOptions, UserAgent, Visit};
use plexus_client::http::{HttpClient, HttpClientOptions};
use plexus_client::{Definition, Target};
use plexus_oauth::Client;
use plexus_service::Boxed;
use plexus_testkit::authorization_server::{AuthorizationServer, Behaviour};
use plexus_testkit::server::{HttpServer, Offer, Received, Reply, tool};
use serde_json::json;

use crate::support::{STATELESS, target};

pub(crate) const BACK: &str = "http://127.0.0.1:9/callback";

/// A server, and who issues tokens for it.
pub(crate) struct Protected {
    pub(crate) issuer: Arc<AuthorizationServer>,
    pub(crate) server: HttpServer,
}

/// What the server wants besides a token.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Demands {
    /// Tokens that are bound to a key.
    pub(crate) dpop: bool,
    /// A scope for calls, beyond the one for everything else.
    pub(crate) more_for_calls: bool,
}

impl Protected {
    pub(crate) async fn start(behaviour: Behaviour, demands: Demands) -> Self {
        Self::answering(behaviour, demands, |request| request.plainly(&offer())).await
    }

    pub(crate) async fn answering(
        behaviour: Behaviour,
        demands: Demands,
        answer: impl Fn(&Received) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let issuer = Arc::new(AuthorizationServer::start(behaviour).await);
        let own = Arc::clone(&issuer);
        let server = HttpServer::start(move |request| {
            guard(&own, demands, request).unwrap_or_else(|| answer(request))
        })
        .await;
        Self { issuer, server }
    }

    pub(crate) fn options(&self) -> OAuthOptions {
        OAuthOptions::new(self.server.url().parse().unwrap())
    }

    pub(crate) fn definition(&self, oauth: &OAuth) -> Definition {
        let mut target = target(&self.server.url());
        target.authorizer = Some(Arc::new(oauth.clone()));
        let mut definition = Definition::new(Target::Http(target));
        definition.era = Some(STATELESS.era());
        definition
    }
}

pub(crate) fn offer() -> Offer {
    let mut offer = Offer::new(STATELESS).declaring("tools", json!({}));
    offer.tools.push(tool("work"));
    offer
}

pub(crate) fn by_a_user(mut options: OAuthOptions) -> OAuth {
    options.means = Means::Page {
        agent: Some(Arc::new(Agreeable)),
        client_name: "Plexus tests".to_owned(),
        metadata_url: None,
    };
    OAuth::new(options)
}

pub(crate) fn client(id: &str, secret: Option<&str>) -> Client {
    Client {
        client_id: id.to_owned(),
        client_secret: secret.map(plexus_oauth::Secret::new),
        key: None,
        method: None,
        issuer: None,
    }
}

/// What is answered before a message is even looked at.
fn guard(issuer: &AuthorizationServer, demands: Demands, request: &Received) -> Option<Reply> {
    let origin = format!("http://{}", request.header("host").unwrap_or_default());
    let resource = format!("{origin}/mcp");
    let metadata = format!("{origin}/.well-known/oauth-protected-resource/mcp");
    if request
        .path
        .starts_with("/.well-known/oauth-protected-resource/mcp")
    {
        return Some(Reply::json(&json!({
            "resource": resource,
            "authorization_servers": [issuer.issuer()],
            "dpop_bound_access_tokens_required": demands.dpop,
            "scopes_supported": ["basic"],
        })));
    }
    let admitted = issuer.admit(&request.headers, &request.method, &resource, &resource);
    let refused = |status, challenge: &str| {
        let challenge = format!(r#"{challenge} resource_metadata="{metadata}""#);
        Reply::status(status)
            .with_header("www-authenticate", &challenge)
            .with_header("dpop-nonce", "a-nonce")
    };
    match admitted {
        Err(challenge) if challenge.contains('=') => Some(refused(401, &format!("{challenge},"))),
        Err(challenge) => Some(refused(401, &challenge)),
        Ok(claims) => {
            let scopes = claims.scope.unwrap_or_default();
            let wants_more = demands.more_for_calls && request.mcp() == "tools/call";
            (wants_more && !scopes.contains("more"))
                .then(|| refused(403, r#"Bearer error="insufficient_scope", scope="more","#))
        }
    }
}

/// A user who agrees at once.
#[derive(Debug)]
pub(crate) struct Agreeable;

impl UserAgent for Agreeable {
    fn begin(&self) -> Boxed<Result<Box<dyn Visit>, AuthError>> {
        Box::pin(std::future::ready(
            Ok(Box::new(Agreeable) as Box<dyn Visit>),
        ))
    }
}

impl Visit for Agreeable {
    fn redirect_uri(&self) -> &str {
        BACK
    }

    fn show(self: Box<Self>, url: String) -> Boxed<Result<String, AuthError>> {
        Box::pin(async move {
            let client = HttpClient::new(&HttpClientOptions::default()).unwrap();
            let request = Request::get(url).body(Bytes::new()).unwrap();
            let page = client.send(request).await.unwrap();
            let location = page
                .headers
                .get(LOCATION)
                .map(|value| value.to_str().unwrap());
            let (place, query) = location
                .and_then(|location| location.split_once('?'))
                .unwrap();
            assert_eq!(place, BACK);
            Ok(query.to_owned())
        })
    }
}
