//! Asking an issuer what a token is worth (RFC 7662).

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request, StatusCode};
use plexus_oauth::Secret;
use plexus_oauth::jwt::Claims;
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

/// For how long an answer is believed: a token that was taken back works no longer than this.
const BELIEVED: Duration = Duration::from_secs(15);
/// The most answers that are remembered.
const MAX_REMEMBERED: usize = 4096;
/// How many questions are asked at a time: made-up tokens must not make us a burden to the issuer.
const MAX_QUESTIONS: usize = 16;
/// The longest token that is asked about.
const LONGEST: usize = 16 * 1024;
/// How far clocks may be apart, in seconds.
const LEEWAY: u64 = 60;

type Digest = [u8; 32];

/// Asks one issuer.
#[derive(Debug)]
pub(crate) struct Introspector {
    issuer: String,
    client_id: String,
    client_secret: Secret,
    configured: Option<Url>,
    /// Where it was found out to be asked, and by what.
    discovered: OnceCell<(Url, Web)>,
    web: Web,
    questions: Semaphore,
    remembered: Mutex<HashMap<Digest, Remembered>>,
}

#[derive(Debug, Clone)]
struct Remembered {
    verified: Verified,
    until: Instant,
}

#[derive(Deserialize)]
struct Answer {
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
            questions: Semaphore::new(MAX_QUESTIONS),
            remembered: Mutex::default(),
        }
    }

    pub(crate) async fn verify(&self, token: &str, resource: &str) -> Result<Verified, Rejected> {
        if token.len() > LONGEST {
            return Err(Rejected::invalid("it is too long"));
        }
        let digest: Digest = Sha256::digest(token).into();
        if let Some(remembered) = self.remembered().get(&digest)
            && remembered.until > Instant::now()
        {
            return Ok(remembered.verified.clone());
        }
        let claims = self.ask(token).await?;
        let now = now();
        let verified = self.judge(&claims, resource, now)?;
        let left = claims.exp.map_or(u64::MAX, |exp| exp.saturating_sub(now));
        self.remember(digest, &verified, BELIEVED.min(Duration::from_secs(left)));
        Ok(verified)
    }

    /// The issuer says that the token holds; whether it holds here, we decide (AUTH06-07, SEC-05).
    fn judge(&self, claims: &Claims, resource: &str, now: u64) -> Result<Verified, Rejected> {
        if !claims.iss.is_empty() && claims.iss != self.issuer {
            return Err(Rejected::invalid("it is of another issuer"));
        }
        if !claims.aud.contains(resource) {
            return Err(Rejected::invalid("it is for another audience"));
        }
        if claims
            .exp
            .is_some_and(|exp| exp.saturating_add(LEEWAY) <= now)
        {
            return Err(Rejected::invalid("it has expired"));
        }
        if claims
            .nbf
            .is_some_and(|nbf| nbf > now.saturating_add(LEEWAY))
        {
            return Err(Rejected::invalid("it does not hold yet"));
        }
        Verified::of(&self.issuer, claims)
    }

    async fn ask(&self, token: &str) -> Result<Claims, Rejected> {
        let unknown = |why: String| {
            let issuer = &self.issuer;
            tracing::warn!(issuer, error = why, "cannot ask about a token");
            Rejected::Unknown(format!("{issuer} cannot be asked"))
        };
        let permit = self.questions.acquire().await;
        let _permit = permit.map_err(|_closed| Rejected::Unknown("it is ending".to_owned()))?;
        let (place, web) = self.place().await.map_err(unknown)?;
        let request = self.question(place, token).map_err(unknown)?;
        let response = web.send(request).await.map_err(unknown)?;
        if response.status() != StatusCode::OK {
            return Err(unknown(format!("HTTP {}", response.status())));
        }
        let answer: Answer = serde_json::from_slice(response.body())
            .map_err(|_other| unknown("its answer cannot be understood".to_owned()))?;
        if answer.active {
            Ok(answer.claims)
        } else {
            Err(Rejected::invalid("its issuer says that it does not hold"))
        }
    }

    async fn place(&self) -> Result<(&Url, &Web), String> {
        if let Some(configured) = &self.configured {
            return Ok((configured, &self.web));
        }
        let discovered = self.discovered.get_or_try_init(|| async {
            let (metadata, guarded) = self.web.discover(&self.issuer).await?;
            let named = metadata.introspection_endpoint.as_deref();
            let place = guarded.address("introspection_endpoint", named)?;
            Ok::<_, String>((place, guarded.web))
        });
        let (place, web) = discovered.await?;
        Ok((place, web))
    }

    fn question(&self, place: &Url, token: &str) -> Result<Request<Bytes>, String> {
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair("token", token)
            .append_pair("token_type_hint", "access_token")
            .finish();
        // RFC 6749 §2.3.1: both are encoded as in a form first.
        let id: String = byte_serialize(self.client_id.as_bytes()).collect();
        let secret: String = byte_serialize(self.client_secret.expose().as_bytes()).collect();
        let basic = format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")));
        let unusable = |_invalid| "the client's credentials cannot be sent".to_owned();
        let mut basic = HeaderValue::try_from(basic).map_err(unusable)?;
        basic.set_sensitive(true);
        Request::post(place.as_str())
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(AUTHORIZATION, basic)
            .body(form.into())
            .map_err(|error| error.to_string())
    }

    fn remember(&self, digest: Digest, verified: &Verified, time: Duration) {
        let mut remembered = self.remembered();
        let now = Instant::now();
        if remembered.len() >= MAX_REMEMBERED {
            remembered.retain(|_, one| one.until > now);
        }
        if remembered.len() < MAX_REMEMBERED {
            let verified = verified.clone();
            let until = now + time;
            remembered.insert(digest, Remembered { verified, until });
        }
    }

    fn remembered(&self) -> MutexGuard<'_, HashMap<Digest, Remembered>> {
        self.remembered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
