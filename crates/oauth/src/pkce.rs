use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use crate::ambient::{Ambient, unguessable};
use crate::secret::Secret;

/// What only the one who began a sign-in knows (RFC 7636).
pub fn code_verifier(ambient: &dyn Ambient) -> Secret {
    Secret::new(unguessable(ambient))
}

/// What is shown of `verifier` at the beginning: its S256 challenge.
pub fn code_challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7636, appendix B.
    #[test]
    fn the_challenge_is_that_of_the_standard() {
        assert_eq!(
            code_challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
        );
    }
}
