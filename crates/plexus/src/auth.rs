//! `plexus auth`: signing in to servers.

mod broker;
mod browser;
mod callback;
mod key;
mod show;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use http::Uri;
use plexus_client::auth::rules::{Client, Secret};
use plexus_client::auth::{Holding, Means, OAuth, OAuthOptions};
use plexus_hub::config::{self, Grant, Identity, Kind, ServerEntry, SignIn};
use plexus_service::Principal;

use broker::{DEFAULT_ACCOUNT, advice, options, vault};
pub(crate) use broker::{authorize, authorize_entry};
use browser::Browser;
pub(crate) use callback::Landing;

use crate::control;
use crate::data;
use crate::named::is_address;
use crate::output::print;
use crate::runtime::on_runtime;
use crate::signals::Signals;
use crate::surroundings::{environment, locations};
use crate::trust::Approvals;

pub(crate) const EXAMPLES: &str = "\
Examples:
  Sign in to a server that is configured, and to one that is not:
    plexus auth login github
    plexus auth login https://example.com/mcp

  Sign in with a second account, which a server uses whose definition has \"account\": \"work\":
    plexus auth login github --account work

  Where there is no browser: open the page elsewhere, and paste the address it leads back to:
    plexus auth login github --no-browser

  Call an API with the token, in a script:
    curl -H \"Authorization: Bearer $(plexus auth token github)\" https://example.com/api

Tokens are kept encrypted in the folder that PLEXUS_DATA_DIR names, or where the system has its place
for data. Whatever is renewed is renewed once for all that runs on this machine.";

/// What to do about signing in.
#[derive(Debug, Args)]
pub(crate) struct AuthArgs {
    #[command(subcommand)]
    command: AuthCommand,
}

#[derive(Debug, Subcommand)]
enum AuthCommand {
    /// Sign in to a server.
    Login(LoginArgs),
    /// Give back what was got from a server, and forget it.
    Logout(Whose),
    /// Show where you are signed in. None of it is secret.
    Status {
        /// Print one JSON object instead of text.
        #[arg(long)]
        json: bool,
    },
    /// Print a token that can be used now.
    Token(Whose),
}

/// Whose token it is.
#[derive(Debug, Args)]
struct Whose {
    /// The server: its name in the configuration, or its address.
    #[arg(value_name = "NAME | URL")]
    server: String,
    /// The account, if there are several.
    #[arg(long, value_name = "ACCOUNT")]
    account: Option<String>,
    /// The caller whose token it is, of a server that is used in its callers' own names.
    #[arg(long, value_name = "PRINCIPAL")]
    principal: Option<String>,
}

#[derive(Debug, Args)]
struct LoginArgs {
    #[command(flatten)]
    account: Whose,
    /// Open no browser; print the page's address, and take back the one that it leads to.
    #[arg(long)]
    no_browser: bool,
    /// Come back to this port, where the authorization server insists on one.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Sign in as this client, which somebody registered at the authorization server.
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// The environment variable that holds the client's secret, if it has one.
    #[arg(long, value_name = "VARIABLE", requires = "client_id")]
    client_secret_env: Option<String>,
}

/// A server to sign in to.
struct Server {
    url: Uri,
    sign_in: SignIn,
    principal: Option<Principal>,
    /// What the user called it.
    called: String,
}

impl Server {
    fn account(&self) -> &str {
        self.sign_in.account.as_deref().unwrap_or(DEFAULT_ACCOUNT)
    }

    fn options(&self) -> anyhow::Result<OAuthOptions> {
        let account = self.sign_in.account.as_deref();
        let mut options = options(&self.url, account, &self.called)?;
        if let Some(principal) = &self.principal {
            options.advice = advice(&self.called, account, Some(principal));
            options.principal = principal.clone();
        }
        Ok(options)
    }
}

/// Does it, and says what was done.
pub(crate) fn run(arguments: &AuthArgs) -> anyhow::Result<ExitCode> {
    let ended = on_runtime(async {
        let mut signals = Signals::take().context("cannot wait for signals")?;
        let work = async {
            let said = match &arguments.command {
                AuthCommand::Login(login) => sign_in(login).await?,
                AuthCommand::Logout(account) => sign_out(account).await?,
                AuthCommand::Status { json } => {
                    let mut kept = vault()?.list().await?;
                    kept.retain(|holding| holding.session.is_some());
                    kept.sort_by(|a, b| sorted_by(a).cmp(&sorted_by(b)));
                    show::accounts(&kept, *json)?
                }
                AuthCommand::Token(account) => token(account).await?,
            };
            print(&said)?;
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

fn sorted_by(holding: &Holding) -> (&str, &str, Option<&str>) {
    let Holding {
        server,
        name,
        principal,
        ..
    } = holding;
    (server, name, principal.as_deref())
}

async fn sign_in(arguments: &LoginArgs) -> anyhow::Result<String> {
    let server = named(&arguments.account)?;
    if server.sign_in.grant != Grant::User && server.principal.is_none() {
        bail!(
            "{} needs nobody to sign in: its definition says how tokens are got",
            server.called
        );
    }
    let mut options = server.options()?;
    options.client = client(arguments, &server.sign_in).await?;
    let port = arguments.port.or(server.sign_in.callback_port);
    options.means = Means::Page {
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
        bail!("{} wants nobody to sign in", server.called);
    };
    let session = oauth.sign_in(challenge).await;
    let session = session.with_context(|| format!("not signed in to {}", server.called))?;
    let whose = server.principal.as_ref();
    let whose = whose.map_or_else(|| server.account(), Principal::as_str);
    Ok(show::signed_in(&server.called, whose, &session))
}

async fn sign_out(account: &Whose) -> anyhow::Result<String> {
    let server = named(account)?;
    let oauth = OAuth::new(server.options()?);
    let called = &server.called;
    Ok(if oauth.sign_out().await? {
        format!("signed out of {called}\n")
    } else {
        format!("you were not signed in to {called}\n")
    })
}

async fn token(account: &Whose) -> anyhow::Result<String> {
    let server = named(account)?;
    let options = server.options()?;
    let advice = options.advice.clone();
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

/// The server that somebody named.
fn named(account: &Whose) -> anyhow::Result<Server> {
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
    let url: Uri = url.with_context(|| format!("{called} is no address"))?;
    sign_in.account = account.account.clone().or(sign_in.account);
    let principal = account.principal.clone();
    Ok(Server {
        url,
        sign_in,
        principal: principal.map(Principal::new),
        called,
    })
}

/// The address of a server that is configured, and how it is signed in to.
fn configured(name: &str) -> anyhow::Result<(String, SignIn)> {
    let locations = locations()?;
    let loaded = config::load(&locations, &environment);
    let entry = loaded.servers.iter().find(|entry| entry.name == name);
    let entry = entry.with_context(|| {
        format!("there is no server {name:?}; for those there are: plexus mcp list")
    })?;
    // What came with a project starts nothing before its user says so.
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
            "{} is no server on the web; a program takes its credentials from its environment",
            entry.name
        ),
    }
}
