//! One place for the tokens of all that runs here.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use http::Uri;
use http::header::AUTHORIZATION;
use plexus_activations::Places;
use plexus_client::auth::rules::Client;
use plexus_client::auth::{
    Drawer, FileVault, Holding, OAuth, OAuthOptions, UserAgent, Vault, VaultError, VaultKey,
};
use plexus_client::{Definition, Target};
use plexus_hub::config::ServerEntry;
use plexus_service::Boxed;
use serde::Deserialize;
use tokio::sync::OnceCell;

use super::browser::Elsewhere;
use super::callback::Landing;
use super::key;

pub(super) const DEFAULT_ACCOUNT: &str = "default";

/// What a server's definition says about signing in, in the words of `claude mcp`.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    pub(super) account: Option<String>,
    pub(super) client_id: Option<String>,
    pub(super) callback_port: Option<u16>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    client_id: Option<String>,
    callback_port: Option<u16>,
}

impl Settings {
    pub(super) fn of(entry: &ServerEntry) -> Self {
        let account = entry.other.get("account");
        let oauth = entry.other.get("oauth");
        let oauth: Option<Written> = oauth.and_then(|oauth| oauth.decode().ok());
        let (client_id, callback_port) =
            oauth.map_or((None, None), |oauth| (oauth.client_id, oauth.callback_port));
        Self {
            account: account.and_then(|account| account.decode().ok()),
            client_id,
            callback_port,
        }
    }
}

/// Lets a server that is configured use the tokens of its account. If there is a `landing`, users
/// are offered the page to sign in on by their own clients.
pub(crate) fn authorize_entry(
    definition: &mut Definition,
    entry: &ServerEntry,
    landing: Option<&Landing>,
) {
    authorize_as(definition, Some(&entry.name), &Settings::of(entry), landing);
}

/// Lets a server that is named by its address use the tokens that there are for it.
pub(crate) fn authorize(definition: &mut Definition, landing: Option<&Landing>) {
    authorize_as(definition, None, &Settings::default(), landing);
}

/// A server that is given credentials by hand is not given others, and one without a place for
/// data does without.
fn authorize_as(
    definition: &mut Definition,
    name: Option<&str>,
    settings: &Settings,
    landing: Option<&Landing>,
) {
    let (Target::Http(target) | Target::Sse(target)) = &mut definition.target else {
        return;
    };
    if target.headers.contains_key(AUTHORIZATION) {
        return;
    }
    let called = name.map_or_else(|| target.url.to_string(), str::to_owned);
    let account = settings.account.as_deref().unwrap_or(DEFAULT_ACCOUNT);
    if let Ok(mut options) = options(&target.url, account, &called) {
        options.client = settings.client_id.clone().map(by_hand);
        options.landing = landing.map(|landing| {
            let (landing, port) = (landing.clone(), settings.callback_port);
            Arc::new(Elsewhere { landing, port }) as Arc<dyn UserAgent>
        });
        target.authorizer = Some(Arc::new(OAuth::new(options)));
    }
}

/// How tokens are got for a server that the user calls so.
pub(super) fn options(url: &Uri, account: &str, called: &str) -> anyhow::Result<OAuthOptions> {
    let mut options = OAuthOptions::new(url.clone());
    account.clone_into(&mut options.account);
    called.clone_into(&mut options.called);
    options.vault = Arc::new(vault()?);
    let mut command = format!("plexus auth login {called}");
    if account != DEFAULT_ACCOUNT {
        command = format!("{command} --account {account}");
    }
    options.advice = format!("sign in with: {command}");
    Ok(options)
}

/// A client that somebody registered, without a secret.
pub(super) fn by_hand(client_id: String) -> Client {
    Client {
        client_id,
        client_secret: None,
        key: None,
        method: None,
        issuer: None,
    }
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
