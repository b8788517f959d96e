//! What authorization servers are asked, with limits.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http::header::ACCEPT;
use http::{Request, Response, StatusCode};
use plexus_client::http::{HttpClient, HttpClientError, HttpClientOptions};
use plexus_oauth::{Guard, Reach, metadata::ServerMetadata, well_known};
use url::Url;

/// How long an authorization server may take. A client waits meanwhile.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a document of it may be.
const LONGEST: usize = 1024 * 1024;

/// Asks one authorization server.
#[derive(Debug, Clone)]
pub(crate) struct Web {
    client: HttpClient,
}

impl Web {
    /// One that goes where it is sent.
    pub(crate) fn new() -> Result<Self, HttpClientError> {
        Self::within(None)
    }

    fn within(reach: Option<Reach>) -> Result<Self, HttpClientError> {
        let mut options = HttpClientOptions::default();
        options.max_body = LONGEST;
        options.connect_timeout = PATIENCE;
        options.reach = reach;
        let client = HttpClient::new(&options)?;
        Ok(Self { client })
    }

    /// A document.
    pub(crate) async fn get(&self, url: &Url) -> Result<Response<Bytes>, String> {
        let request = Request::get(url.as_str())
            .header(ACCEPT, "application/json")
            .body(Bytes::new());
        self.send(request.map_err(|error| error.to_string())?).await
    }

    /// What comes of a request. Errors name the origin and nothing else.
    pub(crate) async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, String> {
        let exchange = async {
            let response = self.client.send(request).await?;
            let status = response.status;
            let mut whole = Response::new(response.bytes().await?);
            *whole.status_mut() = status;
            Ok::<_, plexus_client::http::HttpError>(whole)
        };
        match tokio::time::timeout(PATIENCE, exchange).await {
            Ok(response) => response.map_err(|error| error.to_string()),
            Err(_elapsed) => Err("the authorization server did not answer in time".to_owned()),
        }
    }

    /// The metadata of `issuer`, and what may ask at the addresses in it: no further than the issuer
    /// is itself (SEC-07).
    pub(crate) async fn discover(&self, issuer: &str) -> Result<(ServerMetadata, Guarded), String> {
        let url = Url::parse(issuer).map_err(|error| error.to_string())?;
        for place in well_known::of_issuer(&url) {
            let response = self.get(&place).await?;
            if response.status() != StatusCode::OK {
                continue;
            }
            let metadata: ServerMetadata = serde_json::from_slice(response.body())
                .map_err(|_other| format!("the metadata of {issuer} cannot be understood"))?;
            metadata
                .check_issuer(issuer)
                .map_err(|error| error.to_string())?;
            let reach = reach_of(&url).await;
            let web = Self::within(Some(reach)).map_err(|error| error.to_string())?;
            let guard = Guard::new(reach);
            return Ok((metadata, Guarded { web, guard }));
        }
        Err(format!("{issuer} has no metadata"))
    }
}

/// Asks where an authorization server says, if it may say so.
pub(crate) struct Guarded {
    pub(crate) web: Web,
    guard: Guard,
}

impl Guarded {
    /// An address of the metadata.
    pub(crate) fn address(&self, what: &str, named: Option<&str>) -> Result<Url, String> {
        let named = named.ok_or_else(|| format!("its metadata has no {what}"))?;
        let checked = self.guard.check(named);
        checked.map_err(|error| format!("its {what} cannot be used: {error}"))
    }
}

async fn reach_of(url: &Url) -> Reach {
    let port = url.port_or_known_default().unwrap_or(443);
    let addresses: Vec<IpAddr> = match url.host() {
        Some(url::Host::Ipv4(address)) => vec![address.into()],
        Some(url::Host::Ipv6(address)) => vec![address.into()],
        Some(url::Host::Domain(name)) => match tokio::net::lookup_host((name, port)).await {
            Ok(found) => found.map(|address| address.ip()).collect(),
            // A name that only a proxy knows is one of the internet.
            Err(_unknown) => Vec::new(),
        },
        None => Vec::new(),
    };
    Reach::of_server(&addresses)
}
