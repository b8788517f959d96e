//! The public keys of an issuer: fetched on first use, refreshed periodically and when a token names
//! an unknown key.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::StatusCode;
use jsonwebtoken::jwk::{Jwk, JwkSet, PublicKeyUse};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use url::Url;

use crate::web::Web;

/// Keys are fetched again after this time, so that a withdrawn key is dropped.
const KEYS_REFRESH_INTERVAL: Duration = Duration::from_hours(1);
/// Keys that cannot be fetched again are used for at most this long.
const KEYS_STALE_MAX: Duration = Duration::from_hours(24);
/// The shortest time between two fetches of keys: tokens with made-up key ids must not cause more
/// requests to the issuer.
const FETCH_INTERVAL_MIN: Duration = Duration::from_secs(10);
/// How many keys of a key set are read; the rest is ignored.
const MAX_KEYS: usize = 100;

/// The public keys of one issuer, cached.
#[derive(Debug)]
pub(crate) struct Keys {
    issuer: String,
    /// The URL of the key set; `None` takes it from the issuer's metadata.
    jwks_uri: Option<Url>,
    web: Web,
    cache: Mutex<FetchedKeys>,
    /// Held during a fetch: there is one fetch at a time.
    fetch_lock: AsyncMutex<()>,
    tasks: TaskTracker,
}

#[derive(Debug, Default)]
struct FetchedKeys {
    /// The keys, and when they were fetched.
    keys: Option<(Arc<JwkSet>, Instant)>,
    /// When the last fetch started, successful or not.
    last_attempt: Option<Instant>,
}

impl Keys {
    pub(crate) fn new(issuer: &str, jwks_uri: Option<Url>, web: Web) -> Arc<Self> {
        Arc::new(Self {
            issuer: issuer.to_owned(),
            jwks_uri,
            web,
            cache: Mutex::default(),
            fetch_lock: AsyncMutex::default(),
            tasks: TaskTracker::new(),
        })
    }

    /// The cached keys. Keys that are missing or older than [`KEYS_REFRESH_INTERVAL`] are fetched first.
    pub(crate) async fn current(self: &Arc<Self>) -> Result<Arc<JwkSet>, String> {
        if let Some((keys, age)) = self.cached()
            && age < KEYS_REFRESH_INTERVAL
        {
            return Ok(keys);
        }
        self.refresh().await;
        match self.cached() {
            Some((keys, age)) if age < KEYS_STALE_MAX => Ok(keys),
            _ => Err(format!("the keys of {} cannot be fetched", self.issuer)),
        }
    }

    /// Fetches the keys again, since `known` lacks a key. `None` if no newer key set was fetched.
    pub(crate) async fn newer(self: &Arc<Self>, known: &Arc<JwkSet>) -> Option<Arc<JwkSet>> {
        self.refresh().await;
        let (keys, _) = self.cached()?;
        (!Arc::ptr_eq(&keys, known)).then_some(keys)
    }

    /// Fetches the keys, unless they were fetched within [`FETCH_INTERVAL_MIN`]. The fetch runs in its own
    /// task: a cancelled request does not cancel it.
    async fn refresh(self: &Arc<Self>) {
        let keys = Arc::clone(self);
        let refresh = self.tasks.spawn(async move { keys.refresh_locked().await });
        if refresh.await.is_err() {
            tracing::error!("the issuer's keys were not fetched: the program is shutting down");
        }
    }

    async fn refresh_locked(&self) {
        let _lock = self.fetch_lock.lock().await;
        let last = self.cache().last_attempt;
        if last.is_some_and(|last| last.elapsed() < FETCH_INTERVAL_MIN) {
            return;
        }
        self.cache().last_attempt = Some(Instant::now());
        match self.fetch().await {
            Ok(keys) => self.cache().keys = Some((Arc::new(keys), Instant::now())),
            Err(error) => {
                tracing::warn!(
                    issuer = self.issuer,
                    error,
                    "cannot fetch the issuer's keys"
                );
            }
        }
    }

    async fn fetch(&self) -> Result<JwkSet, String> {
        let response = if let Some(jwks_uri) = &self.jwks_uri {
            self.web.get(jwks_uri).await?
        } else {
            let (metadata, guarded) = self.web.discover(&self.issuer).await?;
            let jwks_uri = guarded.checked_url("jwks_uri", metadata.jwks_uri.as_deref())?;
            guarded.web.get(&jwks_uri).await?
        };
        if response.status() != StatusCode::OK {
            return Err(format!("HTTP {}", response.status()));
        }
        parse_key_set(response.body())
            .ok_or_else(|| "the response is not a JSON Web Key Set".to_owned())
    }

    fn cached(&self) -> Option<(Arc<JwkSet>, Duration)> {
        let cache = self.cache();
        let (keys, fetched_at) = cache.keys.as_ref()?;
        Some((Arc::clone(keys), fetched_at.elapsed()))
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, FetchedKeys> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Parses a JSON Web Key Set. Keys of an unknown kind, and keys that are not for signatures, are
/// skipped.
fn parse_key_set(document: &[u8]) -> Option<JwkSet> {
    #[derive(Deserialize)]
    struct KeySetDocument<'a> {
        #[serde(borrow)]
        keys: Vec<&'a RawValue>,
    }
    let document: KeySetDocument<'_> = serde_json::from_slice(document).ok()?;
    let keys = document.keys.into_iter().take(MAX_KEYS);
    let keys = keys.filter_map(|key| serde_json::from_str::<Jwk>(key.get()).ok());
    let signs = |key: &Jwk| {
        let purpose = key.common.public_key_use.as_ref();
        purpose.is_none_or(|purpose| *purpose == PublicKeyUse::Signature)
    };
    Some(JwkSet {
        keys: keys.filter(signs).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_does_not_hide_the_others() {
        let set = br#"{"keys":[
            {"kid":1},
            {"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","kid":"b"},
            {"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","kid":"c","use":"enc"}
        ],"more":1}"#;
        let keys = parse_key_set(set).unwrap();
        let names: Vec<_> = keys
            .keys
            .iter()
            .map(|key| key.common.key_id.as_deref())
            .collect();
        assert_eq!(names, [Some("b")]);
        assert!(parse_key_set(b"{}").is_none());
    }
}
