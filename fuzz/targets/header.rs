//! Header values: decoding never panics, and decoding an encoded value returns the value.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plexus_mcp_protocol::header::{decode_value, encode_value};

fuzz_target!(|data: &[u8]| {
    if let Ok(decoded) = decode_value(data) {
        // A decoded value can be encoded, and decodes to itself.
        let encoded = encode_value(&decoded);
        assert_eq!(decode_value(encoded.as_bytes()).as_deref(), Ok(&*decoded));
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let encoded = encode_value(text);
        assert!(encoded.bytes().all(|byte| (0x20..0x7f).contains(&byte) || byte == b'\t'));
        assert_eq!(decode_value(encoded.as_bytes()).as_deref(), Ok(text));
    }
});
