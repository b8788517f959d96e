//! Tokens for servers, shared by all processes of this user.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use http::Uri;
use http::header::AUTHORIZATION;
use plexus_mcp_builtins::DataPaths;
use plexus_mcp_client::auth::rules::{Client, ClientKey, Grant, Secret};
use plexus_mcp_client::auth::{
    AuthError, FileVault, GrantProvider, Identity, LockedTokens, OAuth, OAuthOptions, SignInMethod,
    StoredTokens, UserAgent, Vault, VaultError, VaultKey,
};
use plexus_mcp_client::{Definition, HttpTarget, Target};
use plexus_mcp_config::{self as config, ServerEntry, SignIn, Value};
use plexus_mcp_core::{Boxed, Principal};
use plexus_mcp_hub::secrets::{self, SecretError};
use tokio::sync::OnceCell;

use super::browser::ClientUserAgent;
use super::callback_listener::SignInCallbacks;
use super::key;

pub(super) const DEFAULT_ACCOUNT: &str = "default";

/// Lets a configured server use the tokens of its account. With `callbacks`, users are offered the
/// sign-in page through their own MCP clients.
///
/// # Errors
/// A secret cannot be fetched, or tokens are needed and there is no data directory.
pub(crate) async fn authorize_entry(
    definition: &mut Definition,
    entry: &ServerEntry,
    callbacks: Option<&SignInCallbacks>,
) -> anyhow::Result<()> {
    let sign_in = &entry.sign_in;
    let Some(target) = unauthorized(definition) else {
        return Ok(());
    };
    let options = options(&target.url, sign_in.account.as_deref(), &entry.name);
    let mut options = match options {
        Ok(options) => options,
        // Without a data directory there are no tokens, which is fine unless the definition needs
        // them.
        Err(_) if *sign_in == SignIn::default() => return Ok(()),
        Err(error) => return Err(error),
    };
    options.client = client(sign_in).await?;
    options.invitation_agent =
        callbacks.map(|callbacks| client_user_agent(callbacks, sign_in.callback_port, None));
    let identity = identity(sign_in, &entry.name, callbacks);
    target.identities = identity.map(|identity| identity.with_options(options.clone()));
    options.method = sign_in_method(&sign_in.grant);
    if let (SignInMethod::Grant(_) | SignInMethod::Provider(_), Some(client)) =
        (&options.method, &options.client)
    {
        // Tokens that a client obtains for itself are stored apart from those of its user.
        options.account = format!("{} itself", client.client_id);
    }
    target.authorizer = Some(Arc::new(OAuth::new(options)));
    Ok(())
}

/// Lets a server that is named by its URL use the tokens stored for it.
pub(crate) fn authorize(definition: &mut Definition, callbacks: Option<&SignInCallbacks>) {
    let Some(target) = unauthorized(definition) else {
        return;
    };
    // Without a data directory there are no tokens.
    if let Ok(mut options) = options(&target.url, None, &target.url.to_string()) {
        options.invitation_agent =
            callbacks.map(|callbacks| client_user_agent(callbacks, None, None));
        target.authorizer = Some(Arc::new(OAuth::new(options)));
    }
}

fn client_user_agent(
    callbacks: &SignInCallbacks,
    port: Option<u16>,
    question: Option<String>,
) -> Arc<dyn UserAgent> {
    let callbacks = callbacks.clone();
    Arc::new(ClientUserAgent {
        callbacks,
        port,
        question,
    })
}

/// The HTTP target, unless its credentials are configured by hand.
fn unauthorized(definition: &mut Definition) -> Option<&mut HttpTarget> {
    match &mut definition.target {
        Target::Http(target) | Target::Sse(target) => {
            (!target.headers.contains_key(AUTHORIZATION)).then_some(target)
        }
        _ => None,
    }
}

/// The options for obtaining tokens for a server.
pub(super) fn options(
    url: &Uri,
    account: Option<&str>,
    called: &str,
) -> anyhow::Result<OAuthOptions> {
    let mut options = OAuthOptions::new(url.clone());
    options.vault = Arc::new(vault()?);
    called.clone_into(&mut options.server_name);
    options.sign_in_hint = advice(called, account, None);
    if let Some(account) = account {
        account.clone_into(&mut options.account);
    }
    Ok(options)
}

/// The command that signs in.
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

/// The registered client, with its secrets.
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

fn sign_in_method(grant: &config::Grant) -> SignInMethod {
    SignInMethod::Provider(Arc::new(match grant.clone() {
        config::Grant::User => return SignInMethod::stored_tokens_only(),
        config::Grant::ClientCredentials => return SignInMethod::Grant(Grant::ClientCredentials),
        config::Grant::Workload { assertion } => FetchedAssertion {
            assertion,
            provider: None,
        },
        config::Grant::Enterprise {
            token_endpoint,
            client_id,
            id_token,
        } => FetchedAssertion {
            assertion: id_token,
            provider: Some((token_endpoint, client_id)),
        },
    }))
}

/// An assertion that is fetched each time that it is needed, because it expires soon.
#[derive(Debug)]
struct FetchedAssertion {
    assertion: Value,
    /// The token endpoint of the identity provider, and our client id there.
    provider: Option<(String, String)>,
}

impl GrantProvider for FetchedAssertion {
    fn grant(&self) -> Boxed<Result<Grant, AuthError>> {
        let (assertion, provider) = (self.assertion.clone(), self.provider.clone());
        Box::pin(async move {
            let assertion = resolved(&assertion).await;
            let assertion = assertion.map_err(|error| AuthError::Page(error.to_string()))?;
            Ok(match provider {
                None => Grant::Workload { assertion },
                Some((token_endpoint, client_id)) => Grant::Enterprise {
                    token_endpoint,
                    client_id,
                    id_token: assertion,
                },
            })
        })
    }
}

/// The identity to use at the server; `None` for that of the user of this machine.
fn identity(
    sign_in: &SignIn,
    called: &str,
    callbacks: Option<&SignInCallbacks>,
) -> Option<Identity> {
    Some(match sign_in.identity.clone() {
        config::Identity::Shared => return None,
        config::Identity::User => {
            let (called, account) = (called.to_owned(), sign_in.account.clone());
            let (callbacks, port) = (callbacks.cloned(), sign_in.callback_port);
            Identity::User(Arc::new(move |principal, options| {
                options.sign_in_hint = advice(&called, account.as_deref(), Some(principal));
                let question = confirmation_question(principal, &called);
                let callbacks = callbacks.as_ref();
                options.invitation_agent =
                    callbacks.map(|one| client_user_agent(one, port, Some(question)));
            }))
        }
        config::Identity::Exchange { audience } => Identity::Exchange { audience },
        config::Identity::Forward { audience } => Identity::Forward { audience },
    })
}

/// The question to a user who signed in for a caller: the caller may have sent the link to another
/// person.
fn confirmation_question(principal: &Principal, called: &str) -> String {
    let principal = principal.as_str();
    format!(
        "Calls of {principal:?} to the server {called:?} will be made with the account that you have \
         just signed in to. Go on only if {principal:?} is you; if another person gave you the link, \
         close this page."
    )
}

/// A word quoted for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@+,=".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The vault of this user.
pub(super) fn vault() -> anyhow::Result<UserVault> {
    let paths = DataPaths::from_environment(|name| std::env::var_os(name))
        .context("there is no directory for tokens; set PLEXUS_DATA_DIR")?;
    Ok(UserVault {
        folder: paths.directory.join("auth"),
        opened: Arc::default(),
    })
}

/// A vault whose key is read when it is first needed, and created when something is first stored.
#[derive(Debug, Clone)]
pub(super) struct UserVault {
    folder: PathBuf,
    opened: Arc<OnceCell<FileVault>>,
}

impl UserVault {
    /// The stored tokens of all accounts.
    pub(super) async fn list(&self) -> Result<Vec<StoredTokens>, VaultError> {
        match self.open_existing().await? {
            Some(vault) => vault.list().await,
            None => Ok(Vec::new()),
        }
    }

    async fn open_existing(&self) -> Result<Option<&FileVault>, VaultError> {
        if self.opened.get().is_none() {
            let Some(key) = key::find(&self.folder).await? else {
                return Ok(None);
            };
            self.remember(key);
        }
        Ok(self.opened.get())
    }

    async fn open_or_create(&self) -> Result<FileVault, VaultError> {
        let make = || async {
            let key = key::find_or_make(&self.folder).await?;
            Ok(FileVault::new(&self.folder, key))
        };
        self.opened.get_or_try_init(make).await.cloned()
    }

    fn remember(&self, key: VaultKey) {
        // If another task was first, it found the same key.
        drop(self.opened.set(FileVault::new(&self.folder, key)));
    }
}

impl Vault for UserVault {
    fn read(&self, key: &str) -> Boxed<Result<StoredTokens, VaultError>> {
        let (vault, key) = (self.clone(), key.to_owned());
        Box::pin(async move {
            match vault.open_existing().await? {
                Some(vault) => vault.read(&key).await,
                None => Ok(StoredTokens::default()),
            }
        })
    }

    fn lock(&self, key: &str) -> Boxed<Result<Box<dyn LockedTokens>, VaultError>> {
        let (vault, key) = (self.clone(), key.to_owned());
        Box::pin(async move { vault.open_or_create().await?.lock(&key).await })
    }
}
