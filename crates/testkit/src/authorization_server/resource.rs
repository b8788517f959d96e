//! A resource server that requires tokens.

use serde_json::json;

use super::endpoints::NONCE;
use super::{SharedState, bearer};
use crate::server::{Received, Reply};

/// The requirements of a resource server besides a token.
#[derive(Debug, Clone, Copy, Default)]
pub struct TokenRequirements {
    /// Tokens must be bound to a key.
    pub dpop: bool,
    /// Calls need the scope `more`, in addition to the scope for everything else.
    pub more_for_calls: bool,
}

pub(super) fn guard(
    shared: &SharedState,
    requirements: TokenRequirements,
    request: &Received,
) -> Option<Reply> {
    let origin = format!("http://{}", request.header("host").unwrap_or_default());
    let resource = format!("{origin}/mcp");
    let metadata = format!("{origin}/.well-known/oauth-protected-resource/mcp");
    if request.path == "/.well-known/oauth-protected-resource/mcp" {
        return Some(Reply::json(&json!({
            "resource": resource,
            "authorization_servers": [shared.issuer],
            "dpop_bound_access_tokens_required": requirements.dpop,
            "scopes_supported": ["basic"],
        })));
    }
    let refused = |status, challenge: &str| {
        let challenge = format!(r#"{challenge} resource_metadata="{metadata}""#);
        Reply::status(status)
            .with_header("www-authenticate", &challenge)
            .with_header("dpop-nonce", NONCE)
    };
    let admitted = bearer::admit(
        shared,
        &request.headers,
        &request.method,
        &resource,
        &resource,
    );
    match admitted {
        Err(challenge) if challenge.contains('=') => Some(refused(401, &format!("{challenge},"))),
        Err(challenge) => Some(refused(401, &challenge)),
        Ok(claims) => {
            let scopes = claims.scope.unwrap_or_default();
            let wants_more = requirements.more_for_calls && request.mcp() == "tools/call";
            (wants_more && !scopes.contains("more"))
                .then(|| refused(403, r#"Bearer error="insufficient_scope", scope="more","#))
        }
    }
}
