//! A server that requires tokens, its authorization server, and a user agent that always agrees.

use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http::header::LOCATION;
use plexus_mcp_client::auth::{AuthError, OAuth, OAuthOptions, SignInMethod, UserAgent, Visit};
use plexus_mcp_client::http::{HttpClient, HttpClientOptions};
use plexus_mcp_client::{Definition, Target};
use plexus_mcp_core::Boxed;
use plexus_mcp_oauth::Client;
use plexus_mcp_protocol::Revision;
use plexus_testkit::authorization_server::{AuthorizationServer, Behaviour, TokenRequirements};
use plexus_testkit::server::{HttpServer, Offer, Received, Reply, tool};
use serde_json::json;

use crate::support::{STATELESS, minimal, target};

pub(crate) const BACK: &str = "http://127.0.0.1:9/callback";

/// A server, and the authorization server that issues its tokens.
pub(crate) struct Protected {
    pub(crate) issuer: Arc<AuthorizationServer>,
    pub(crate) server: HttpServer,
}

impl Protected {
    pub(crate) async fn start(behaviour: Behaviour, demands: TokenRequirements) -> Self {
        Self::answering(behaviour, demands, |request| request.reply_from(&offer())).await
    }

    pub(crate) async fn answering(
        behaviour: Behaviour,
        demands: TokenRequirements,
        answer: impl Fn(&Received) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let issuer = Arc::new(AuthorizationServer::start(behaviour).await);
        let own = Arc::clone(&issuer);
        let server = HttpServer::start(move |request| {
            own.guard(demands, request)
                .unwrap_or_else(|| answer(request))
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
        let mut definition = minimal(Target::Http(target));
        definition.era = Some(STATELESS.era());
        definition
    }
}

pub(crate) fn offer() -> Offer {
    offer_of(STATELESS)
}

pub(crate) fn offer_of(revision: Revision) -> Offer {
    let mut offer = Offer::new(revision).declaring("tools", json!({}));
    offer.tools.push(tool("work"));
    offer
}

pub(crate) fn by_a_user(mut options: OAuthOptions) -> OAuth {
    options.method = SignInMethod::Page {
        agent: Some(Arc::new(Agreeable)),
        client_name: "Plexus tests".to_owned(),
        metadata_url: None,
    };
    OAuth::new(options)
}

pub(crate) fn client(id: &str, secret: Option<&str>) -> Client {
    Client {
        client_id: id.to_owned(),
        client_secret: secret.map(plexus_mcp_oauth::Secret::new),
        key: None,
        method: None,
        issuer: None,
    }
}

/// A user agent that agrees at once.
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
        Box::pin(async move { Ok(led_to(&url).await) })
    }
}

/// Visits `page` as a user who agrees; returns the query of the redirect.
pub(crate) async fn led_to(page: &str) -> String {
    let client = HttpClient::new(&HttpClientOptions::default()).unwrap();
    let request = Request::get(page).body(Bytes::new()).unwrap();
    let page = client.send(request).await.unwrap();
    let location = page
        .headers
        .get(LOCATION)
        .map(|value| value.to_str().unwrap());
    let (place, query) = location
        .and_then(|location| location.split_once('?'))
        .unwrap();
    assert_eq!(place, BACK);
    query.to_owned()
}
