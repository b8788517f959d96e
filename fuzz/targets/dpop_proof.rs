//! Proofs of possession: verification never panics, and accepts nothing that is not signed.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plexus_mcp_oauth::dpop::{ProofRequest, verify_proof};

const NOW: u64 = 1_800_000_000;

fuzz_target!(|input: &[u8]| {
    let Ok(proof) = str::from_utf8(input) else {
        return;
    };
    for (token, nonce) in [(None, None), (Some("token"), Some("nonce"))] {
        let request = ProofRequest {
            method: "POST",
            url: "https://s.example/mcp",
            token,
            nonce,
        };
        // A proof with its own key is valid for this method, this address and this time only.
        if verify_proof(proof, request, NOW).is_ok() {
            let other = ProofRequest {
                method: "GET",
                ..request
            };
            assert!(verify_proof(proof, other, NOW).is_err());
            assert!(verify_proof(proof, request, NOW + 1_000_000).is_err());
        }
    }
});
