//! Reads how to sign in to a remote server.

use plexus_mcp_wire::{Kind as JsonKind, Object, ObjectError};

use super::{Reader, keys};
use crate::entry::{Kind, endpoint_url};
use crate::problem::ConfigProblem;
use crate::secret::Value;
use crate::sign_in::{Grant, Identity, PrivateKey, SignIn};

const OAUTH: &str = "oauth";
const IDENTITY: &str = "identity";
/// The default signing algorithm.
const DEFAULT_ALGORITHM: &str = "ES256";

impl Reader<'_> {
    pub(super) fn sign_in(&mut self, kind: &Kind) -> Result<SignIn, ConfigProblem> {
        if !matches!(kind, Kind::Http { .. } | Kind::Sse { .. }) {
            if self.has(IDENTITY) {
                let what = "only remote servers can be used with the identity of their callers";
                return Err(self.problem(IDENTITY, what));
            }
            return Ok(SignIn::default());
        }
        let account = self.optional("account", "a string")?;
        let identity = self.identity()?;
        let mut sign_in = match self.take(OAUTH) {
            None => SignIn::default(),
            Some(raw) => {
                let members = Object::parse(&raw).map_err(|error| match error {
                    ObjectError::NotAnObject => self.mismatch(OAUTH, "an object", &raw),
                    other => self.problem(OAUTH, other.to_string()),
                })?;
                OAuth {
                    reader: self,
                    members,
                }
                .read()?
            }
        };
        sign_in.account = account;
        sign_in.identity = identity;
        self.check(&sign_in)?;
        Ok(sign_in)
    }

    fn identity(&mut self) -> Result<Identity, ConfigProblem> {
        let written: Option<String> = self.optional(IDENTITY, "a string")?;
        let audience: Option<String> = self.optional("audience", "a string")?;
        let audience = audience.map(|audience| self.expanded("audience", audience));
        let audience = audience
            .transpose()?
            .map(|audience| audience.expanded().to_owned());
        match (written.as_deref(), audience) {
            (None | Some("shared"), None) => Ok(Identity::Shared),
            (Some("user"), None) => Ok(Identity::User),
            (Some("exchange"), audience) => Ok(Identity::Exchange { audience }),
            (Some("forward"), Some(audience)) => Ok(Identity::Forward { audience }),
            (Some("forward"), None) => {
                let what = "it is missing: tokens are passed on only if they are for this audience";
                Err(self.problem("audience", what))
            }
            (None | Some("shared" | "user"), Some(_)) => Err(self
                .problem(
                    "audience",
                    "it has no effect without an identity that uses it",
                )
                .advice("write \"identity\": \"exchange\" or \"forward\", or remove it")),
            (Some(other), _) => Err(self
                .problem(IDENTITY, format!("{other:?} is unknown"))
                .advice("use shared, user, exchange or forward")),
        }
    }

    /// Rejects combinations of keys that are valid only alone.
    fn check(&self, sign_in: &SignIn) -> Result<(), ConfigProblem> {
        let missing = |key: &str, why: &str| {
            let key = format!("{OAUTH}.{key}");
            Err(self.problem(key, format!("it is missing: {why}")))
        };
        let proves_itself = sign_in.client_secret.is_some() || sign_in.private_key.is_some();
        if sign_in.grant != Grant::User && sign_in.client_id.is_none() {
            return missing("clientId", "this grant is a client's own");
        }
        if sign_in.grant == Grant::ClientCredentials && !proves_itself {
            return missing(
                "clientSecret",
                "or a privateKey: the client must prove itself",
            );
        }
        if matches!(sign_in.identity, Identity::Exchange { .. }) {
            if sign_in.client_id.is_none() {
                return missing("clientId", "tokens are exchanged by a client");
            }
            if sign_in.issuer.is_none() {
                let why = "callers' tokens are shown to no other authorization server than this";
                return missing("issuer", why);
            }
        }
        Ok(())
    }
}

/// The object under `oauth`. Unknown members belong to other clients.
struct OAuth<'a, 'b> {
    reader: &'a Reader<'b>,
    members: Object,
}

impl OAuth<'_, '_> {
    fn read(&self) -> Result<SignIn, ConfigProblem> {
        let private_key = match self.secret("privateKey")? {
            None => None,
            Some(pem) => {
                let algorithm = self.text("algorithm")?;
                let algorithm = algorithm.unwrap_or_else(|| DEFAULT_ALGORITHM.to_owned());
                Some(PrivateKey::new(pem, algorithm, self.text("keyId")?))
            }
        };
        Ok(SignIn {
            client_id: self.text("clientId")?,
            client_secret: self.secret("clientSecret")?,
            private_key,
            issuer: self.text("issuer")?,
            callback_port: self.port()?,
            grant: self.grant()?,
            ..SignIn::default()
        })
    }

    fn grant(&self) -> Result<Grant, ConfigProblem> {
        match self.text("grant")?.as_deref() {
            None | Some("user") => Ok(Grant::User),
            Some("client_credentials") => Ok(Grant::ClientCredentials),
            Some("workload") => Ok(Grant::Workload {
                assertion: self.required("assertion", self.secret("assertion")?)?,
            }),
            Some("enterprise") => {
                const ENDPOINT: &str = "idpTokenEndpoint";
                let token_endpoint = self.required(ENDPOINT, self.text(ENDPOINT)?)?;
                if let Err(what) = endpoint_url(&token_endpoint) {
                    return Err(self.problem(ENDPOINT, what));
                }
                Ok(Grant::Enterprise {
                    token_endpoint,
                    client_id: self.required("idpClientId", self.text("idpClientId")?)?,
                    id_token: self.required("idToken", self.secret("idToken")?)?,
                })
            }
            Some(other) => Err(self
                .problem("grant", &format!("{other:?} is unknown"))
                .advice("use user, client_credentials, workload or enterprise")),
        }
    }

    fn port(&self) -> Result<Option<u16>, ConfigProblem> {
        const KEY: &str = "callbackPort";
        match self.member(KEY) {
            None => Ok(None),
            Some(raw) => match raw.decode::<u16>() {
                Ok(port) if port > 0 => Ok(Some(port)),
                _ => Err(self.problem(KEY, "a port is expected, from 1 to 65535")),
            },
        }
    }

    fn text(&self, key: &str) -> Result<Option<String>, ConfigProblem> {
        let Some(raw) = self.member(key) else {
            return Ok(None);
        };
        let place = place(key);
        let written = self.reader.decoded(&place, raw, "a string")?;
        let text = self.reader.expanded(&place, written)?;
        Ok(Some(text.expanded().to_owned()))
    }

    fn secret(&self, key: &str) -> Result<Option<Value>, ConfigProblem> {
        let raw = self.member(key);
        raw.map(|raw| self.reader.value(&place(key), raw))
            .transpose()
    }

    fn required<T>(&self, key: &str, value: Option<T>) -> Result<T, ConfigProblem> {
        value.ok_or_else(|| self.problem(key, "it is missing: this grant needs it"))
    }

    fn member(&self, key: &str) -> Option<&plexus_mcp_wire::Raw> {
        debug_assert!(
            keys::is_known(&place(key)),
            "oauth.{key} is not in SERVER_KEYS"
        );
        let raw = self.members.get(key)?;
        (raw.kind() != JsonKind::Null).then_some(raw)
    }

    fn problem(&self, key: &str, what: &str) -> ConfigProblem {
        self.reader.problem(place(key), what)
    }
}

fn place(key: &str) -> String {
    format!("{OAUTH}.{key}")
}
