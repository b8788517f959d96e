//! URI templates of servers: parsing and matching never panic and never take long.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plexus_mcp_core::UriTemplate;

fuzz_target!(|input: (&str, &str)| {
    let (template, uri) = input;
    let Ok(parsed) = UriTemplate::parse(template) else {
        return;
    };
    let _ = parsed.matches(uri);
    // A template without variables matches itself only.
    if !template.contains('{') {
        assert_eq!(parsed.matches(uri).is_some(), template == uri);
    }
});
