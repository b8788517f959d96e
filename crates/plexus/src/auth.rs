//! `plexus auth`: signing in to servers.

mod broker;
mod browser;
mod callback_listener;
mod key;
mod show;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use http::Uri;
use plexus_mcp_client::auth::rules::{Client, Secret};
use plexus_mcp_client::auth::{OAuth, OAuthOptions, SignInMethod, StoredTokens};
use plexus_mcp_config::{self as config, Grant, Identity, Kind, ServerEntry, SignIn};
use plexus_mcp_core::Principal;

use broker::{DEFAULT_ACCOUNT, advice, options, vault};
pub(crate) use broker::{authorize, authorize_entry};
use browser::Browser;
pub(crate) use callback_listener::SignInCallbacks;

use crate::control;
use crate::data;
use crate::named::is_address;
use crate::output::print;
use crate::process_env::{environment, locations};
use crate::runtime::on_runtime;
use crate::signals::Signals;
use crate::trust::Approvals;

pub(crate) const EXAMPLES: &str = "\
Examples:
  Sign in to a configured server, and to any other:
    plexus auth login github
    plexus auth login https://example.com/mcp

  Sign in with a second account, for servers whose definition has \"account\": \"work\":
    plexus auth login github --account work

  Without a browser: open the page elsewhere, and paste the URL of the redirect:
    plexus auth login github --no-browser

  Call an API with the token, in a script:
    curl -H \"Authorization: Bearer $(plexus auth token github)\" https://example.com/api

Tokens are stored encrypted in the folder that PLEXUS_DATA_DIR names, by default the system's data
directory. All Plexus processes of this user share them, and refresh an expired token only once.";

/// Arguments of `plexus auth`.
#[derive(Debug, Args)]
pub(crate) struct AuthArgs {
    #[command(subcommand)]
    command: AuthCommand,
}

#[derive(Debug, Subcommand)]
enum AuthCommand {
    /// Sign in to a server.
    Login(LoginArgs),
    /// Revoke the tokens for a server, and delete them.
    Logout(AccountArgs),
    /// Show where you are signed in. No secrets are shown.
    Status {
        /// Print one JSON object instead of text.
        #[arg(long)]
        json: bool,
    },
    /// Print a valid access token.
    Token(AccountArgs),
}

/// The account of a command.
#[derive(Debug, Args)]
struct AccountArgs {
    /// The server: its name in the configuration, or its URL.
    #[arg(value_name = "NAME | URL")]
    server: String,
    /// The account, if there are several.
    #[arg(long, value_name = "ACCOUNT")]
    account: Option<String>,
    /// The caller that the token belongs to, for a server that callers use with their own identity.
    #[arg(long, value_name = "PRINCIPAL")]
    principal: Option<String>,
}

#[derive(Debug, Args)]
struct LoginArgs {
    #[command(flatten)]
    account: AccountArgs,
    /// Open no browser; print the URL of the page, and read the URL of the redirect from standard
    /// input.
    #[arg(long)]
    no_browser: bool,
    /// Use this port for the redirect URI, if the authorization server requires a fixed one.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Sign in with this client id, which is registered at the authorization server.
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// The environment variable with the client's secret, if it has one.
    #[arg(long, value_name = "VARIABLE", requires = "client_id")]
    client_secret_env: Option<String>,
}

/// A server to sign in to.
struct SignInServer {
    url: Uri,
    sign_in: SignIn,
    principal: Option<Principal>,
    /// The name that the user gave.
    called: String,
}

impl SignInServer {
    fn account(&self) -> &str {
        self.sign_in.account.as_deref().unwrap_or(DEFAULT_ACCOUNT)
    }

    fn options(&self) -> anyhow::Result<OAuthOptions> {
        let account = self.sign_in.account.as_deref();
        let mut options = options(&self.url, account, &self.called)?;
        if let Some(principal) = &self.principal {
            options.sign_in_hint = advice(&self.called, account, Some(principal));
            options.principal = principal.clone();
        }
        Ok(options)
    }
}

/// Runs `plexus auth`.
pub(crate) fn run(arguments: &AuthArgs) -> anyhow::Result<ExitCode> {
    let ended = on_runtime(async {
        let mut signals = Signals::take().context("cannot wait for signals")?;
        let work = async {
            let text = match &arguments.command {
                AuthCommand::Login(login) => sign_in(login).await?,
                AuthCommand::Logout(account) => sign_out(account).await?,
                AuthCommand::Status { json } => {
                    let mut entries = vault()?.list().await?;
                    entries.retain(|holding| holding.session.is_some());
                    entries.sort_by(|a, b| sorted_by(a).cmp(&sorted_by(b)));
                    show::accounts(&entries, *json)?
                }
                AuthCommand::Token(account) => token(account).await?,
            };
            print(&text)?;
            Ok(ExitCode::SUCCESS)
        };
        tokio::select! {
            ended = work => ended,
            signal = signals.next() => Ok(signal.exit_code()),
        }
    })?;
    if let AuthCommand::Login(login) = &arguments.command
        && ended == ExitCode::SUCCESS
    {
        control::connect_signed_in(&login.account.server);
    }
    Ok(ended)
}

fn sorted_by(holding: &StoredTokens) -> (&str, &str, Option<&str>) {
    let StoredTokens {
        server,
        name,
        principal,
        ..
    } = holding;
    (server, name, principal.as_deref())
}

async fn sign_in(arguments: &LoginArgs) -> anyhow::Result<String> {
    let server = find_server(&arguments.account)?;
    if server.sign_in.grant != Grant::User && server.principal.is_none() {
        bail!(
            "{} needs no sign-in: its definition says how tokens are obtained",
            server.called
        );
    }
    let mut options = server.options()?;
    options.client = client(arguments, &server.sign_in).await?;
    let port = arguments.port.or(server.sign_in.callback_port);
    options.method = SignInMethod::Page {
        agent: Some(Arc::new(Browser {
            port,
            opens: !arguments.no_browser,
        })),
        client_name: "Plexus".to_owned(),
        metadata_url: None,
    };
    let oauth = OAuth::new(options);
    let challenge = oauth.challenge().await;
    let challenge = challenge.with_context(|| format!("{} cannot be asked", server.called))?;
    let Some(challenge) = challenge else {
        bail!("{} requires no sign-in", server.called);
    };
    let session = oauth.sign_in(challenge).await;
    let session = session.with_context(|| format!("not signed in to {}", server.called))?;
    let account_name = server.principal.as_ref();
    let account_name = account_name.map_or_else(|| server.account(), Principal::as_str);
    Ok(show::signed_in(&server.called, account_name, &session))
}

async fn sign_out(account: &AccountArgs) -> anyhow::Result<String> {
    let server = find_server(account)?;
    let oauth = OAuth::new(server.options()?);
    let called = &server.called;
    Ok(if oauth.sign_out().await? {
        format!("signed out of {called}\n")
    } else {
        format!("you were not signed in to {called}\n")
    })
}

async fn token(account: &AccountArgs) -> anyhow::Result<String> {
    let server = find_server(account)?;
    let options = server.options()?;
    let advice = options.sign_in_hint.clone();
    let session = OAuth::new(options).session().await?;
    let session = session.with_context(|| format!("you are not signed in; {advice}"))?;
    Ok(format!("{}\n", session.access_token.expose()))
}

async fn client(arguments: &LoginArgs, sign_in: &SignIn) -> anyhow::Result<Option<Client>> {
    let Some(client_id) = arguments.client_id.clone() else {
        return broker::client(sign_in).await;
    };
    let secret = match &arguments.client_secret_env {
        Some(name) => {
            let value = environment(name);
            Some(value.with_context(|| format!("the environment variable {name} is not set"))?)
        }
        None => None,
    };
    Ok(Some(Client {
        client_id,
        client_secret: secret.map(Secret::new),
        key: None,
        method: None,
        issuer: None,
    }))
}

/// The server that the user named.
fn find_server(account: &AccountArgs) -> anyhow::Result<SignInServer> {
    let called = account.server.clone();
    let (address, mut sign_in) = if is_address(&called) {
        (called.clone(), SignIn::default())
    } else {
        configured(&called)?
    };
    if account.principal.is_some() && sign_in.identity != Identity::User {
        bail!(
            "{called} is used with one account for all; --principal is for servers whose definition \
             has \"identity\": \"user\""
        );
    }
    let url = address.parse();
    let url: Uri = url.with_context(|| format!("{called} is not a URL"))?;
    sign_in.account = account.account.clone().or(sign_in.account);
    let principal = account.principal.clone();
    Ok(SignInServer {
        url,
        sign_in,
        principal: principal.map(Principal::new),
        called,
    })
}

/// The URL of a configured server, and how to sign in to it.
fn configured(name: &str) -> anyhow::Result<(String, SignIn)> {
    let locations = locations()?;
    let loaded = config::load(&locations, &environment);
    let entry = loaded.servers.iter().find(|entry| entry.name == name);
    let entry = entry.with_context(|| {
        format!("there is no server {name:?}; to list all servers: plexus mcp list")
    })?;
    // A project's server must not start programs before the user trusts it.
    if entry.sign_in.needs_programs() {
        let approvals = Approvals::read(&data::directory()?)?;
        if !approvals.admit(&locations.project_dir, entry) {
            bail!(
                "{name} fetches secrets with a program, and is not trusted yet: plexus trust {name}"
            );
        }
    }
    Ok((address_of(entry)?, entry.sign_in.clone()))
}

fn address_of(entry: &ServerEntry) -> anyhow::Result<String> {
    match &entry.kind {
        Kind::Http { url, .. } | Kind::Sse { url, .. } => Ok(url.expanded().to_owned()),
        _ => bail!(
            "{} is not a remote server; a program takes its credentials from its environment",
            entry.name
        ),
    }
}
