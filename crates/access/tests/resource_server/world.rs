//! A server that requires tokens, and their issuer.

use std::sync::Arc;
use std::time::Duration;

use plexus_mcp_access::{Issuer, Options, ResourceServer};
use plexus_mcp_core::{Context, LocalService, NoArguments, Service, Tool};
use plexus_mcp_oauth::Scopes;
use plexus_mcp_oauth::jwt::{Audience, Claims};
use plexus_mcp_protocol::Revision;
use plexus_mcp_server::http::{HttpOptions, HttpServer, SsePaths};
use plexus_mcp_server::{Edge, Options as EdgeOptions};
use plexus_testkit::authorization_server::{AuthorizationServer, Behaviour};
use plexus_testkit::{HttpClient, HttpRequest, HttpResponse};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;

/// The scope that every token needs.
pub(crate) const SCOPE: &str = "mcp";

/// An authorization server, and a server that takes its tokens.
pub(crate) struct World {
    pub(crate) issuer: AuthorizationServer,
    pub(crate) url: String,
    pub(crate) home: TempDir,
    running: JoinSet<()>,
}

impl World {
    /// A server with the tool of [`principal_service`].
    pub(crate) async fn start() -> Self {
        Self::with(principal_service(), |_| {}).await
    }

    /// A server of `service`. The default options accept signed tokens of the issuer.
    pub(crate) async fn with(service: Arc<dyn Service>, change: impl FnOnce(&mut Options)) -> Self {
        Self::with_issuer(Behaviour::default(), service, change).await
    }

    /// The same with another authorization server, which also has the client of the server.
    pub(crate) async fn with_issuer(
        mut behaviour: Behaviour,
        service: Arc<dyn Service>,
        change: impl FnOnce(&mut Options),
    ) -> Self {
        let client = ("gateway".to_owned(), Some("hush".to_owned()));
        behaviour.clients.push(client);
        let issuer = AuthorizationServer::start(behaviour).await;
        let mut world = Self {
            issuer,
            url: String::new(),
            home: tempfile::tempdir().unwrap(),
            running: JoinSet::new(),
        };
        world.serve(service, change).await;
        world
    }

    async fn serve(&mut self, service: Arc<dyn Service>, change: impl FnOnce(&mut Options)) {
        let edge = Edge::new(service, EdgeOptions::default()).unwrap();
        let mut http = HttpOptions::default();
        http.sse = Some(SsePaths::default());
        let server = HttpServer::bind(edge, &["127.0.0.1:0".parse().unwrap()], http).await;
        let server = server.unwrap();
        self.url = format!("http://{}{}", server.addresses()[0], server.path());
        let mut options = Options::new(&self.url);
        options.issuers.push(Issuer::new(self.issuer.issuer()));
        options.scopes.push(SCOPE.to_owned());
        change(&mut options);
        let access = ResourceServer::new(options).unwrap();
        self.running.spawn(server.admitting(Arc::new(access)).run());
    }

    /// A valid token.
    pub(crate) fn token(&self, subject: &str) -> String {
        self.issuer.issue_to(subject, &self.url, SCOPE)
    }

    /// The claims of a valid token.
    pub(crate) fn claims(&self) -> Claims {
        let mut claims = Claims::default();
        self.issuer.issuer().clone_into(&mut claims.iss);
        claims.sub = Some("alice".to_owned());
        claims.aud = Audience::One(self.url.clone());
        claims.exp = Some(u64::MAX / 2);
        claims.scope = Some(Scopes::parse(SCOPE));
        claims
    }

    pub(crate) fn client(&self) -> HttpClient {
        HttpClient::new(&self.url, Revision::V2025_11_25)
    }

    pub(crate) fn client_with(&self, token: &str) -> HttpClient {
        self.client()
            .with_header("authorization", &format!("Bearer {token}"))
    }

    /// The outcome of a request with `token`.
    pub(crate) async fn try_token(&self, token: &str) -> HttpResponse {
        initialize_request(&self.client_with(token)).send().await
    }

    /// The server refuses `token`, in the same way for every reason.
    pub(crate) async fn refuses(&self, token: &str) {
        let answer = self.try_token(token).await;
        assert_eq!(answer.status(), 401);
        let origin = self.url.strip_suffix("/mcp").unwrap();
        let expected = format!(
            r#"Bearer error="invalid_token", scope="mcp", resource_metadata="{origin}/.well-known/oauth-protected-resource/mcp""#
        );
        assert_eq!(answer.header("www-authenticate"), Some(&*expected));
        let text = answer.text().await;
        let body = "the access token is expired, revoked, or not for this server\n";
        assert_eq!(text, body, "the body tells the reason");
    }

    /// The server accepts `token`.
    pub(crate) async fn accepts(&self, token: &str) {
        assert_eq!(self.try_token(token).await.status(), 200);
    }
}

/// A service with one tool, which returns the principal of its caller.
pub(crate) fn principal_service() -> Arc<dyn Service> {
    let who = async |_: NoArguments, context: Context| context.peer().principal.as_str().to_owned();
    let service = LocalService::builder("who", "1.0.0").tool(Tool::new("who"), who);
    Arc::new(service.build().unwrap())
}

/// The `initialize` request that opens a session.
pub(crate) fn initialize_request(client: &HttpClient) -> HttpRequest {
    client.post(&initialize_message())
}

pub(crate) fn initialize_message() -> Value {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

/// Advances the clock of tokio.
pub(crate) async fn later(seconds: u64) {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(seconds)).await;
    tokio::time::resume();
}
