use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use crate::ambient::{Ambient, random_token};
use crate::secret::Secret;

/// Creates a PKCE code verifier: a secret that proves that the token request comes from the client that
/// began the sign-in (RFC 7636).
pub fn code_verifier(ambient: &dyn Ambient) -> Secret {
    Secret::new(random_token(ambient))
}

/// The S256 challenge of `verifier`, which is sent when the sign-in begins.
pub fn code_challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7636, appendix B.
    #[test]
    fn the_challenge_matches_the_example_of_the_rfc() {
        assert_eq!(
            code_challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
        );
    }
}
