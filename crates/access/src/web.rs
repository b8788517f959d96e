//! Requests to authorization servers, with limits.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http::header::ACCEPT;
use http::{Request, Response, StatusCode};
use plexus_mcp_client::http::{HttpClient, HttpClientError, HttpClientOptions};
use plexus_mcp_oauth::{Reach, UrlPolicy, metadata::ServerMetadata, well_known};
use url::Url;

/// The timeout of a request to an authorization server, during which a client waits.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum size of a response body.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;

/// An HTTP client for requests to authorization servers.
#[derive(Debug, Clone)]
pub(crate) struct Web {
    client: HttpClient,
}

impl Web {
    /// A client without restrictions on the addresses it connects to.
    pub(crate) fn new() -> Result<Self, HttpClientError> {
        Self::with_reach(None)
    }

    fn with_reach(reach: Option<Reach>) -> Result<Self, HttpClientError> {
        let mut options = HttpClientOptions::default();
        options.max_body = MAX_RESPONSE_BYTES;
        options.connect_timeout = RESPONSE_TIMEOUT;
        options.reach = reach;
        let client = HttpClient::new(&options)?;
        Ok(Self { client })
    }

    /// Fetches a JSON document.
    pub(crate) async fn get(&self, url: &Url) -> Result<Response<Bytes>, String> {
        let request = Request::get(url.as_str())
            .header(ACCEPT, "application/json")
            .body(Bytes::new());
        self.send(request.map_err(|error| error.to_string())?).await
    }

    /// Sends a request and reads the whole response. Error texts name the origin of the URL only.
    pub(crate) async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, String> {
        let exchange = async {
            let response = self.client.send(request).await?;
            let status = response.status;
            let mut whole = Response::new(response.bytes().await?);
            *whole.status_mut() = status;
            Ok::<_, plexus_mcp_client::http::HttpError>(whole)
        };
        match tokio::time::timeout(RESPONSE_TIMEOUT, exchange).await {
            Ok(response) => response.map_err(|error| error.to_string()),
            Err(_elapsed) => Err("the authorization server did not answer in time".to_owned()),
        }
    }

    /// Fetches the metadata of `issuer`. The returned [`Guarded`] client connects to the URLs of the
    /// metadata, restricted to the network of the issuer itself: an issuer on the internet cannot name
    /// addresses of the local network (SEC-07).
    pub(crate) async fn discover(&self, issuer: &str) -> Result<(ServerMetadata, Guarded), String> {
        let url = Url::parse(issuer).map_err(|error| error.to_string())?;
        for location in well_known::of_issuer(&url) {
            let response = self.get(&location).await?;
            if response.status() != StatusCode::OK {
                continue;
            }
            let metadata: ServerMetadata = serde_json::from_slice(response.body())
                .map_err(|_other| format!("the metadata of {issuer} cannot be parsed"))?;
            metadata
                .check_issuer(issuer)
                .map_err(|error| error.to_string())?;
            let reach = reach_of(&url).await;
            let web = Self::with_reach(Some(reach)).map_err(|error| error.to_string())?;
            let policy = UrlPolicy::new(reach);
            return Ok((metadata, Guarded { web, policy }));
        }
        Err(format!("{issuer} has no authorization server metadata"))
    }
}

/// A client for URLs of an authorization server's metadata, restricted to allowed addresses.
pub(crate) struct Guarded {
    pub(crate) web: Web,
    policy: UrlPolicy,
}

impl Guarded {
    /// Checks a URL of the metadata.
    pub(crate) fn checked_url(&self, what: &str, url: Option<&str>) -> Result<Url, String> {
        let url = url.ok_or_else(|| format!("the issuer's metadata has no {what}"))?;
        let checked = self.policy.check(url);
        checked.map_err(|error| format!("the issuer's {what} cannot be used: {error}"))
    }
}

/// The network that the host of `url` is in: internet, local network or loopback.
async fn reach_of(url: &Url) -> Reach {
    let port = url.port_or_known_default().unwrap_or(443);
    let addresses: Vec<IpAddr> = match url.host() {
        Some(url::Host::Ipv4(address)) => vec![address.into()],
        Some(url::Host::Ipv6(address)) => vec![address.into()],
        Some(url::Host::Domain(name)) => match tokio::net::lookup_host((name, port)).await {
            Ok(found) => found.map(|address| address.ip()).collect(),
            // A name that does not resolve here may resolve at a proxy; treat it as on the internet.
            Err(_unknown) => Vec::new(),
        },
        None => Vec::new(),
    };
    Reach::of_server(&addresses)
}
