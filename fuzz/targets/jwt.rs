//! Tokens and key sets of others: verification never panics, and accepts nothing without a signature
//! of the issuer's key.

#![no_main]

use std::sync::LazyLock;

use jsonwebtoken::jwk::JwkSet;
use libfuzzer_sys::fuzz_target;
use plexus_mcp_oauth::jwt::{Expected, header, verify};
use plexus_mcp_oauth::keys::SigningKey;

const NOW: u64 = 1_800_000_000;

/// The keys of an issuer, whose private key signs nothing.
static KEYS: LazyLock<JwkSet> = LazyLock::new(|| {
    let (key, _) = SigningKey::generate().unwrap();
    let keys = vec![key.public().unwrap()];
    JwkSet { keys }
});

fuzz_target!(|input: &[u8]| {
    let Ok(text) = str::from_utf8(input) else {
        return;
    };
    let expected = Expected::new("https://as.example", &["https://s.example/mcp"]);
    let (token, keys) = text.split_once('\n').unwrap_or((text, ""));
    let _ = header(token);
    assert!(verify(token, &KEYS, &expected, NOW).is_err());
    if let Ok(keys) = serde_json::from_str::<JwkSet>(keys) {
        let _ = verify(token, &keys, &expected, NOW);
    }
});
