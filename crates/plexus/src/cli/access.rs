//! Access control for HTTP.

use clap::Args;
use plexus_mcp_config::{self as config, TokenIssuer};

/// Access control for HTTP. More can be set under `[access]` in plexus.toml.
#[derive(Debug, Clone, Args)]
pub(crate) struct AccessArgs {
    /// Require a token from every caller, on a loopback address as well.
    ///
    /// On other addresses a token is always required.
    #[arg(long)]
    require_token: bool,

    /// Accept tokens of this authorization server.
    ///
    /// Its tokens are verified by their signature. This option may be repeated.
    #[arg(long, value_name = "URL")]
    issuer: Vec<String>,

    /// The URL under which clients know this server, and for which tokens are issued.
    ///
    /// On a loopback address, the default is the URL that is served.
    #[arg(long, value_name = "URL")]
    resource: Option<String>,

    /// Require tokens to have this scope.
    ///
    /// This option may be repeated.
    #[arg(long, value_name = "SCOPE")]
    require_scope: Vec<String>,
}

impl AccessArgs {
    /// Overrides the settings of the files.
    pub(crate) fn apply_to(&self, settings: &mut config::Access) {
        settings.required |= self.require_token;
        if !self.issuer.is_empty() {
            settings.issuers = self.issuer.iter().map(TokenIssuer::new).collect();
        }
        if let Some(resource) = &self.resource {
            settings.resource = Some(resource.clone());
        }
        if !self.require_scope.is_empty() {
            settings.scopes.clone_from(&self.require_scope);
        }
    }

    /// Each flag, and whether it was given.
    pub(super) fn given(&self) -> [(&'static str, bool); 4] {
        [
            ("--require-token", self.require_token),
            ("--issuer", !self.issuer.is_empty()),
            ("--resource", self.resource.is_some()),
            ("--require-scope", !self.require_scope.is_empty()),
        ]
    }
}
