//! Access control for HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use plexus_mcp_access::{Check, Introspection, Issuer, Options, ResourceServer, TokenFile};
use plexus_mcp_client::auth::rules::Secret;
use plexus_mcp_config::{self as config, SecretReference, TokenIssuer};
use plexus_mcp_hub::secrets;
use plexus_mcp_server::http::{Access, HttpOptions, HttpServer};

use crate::cli::DownstreamArgs;
use crate::data;
use crate::process_env::{environment, locations};

/// Access control for HTTP, before the address is bound.
#[derive(Debug)]
pub(crate) struct HttpAccess {
    settings: config::Access,
    /// Whether a token is required.
    asks: bool,
}

impl HttpAccess {
    /// Combines the settings and the command line.
    ///
    /// # Errors
    /// Other machines could reach the server, and no client can have a token.
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
                "your plexus.toml cannot be read, so access over HTTP cannot be checked; \
                 'plexus doctor' shows the problem"
            );
        }
        arguments.access.apply_to(&mut settings);
        let is_near = address.ip().is_loopback();
        let asks = settings.required || !settings.issuers.is_empty() || !is_near;
        if asks && settings.issuers.is_empty() && tokens()?.list()?.is_empty() {
            bail!(no_token_error(address, is_near));
        }
        if asks && !is_near && !settings.issuers.is_empty() && settings.resource.is_none() {
            bail!(
                "tokens are issued for one address, so the public address of this server must be \
                 known; set it with --resource, as in --resource https://plexus.example.com{}",
                arguments.http_options().path
            );
        }
        Ok(Self { settings, asks })
    }

    /// Whether a token is required.
    pub(crate) fn asks(&self) -> bool {
        self.asks
    }

    /// The same server, with access control.
    ///
    /// # Errors
    /// The settings are invalid, or a secret cannot be fetched.
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
        // The resource must cover the path of the older transport as well. A bare origin has a
        // slash, because clients add one.
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

/// The tokens that `plexus token` creates.
pub(crate) fn tokens() -> anyhow::Result<TokenFile> {
    let folder: PathBuf = data::directory()?.join("access");
    Ok(TokenFile::at(folder.join("tokens.json")))
}

/// The scopes that every token must have, as the settings say.
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

fn no_token_error(address: SocketAddr, is_near: bool) -> String {
    let how = "create a token with 'plexus token add NAME', or name an authorization server with \
               --issuer";
    if is_near {
        return format!("a token is required, and there is none yet; {how}");
    }
    format!(
        "{address} can be reached from other machines, so every request needs a token, \
         and there is none yet; {how}; or serve this machine only, with --http 127.0.0.1:{}",
        address.port()
    )
}
