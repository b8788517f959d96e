//! Who is let in over HTTP.

use clap::Args;
use plexus_hub::config::{self, TokenIssuer};

/// Who is let in over HTTP. More can be said under `[access]` in plexus.toml.
#[derive(Debug, Clone, Args)]
pub(crate) struct AccessArgs {
    /// Ask every caller for a token, on a loopback address as well.
    ///
    /// Elsewhere callers are asked anyway.
    #[arg(long)]
    require_token: bool,

    /// Let in who has a token of this authorization server.
    ///
    /// Its tokens are checked by their signature. This may be repeated.
    #[arg(long, value_name = "URL")]
    issuer: Vec<String>,

    /// The address under which clients know this server, for which tokens are issued.
    ///
    /// On a loopback address it is the one that is served if it is not said.
    #[arg(long, value_name = "URL")]
    resource: Option<String>,

    /// Let in only who has a token that allows this.
    ///
    /// This may be repeated.
    #[arg(long, value_name = "SCOPE")]
    require_scope: Vec<String>,
}

impl AccessArgs {
    /// Puts what is said here over what the files say.
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
