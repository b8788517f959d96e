//! The keys of an issuer, fetched when they are needed and again when they change.

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

/// After how long keys are fetched again, so that one that was taken back is forgotten.
const FRESH: Duration = Duration::from_hours(1);
/// For how long keys are used that cannot be fetched again.
const STALE: Duration = Duration::from_hours(24);
/// How long to wait between two attempts, whoever asks for them: tokens with made-up key names must
/// not make us a burden to the issuer.
const PAUSE: Duration = Duration::from_secs(10);
/// The most keys that are looked at.
const MAX_KEYS: usize = 100;

/// The keys of one issuer.
#[derive(Debug)]
pub(crate) struct Keys {
    issuer: String,
    /// Where they are; found out if it is not said.
    place: Option<Url>,
    web: Web,
    known: Mutex<Known>,
    /// One fetches at a time.
    turn: AsyncMutex<()>,
    tasks: TaskTracker,
}

#[derive(Debug, Default)]
struct Known {
    keys: Option<(Arc<JwkSet>, Instant)>,
    tried: Option<Instant>,
}

impl Keys {
    pub(crate) fn new(issuer: &str, place: Option<Url>, web: Web) -> Arc<Self> {
        Arc::new(Self {
            issuer: issuer.to_owned(),
            place,
            web,
            known: Mutex::default(),
            turn: AsyncMutex::default(),
            tasks: TaskTracker::new(),
        })
    }

    /// The keys as they are known. They are fetched if they are not, or not lately.
    pub(crate) async fn current(self: &Arc<Self>) -> Result<Arc<JwkSet>, String> {
        if let Some((keys, age)) = self.kept()
            && age < FRESH
        {
            return Ok(keys);
        }
        self.renew().await;
        match self.kept() {
            Some((keys, age)) if age < STALE => Ok(keys),
            _ => Err(format!("the keys of {} are not to be had", self.issuer)),
        }
    }

    /// The keys after `known` turned out to lack one; `None` if there are no others.
    pub(crate) async fn newer(self: &Arc<Self>, known: &Arc<JwkSet>) -> Option<Arc<JwkSet>> {
        self.renew().await;
        let (keys, _) = self.kept()?;
        (!Arc::ptr_eq(&keys, known)).then_some(keys)
    }

    /// Fetches the keys, unless somebody just did. A client that leaves meanwhile stops nothing.
    async fn renew(self: &Arc<Self>) {
        let keys = Arc::clone(self);
        let renewing = self.tasks.spawn(async move { keys.renew_in_turn().await });
        if renewing.await.is_err() {
            tracing::error!("the keys of tokens were not fetched, since the program is ending");
        }
    }

    async fn renew_in_turn(&self) {
        let _turn = self.turn.lock().await;
        let tried = self.known().tried;
        if tried.is_some_and(|tried| tried.elapsed() < PAUSE) {
            return;
        }
        self.known().tried = Some(Instant::now());
        match self.fetch().await {
            Ok(keys) => self.known().keys = Some((Arc::new(keys), Instant::now())),
            Err(error) => {
                tracing::warn!(
                    issuer = self.issuer,
                    error,
                    "cannot fetch the keys of tokens"
                );
            }
        }
    }

    async fn fetch(&self) -> Result<JwkSet, String> {
        let response = if let Some(place) = &self.place {
            self.web.get(place).await?
        } else {
            let (metadata, guarded) = self.web.discover(&self.issuer).await?;
            let place = guarded.address("jwks_uri", metadata.jwks_uri.as_deref())?;
            guarded.web.get(&place).await?
        };
        if response.status() != StatusCode::OK {
            return Err(format!("HTTP {}", response.status()));
        }
        read(response.body()).ok_or_else(|| "they are no set of keys".to_owned())
    }

    fn kept(&self) -> Option<(Arc<JwkSet>, Duration)> {
        let known = self.known();
        let (keys, since) = known.keys.as_ref()?;
        Some((Arc::clone(keys), since.elapsed()))
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The keys in a document. One that we do not know is no reason to do without the others.
fn read(document: &[u8]) -> Option<JwkSet> {
    #[derive(Deserialize)]
    struct Document<'a> {
        #[serde(borrow)]
        keys: Vec<&'a RawValue>,
    }
    let document: Document<'_> = serde_json::from_slice(document).ok()?;
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
        let keys = read(set).unwrap();
        let names: Vec<_> = keys
            .keys
            .iter()
            .map(|key| key.common.key_id.as_deref())
            .collect();
        assert_eq!(names, [Some("b")]);
        assert!(read(b"{}").is_none());
    }
}
