//! `WWW-Authenticate` headers of servers: reading them never panics, and what is empty has no members.

#![no_main]

use http::header::{HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use libfuzzer_sys::fuzz_target;
use plexus_mcp_oauth::Challenges;

fuzz_target!(|input: &[u8]| {
    let mut headers = HeaderMap::new();
    for line in input.split(|byte| *byte == b'\n') {
        if let Ok(value) = HeaderValue::from_bytes(line) {
            headers.append(WWW_AUTHENTICATE, value);
        }
    }
    read(&Challenges::of(&headers));
    if let Ok(text) = str::from_utf8(input) {
        read(&Challenges::parse(text));
    }
});

fn read(challenges: &Challenges) {
    let found = [
        challenges.resource_metadata().is_some(),
        challenges.scopes().is_some(),
        challenges.error().is_some(),
        challenges.wants_dpop(),
    ];
    if challenges.is_empty() {
        assert_eq!(found, [false; 4]);
    }
}
