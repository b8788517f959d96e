//! Token introspection (RFC 7662).

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request, StatusCode};
use plexus_mcp_oauth::Secret;
use plexus_mcp_oauth::jwt::Claims;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::Instant;
use url::Url;
use url::form_urlencoded::{self, byte_serialize};

use crate::clock::now;
use crate::issuer::Introspection;
use crate::verified::{Rejected, Verified};
use crate::web::Web;

/// How long a response is cached. A revoked token is accepted for at most this long.
const CACHE_TTL: Duration = Duration::from_secs(15);
/// The maximum number of cached responses about valid tokens, and the same of those about invalid
/// ones.
const MAX_CACHED_RESPONSES: usize = 4096;
/// How many requests about new tokens are in flight at a time: invalid tokens of attackers must not
/// overload the issuer.
const MAX_CONCURRENT_REQUESTS: usize = 12;
/// How many further requests about new tokens wait, at most. Beyond that, new tokens are refused with
/// status 503. Each request that waits has a connection, so it costs little to let many wait.
const MAX_WAITING_REQUESTS: usize = 1024;
/// The same for tokens that were valid when the issuer was last asked about them. An attacker has none,
/// so that invalid tokens cannot lock out callers that were admitted before.
const MAX_CONCURRENT_RENEWALS: usize = 4;
const MAX_WAITING_RENEWALS: usize = 1024;
/// The longest token that is sent to the issuer.
const MAX_TOKEN_BYTES: usize = 16 * 1024;
/// The tolerated clock skew.
const CLOCK_SKEW_SECONDS: u64 = 60;

type Digest = [u8; 32];

/// Verifies tokens by asking their issuer.
#[derive(Debug)]
pub(crate) struct Introspector {
    issuer: String,
    client_id: String,
    client_secret: Secret,
    /// The introspection endpoint of the configuration.
    configured: Option<Url>,
    /// The introspection endpoint of the issuer's metadata, with the client that may connect to it.
    discovered: OnceCell<(Url, Web)>,
    web: Web,
    /// The requests about new tokens.
    requests: RequestQueue,
    /// The requests about tokens that were valid before.
    renewals: RequestQueue,
    /// The cached responses about valid tokens, keyed by the SHA-256 of the token.
    cache: Mutex<Cache<Verified>>,
    /// The same about invalid tokens, with the reason. Tokens of attackers cannot displace valid ones.
    invalid: Mutex<Cache<Rejected>>,
}

/// A limit on the requests to the issuer: some are in flight, some wait, and all others fail.
#[derive(Debug)]
struct RequestQueue {
    /// Limits the concurrent requests.
    request_permits: Semaphore,
    /// Limits the requests that wait or are in flight.
    queue_permits: Semaphore,
}

/// Responses with the time at which they expire.
#[derive(Debug)]
struct Cache<T> {
    responses: HashMap<Digest, (T, Instant)>,
}

#[derive(Deserialize)]
struct IntrospectionResponse {
    active: bool,
    #[serde(flatten)]
    claims: Claims,
}

impl Introspector {
    pub(crate) fn new(
        issuer: &str,
        configured: Option<Url>,
        settings: &Introspection,
        web: Web,
    ) -> Self {
        Self {
            issuer: issuer.to_owned(),
            client_id: settings.client_id.clone(),
            client_secret: settings.client_secret.clone(),
            configured,
            discovered: OnceCell::new(),
            web,
            requests: RequestQueue::new(MAX_CONCURRENT_REQUESTS, MAX_WAITING_REQUESTS),
            renewals: RequestQueue::new(MAX_CONCURRENT_RENEWALS, MAX_WAITING_RENEWALS),
            cache: Mutex::default(),
            invalid: Mutex::default(),
        }
    }

    pub(crate) async fn verify(&self, token: &str, resource: &str) -> Result<Verified, Rejected> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(Rejected::invalid("the token is too long"));
        }
        let digest: Digest = Sha256::digest(token).into();
        if let Some(verified) = lock(&self.cache).get(&digest) {
            return Ok(verified);
        }
        if let Some(rejected) = lock(&self.invalid).get(&digest) {
            return Err(rejected);
        }
        let was_valid = lock(&self.cache).contains(&digest);
        let queue = if was_valid {
            &self.renewals
        } else {
            &self.requests
        };
        let checked = self.ask(token, resource, queue).await;
        match &checked {
            Ok((verified, ttl)) => lock(&self.cache).store(digest, verified.clone(), *ttl),
            Err(rejected @ Rejected::Invalid(_)) => {
                lock(&self.cache).remove(&digest);
                lock(&self.invalid).store(digest, rejected.clone(), CACHE_TTL);
            }
            Err(Rejected::Unknown(_)) => {}
        }
        checked.map(|(verified, _)| verified)
    }

    /// Asks the issuer about a token. Returns also how long the answer may be cached.
    async fn ask(
        &self,
        token: &str,
        resource: &str,
        queue: &RequestQueue,
    ) -> Result<(Verified, Duration), Rejected> {
        let claims = self.introspect(token, queue).await?;
        let now = now();
        let verified = self.check_claims(&claims, resource, now)?;
        let left = claims.exp.map_or(u64::MAX, |exp| exp.saturating_sub(now));
        Ok((verified, CACHE_TTL.min(Duration::from_secs(left))))
    }

    /// Checks issuer, audience and times of an active token. The issuer only reports that the token is
    /// active; this checks whether it is valid for this resource (AUTH06-07, SEC-05).
    fn check_claims(
        &self,
        claims: &Claims,
        resource: &str,
        now: u64,
    ) -> Result<Verified, Rejected> {
        if !claims.iss.is_empty() && claims.iss != self.issuer {
            return Err(Rejected::invalid("the token is from another issuer"));
        }
        if !claims.aud.contains(resource) {
            return Err(Rejected::invalid("the token is for another audience"));
        }
        if claims
            .exp
            .is_some_and(|exp| exp.saturating_add(CLOCK_SKEW_SECONDS) <= now)
        {
            return Err(Rejected::invalid("the token has expired"));
        }
        if claims
            .nbf
            .is_some_and(|nbf| nbf > now.saturating_add(CLOCK_SKEW_SECONDS))
        {
            return Err(Rejected::invalid("the token is not valid yet"));
        }
        Verified::from_claims(&self.issuer, claims)
    }

    /// Sends an introspection request, and returns the claims of an active token.
    async fn introspect(&self, token: &str, queue: &RequestQueue) -> Result<Claims, Rejected> {
        let unknown = |why: String| {
            let issuer = &self.issuer;
            tracing::warn!(issuer, error = why, "token introspection failed");
            Rejected::Unknown(format!("token introspection at {issuer} failed"))
        };
        let _place = queue.queue_permits.try_acquire().map_err(|_full| {
            unknown("too many tokens wait for an answer of the issuer".to_owned())
        })?;
        let permit = queue.request_permits.acquire().await;
        let _permit =
            permit.map_err(|_closed| Rejected::Unknown("plexus is shutting down".to_owned()))?;
        let (endpoint, web) = self.endpoint().await.map_err(unknown)?;
        let request = self.request(endpoint, token).map_err(unknown)?;
        let response = web.send(request).await.map_err(unknown)?;
        if response.status() != StatusCode::OK {
            return Err(unknown(format!("HTTP {}", response.status())));
        }
        let response: IntrospectionResponse = serde_json::from_slice(response.body())
            .map_err(|_other| unknown("the introspection response cannot be parsed".to_owned()))?;
        if response.active {
            Ok(response.claims)
        } else {
            Err(Rejected::invalid("the token is not active at its issuer"))
        }
    }

    /// The introspection endpoint, with the client that may connect to it. Without a configured
    /// endpoint, the issuer's metadata is fetched once.
    async fn endpoint(&self) -> Result<(&Url, &Web), String> {
        if let Some(configured) = &self.configured {
            return Ok((configured, &self.web));
        }
        let discovered = self.discovered.get_or_try_init(|| async {
            let (metadata, guarded) = self.web.discover(&self.issuer).await?;
            let named = metadata.introspection_endpoint.as_deref();
            let endpoint = guarded.checked_url("introspection_endpoint", named)?;
            Ok::<_, String>((endpoint, guarded.web))
        });
        let (endpoint, web) = discovered.await?;
        Ok((endpoint, web))
    }

    fn request(&self, endpoint: &Url, token: &str) -> Result<Request<Bytes>, String> {
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair("token", token)
            .append_pair("token_type_hint", "access_token")
            .finish();
        // RFC 6749 §2.3.1: id and secret are form-encoded before the Base64 encoding.
        let id: String = byte_serialize(self.client_id.as_bytes()).collect();
        let secret: String = byte_serialize(self.client_secret.expose().as_bytes()).collect();
        let basic = format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")));
        let unusable = |_invalid| {
            "the client credentials contain characters that an HTTP header cannot hold".to_owned()
        };
        let mut basic = HeaderValue::try_from(basic).map_err(unusable)?;
        basic.set_sensitive(true);
        Request::post(endpoint.as_str())
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(AUTHORIZATION, basic)
            .body(form.into())
            .map_err(|error| error.to_string())
    }
}

impl RequestQueue {
    fn new(concurrent: usize, waiting: usize) -> Self {
        Self {
            request_permits: Semaphore::new(concurrent),
            queue_permits: Semaphore::new(concurrent + waiting),
        }
    }
}

impl<T: Clone> Cache<T> {
    fn get(&self, digest: &Digest) -> Option<T> {
        let (response, expires_at) = self.responses.get(digest)?;
        (*expires_at > Instant::now()).then(|| response.clone())
    }

    /// Whether there is a response, which may have expired.
    fn contains(&self, digest: &Digest) -> bool {
        self.responses.contains_key(digest)
    }

    fn remove(&mut self, digest: &Digest) {
        self.responses.remove(digest);
    }

    /// Caches a response. If the cache is still full after expired responses are removed, the response
    /// is not cached.
    fn store(&mut self, digest: Digest, response: T, ttl: Duration) {
        let now = Instant::now();
        if self.responses.len() >= MAX_CACHED_RESPONSES {
            self.responses
                .retain(|_, (_, expires_at)| *expires_at > now);
        }
        if self.responses.len() < MAX_CACHED_RESPONSES {
            self.responses.insert(digest, (response, now + ttl));
        }
    }
}

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self {
            responses: HashMap::new(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
