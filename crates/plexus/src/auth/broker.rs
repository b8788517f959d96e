//! One place for the tokens of all that runs here.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use http::Uri;
use http::header::AUTHORIZATION;
use plexus_activations::Places;
use plexus_client::auth::rules::{Client, ClientKey, Grant, Secret};
use plexus_client::auth::{
    AuthError, Drawer, FileVault, Grants, Holding, Identity, Means, OAuth, OAuthOptions, UserAgent,
    Vault, VaultError, VaultKey,
};
use plexus_client::{Definition, HttpTarget, Target};
use plexus_hub::config::{self, ServerEntry, SignIn, Value};
use plexus_hub::secrets::{self, SecretError};
use plexus_service::{Boxed, Principal};
use tokio::sync::OnceCell;

use super::browser::Elsewhere;
use super::callback::Landing;
use super::key;

pub(super) const DEFAULT_ACCOUNT: &str = "default";

/// Lets a server that is configured use the tokens of its account. If there is a `landing`, users
/// are offered the page to sign in on by their own clients.
///
/// # Errors
/// A secret is not to be had, or there is no place for tokens where they are wanted.
pub(crate) async fn authorize_entry(
    definition: &mut Definition,
    entry: &ServerEntry,
    landing: Option<&Landing>,
) -> anyhow::Result<()> {
    let sign_in = &entry.sign_in;
    let Some(target) = unauthorized(definition) else {
        return Ok(());
    };
    let options = options(&target.url, sign_in.account.as_deref(), &entry.name);
    let mut options = match options {
        Ok(options) => options,
        // One without a place for data does without, if it can.
        Err(_) if *sign_in == SignIn::default() => return Ok(()),
        Err(error) => return Err(error),
    };
    options.client = client(sign_in).await?;
    options.landing = landing.map(|landing| elsewhere(landing, sign_in.callback_port, None));
    let identity = identity(sign_in, &entry.name, landing);
    target.identities = identity.map(|identity| identity.with(options.clone()));
    options.means = means(&sign_in.grant);
    if let (Means::Alone(_) | Means::Afresh(_), Some(client)) = (&options.means, &options.client) {
        // What a client gets for itself is not its user's, who may have signed in as well.
        options.account = format!("{} itself", client.client_id);
    }
    target.authorizer = Some(Arc::new(OAuth::new(options)));
    Ok(())
}

/// Lets a server that is named by its address use the tokens that there are for it.
pub(crate) fn authorize(definition: &mut Definition, landing: Option<&Landing>) {
    let Some(target) = unauthorized(definition) else {
        return;
    };
    // One without a place for data does without.
    if let Ok(mut options) = options(&target.url, None, &target.url.to_string()) {
        options.landing = landing.map(|landing| elsewhere(landing, None, None));
        target.authorizer = Some(Arc::new(OAuth::new(options)));
    }
}

fn elsewhere(landing: &Landing, port: Option<u16>, question: Option<String>) -> Arc<dyn UserAgent> {
    let landing = landing.clone();
    Arc::new(Elsewhere {
        landing,
        port,
        question,
    })
}

/// A server that is given credentials by hand is not given others.
fn unauthorized(definition: &mut Definition) -> Option<&mut HttpTarget> {
    match &mut definition.target {
        Target::Http(target) | Target::Sse(target) => {
            (!target.headers.contains_key(AUTHORIZATION)).then_some(target)
        }
        _ => None,
    }
}

/// How tokens are got for a server that the user calls so.
pub(super) fn options(
    url: &Uri,
    account: Option<&str>,
    called: &str,
) -> anyhow::Result<OAuthOptions> {
    let mut options = OAuthOptions::new(url.clone());
    options.vault = Arc::new(vault()?);
    called.clone_into(&mut options.called);
    options.advice = advice(called, account, None);
    if let Some(account) = account {
        account.clone_into(&mut options.account);
    }
    Ok(options)
}

/// The command with which somebody signs in.
pub(super) fn advice(called: &str, account: Option<&str>, principal: Option<&Principal>) -> String {
    let mut command = format!("plexus auth login {}", quoted(called));
    let account = account.filter(|account| *account != DEFAULT_ACCOUNT);
    for (option, value) in [
        ("account", account),
        ("principal", principal.map(Principal::as_str)),
    ] {
        if let Some(value) = value {
            command = format!("{command} --{option} {}", quoted(value));
        }
    }
    format!("sign in with: {command}")
}

/// The client that somebody registered, with its secrets.
pub(super) async fn client(sign_in: &SignIn) -> anyhow::Result<Option<Client>> {
    let Some(client_id) = sign_in.client_id.clone() else {
        return Ok(None);
    };
    let client_secret = match &sign_in.client_secret {
        Some(value) => Some(resolved(value).await?),
        None => None,
    };
    let key = match &sign_in.private_key {
        Some(key) => Some(ClientKey {
            pem: resolved(&key.pem).await?,
            algorithm: key.algorithm.clone(),
            key_id: key.key_id.clone(),
        }),
        None => None,
    };
    Ok(Some(Client {
        client_id,
        client_secret,
        key,
        method: None,
        issuer: sign_in.issuer.clone(),
    }))
}

async fn resolved(value: &Value) -> Result<Secret, SecretError> {
    let secret = secrets::resolve(value).await?;
    Ok(Secret::new(secret.expose()))
}

fn means(grant: &config::Grant) -> Means {
    Means::Afresh(Arc::new(match grant.clone() {
        config::Grant::User => return Means::page(),
        config::Grant::ClientCredentials => return Means::Alone(Grant::ClientCredentials),
        config::Grant::Workload { assertion } => Vouched {
            word: assertion,
            provider: None,
        },
        config::Grant::Enterprise {
            token_endpoint,
            client_id,
            id_token,
        } => Vouched {
            word: id_token,
            provider: Some((token_endpoint, client_id)),
        },
    }))
}

/// Somebody's word, which is asked for each time that it is needed: it does not hold for long.
#[derive(Debug)]
struct Vouched {
    word: Value,
    /// The identity provider that exchanges it, and who we are there.
    provider: Option<(String, String)>,
}

impl Grants for Vouched {
    fn now(&self) -> Boxed<Result<Grant, AuthError>> {
        let (word, provider) = (self.word.clone(), self.provider.clone());
        Box::pin(async move {
            let word = resolved(&word).await;
            let word = word.map_err(|error| AuthError::Page(error.to_string()))?;
            Ok(match provider {
                None => Grant::Workload { assertion: word },
                Some((token_endpoint, client_id)) => Grant::Enterprise {
                    token_endpoint,
                    client_id,
                    id_token: word,
                },
            })
        })
    }
}

/// In whose name the server is used, if not in that of the user of this machine.
fn identity(sign_in: &SignIn, called: &str, landing: Option<&Landing>) -> Option<Identity> {
    Some(match sign_in.identity.clone() {
        config::Identity::Shared => return None,
        config::Identity::User => {
            let (called, account) = (called.to_owned(), sign_in.account.clone());
            let (landing, port) = (landing.cloned(), sign_in.callback_port);
            Identity::User(Arc::new(move |principal, options| {
                options.advice = advice(&called, account.as_deref(), Some(principal));
                let question = whose(principal, &called);
                let landing = landing.as_ref();
                options.landing = landing.map(|one| elsewhere(one, port, Some(question)));
            }))
        }
        config::Identity::Exchange { audience } => Identity::Exchange { audience },
        config::Identity::Forward { audience } => Identity::Forward { audience },
    })
}

/// What somebody is asked who comes back from a page that a caller was offered: the caller may have
/// had somebody else visit it.
fn whose(principal: &Principal, called: &str) -> String {
    let principal = principal.as_str();
    format!(
        "Calls of {principal:?} to the server {called:?} will be made with the account that you have \
         just signed in to. Go on only if {principal:?} is you; if somebody else gave you the link, \
         close this page."
    )
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@+,=".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The vault of this user.
pub(super) fn vault() -> anyhow::Result<UserVault> {
    let places = Places::from_environment(|name| std::env::var_os(name))
        .context("there is no place for tokens; name a folder with PLEXUS_DATA_DIR")?;
    Ok(UserVault {
        folder: places.directory.join("auth"),
        opened: Arc::default(),
    })
}

/// A vault whose key is looked for when there is something to open, and made when there is
/// something to keep.
#[derive(Debug, Clone)]
pub(super) struct UserVault {
    folder: PathBuf,
    opened: Arc<OnceCell<FileVault>>,
}

impl UserVault {
    /// What is kept for all accounts.
    pub(super) async fn list(&self) -> Result<Vec<Holding>, VaultError> {
        match self.existing().await? {
            Some(vault) => vault.list().await,
            None => Ok(Vec::new()),
        }
    }

    async fn existing(&self) -> Result<Option<&FileVault>, VaultError> {
        if self.opened.get().is_none() {
            let Some(key) = key::find(&self.folder).await? else {
                return Ok(None);
            };
            self.remember(key);
        }
        Ok(self.opened.get())
    }

    async fn any(&self) -> Result<FileVault, VaultError> {
        let make = || async {
            let key = key::find_or_make(&self.folder).await?;
            Ok(FileVault::new(&self.folder, key))
        };
        self.opened.get_or_try_init(make).await.cloned()
    }

    fn remember(&self, key: VaultKey) {
        // Whoever was faster found the same key.
        drop(self.opened.set(FileVault::new(&self.folder, key)));
    }
}

impl Vault for UserVault {
    fn read(&self, drawer: &str) -> Boxed<Result<Holding, VaultError>> {
        let (vault, drawer) = (self.clone(), drawer.to_owned());
        Box::pin(async move {
            match vault.existing().await? {
                Some(vault) => vault.read(&drawer).await,
                None => Ok(Holding::default()),
            }
        })
    }

    fn open(&self, drawer: &str) -> Boxed<Result<Box<dyn Drawer>, VaultError>> {
        let (vault, drawer) = (self.clone(), drawer.to_owned());
        Box::pin(async move { vault.any().await?.open(&drawer).await })
    }
}
