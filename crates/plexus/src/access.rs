//! Who is let in over HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use plexus_access::{Check, Introspection, Issuer, Options, ResourceServer, TokenFile};
use plexus_client::auth::rules::Secret;
use plexus_hub::config::{self, SecretReference, TokenIssuer};
use plexus_hub::secrets;
use plexus_server::http::{Access, HttpOptions, HttpServer};

use crate::cli::DownstreamArgs;
use crate::data;
use crate::surroundings::{environment, locations};

/// Who is let in, before it is known where.
#[derive(Debug)]
pub(crate) struct Entrance {
    settings: config::Access,
    /// Whether anybody is asked at all.
    asks: bool,
}

impl Entrance {
    /// What the settings and the command line say.
    ///
    /// # Errors
    /// Strangers could reach us, and there is nothing to ask them for.
    pub(crate) fn of(arguments: &DownstreamArgs) -> anyhow::Result<Self> {
        let Some(address) = arguments.address() else {
            let settings = config::Access::default();
            return Ok(Self {
                settings,
                asks: false,
            });
        };
        let mut settings = config::load(&locations()?, &environment).settings.access;
        if settings.is_uncertain {
            bail!(
                "your plexus.toml cannot be read, so that nobody knows whom to let in over HTTP; \
                 'plexus doctor' says what is wrong with it"
            );
        }
        arguments.access.apply_to(&mut settings);
        let is_near = address.ip().is_loopback();
        let asks = settings.required || !settings.issuers.is_empty() || !is_near;
        if asks && settings.issuers.is_empty() && tokens()?.list()?.is_empty() {
            bail!(nobody_can_come_in(address, is_near));
        }
        if asks && !is_near && !settings.issuers.is_empty() && settings.resource.is_none() {
            bail!(
                "tokens are issued for one address, and nothing says under which clients know this \
                 server; say it with --resource, as in --resource https://plexus.example.com{}",
                arguments.http_options().path
            );
        }
        Ok(Self { settings, asks })
    }

    /// Whether anybody is asked who they are.
    pub(crate) fn asks(&self) -> bool {
        self.asks
    }

    /// The same server, which lets in only the right people.
    ///
    /// # Errors
    /// The settings cannot be meant, or a secret is not to be had.
    pub(crate) async fn guard(
        self,
        server: HttpServer,
        options: &HttpOptions,
    ) -> anyhow::Result<HttpServer> {
        if !self.asks {
            return Ok(server);
        }
        let address = server.addresses().first().copied();
        let address = address.context("there is no address to serve")?;
        let access = self.access(address, options).await?;
        Ok(server.admitting(access))
    }

    async fn access(
        self,
        address: SocketAddr,
        http: &HttpOptions,
    ) -> anyhow::Result<Arc<dyn Access>> {
        let settings = self.settings;
        // The path of the older transport must lead to the resource, too. A bare origin has a slash:
        // clients add one.
        let path = if http.sse.is_some() { "/" } else { &http.path };
        let own = || format!("http://{address}{path}");
        let mut options = Options::new(settings.resource.unwrap_or_else(own));
        options.scopes = settings.scopes;
        options.requires_dpop = settings.dpop;
        options.tokens = Some(tokens()?);
        for issuer in &settings.issuers {
            options.issuers.push(checked(issuer).await?);
        }
        Ok(Arc::new(ResourceServer::new(options)?))
    }
}

/// The tokens that `plexus token` makes.
pub(crate) fn tokens() -> anyhow::Result<TokenFile> {
    let folder: PathBuf = data::directory()?.join("access");
    Ok(TokenFile::at(folder.join("tokens.json")))
}

/// What every token must allow, as the settings say.
pub(crate) fn needed_scopes() -> anyhow::Result<Vec<String>> {
    Ok(config::load(&locations()?, &environment)
        .settings
        .access
        .scopes)
}

async fn checked(issuer: &TokenIssuer) -> anyhow::Result<Issuer> {
    let TokenIssuer {
        issuer: name,
        jwks_uri,
        introspection,
        ..
    } = issuer;
    let check = match introspection {
        None => Check::Signature {
            jwks_uri: jwks_uri.clone(),
        },
        Some(client) => Check::Introspection(Introspection {
            endpoint: client.endpoint.clone(),
            client_id: client.client_id.clone(),
            client_secret: secret(&client.client_secret).await?,
        }),
    };
    Ok(Issuer::new(name).checked_by(check))
}

async fn secret(reference: &SecretReference) -> anyhow::Result<Secret> {
    match reference {
        SecretReference::Variable(name) => {
            let value = environment(name);
            let value =
                value.with_context(|| format!("the environment variable {name} is not set"))?;
            Ok(Secret::new(value))
        }
        SecretReference::Source(source) => Ok(Secret::new(secrets::ask(source).await?.expose())),
    }
}

fn nobody_can_come_in(address: SocketAddr, is_near: bool) -> String {
    let how = "make a token with 'plexus token add NAME', or name an authorization server with \
               --issuer";
    if is_near {
        return format!("callers are to be asked for a token, and nobody can have one; {how}");
    }
    format!(
        "{address} can be reached from other machines, so callers are asked for a token, and nobody \
         can have one yet; {how}; or serve this machine only, with --http 127.0.0.1:{}",
        address.port()
    )
}
