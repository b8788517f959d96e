//! Metadata of resources and authorization servers: what passes the checks is for this server and this
//! issuer, and the addresses of such documents have the origin of what they describe.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plexus_mcp_oauth::metadata::{ResourceMetadata, ServerMetadata};
use plexus_mcp_oauth::well_known;
use url::Url;

const SERVER: &str = "https://s.example/team/mcp";
const ISSUER: &str = "https://as.example/tenant";

fuzz_target!(|input: &[u8]| {
    let server = Url::parse(SERVER).unwrap();
    if let Ok(resource) = serde_json::from_slice::<ResourceMetadata>(input) {
        if resource.check_resource(&server).is_ok() {
            let url = Url::parse(&resource.resource).unwrap();
            assert_eq!(url.origin(), server.origin());
            assert!(server.path().starts_with(url.path().trim_end_matches('/')));
        }
        let _ = resource.accepts_dpop();
        serde_json::to_string(&resource).unwrap();
    }
    if let Ok(metadata) = serde_json::from_slice::<ServerMetadata>(input) {
        assert_eq!(
            metadata.check_issuer(ISSUER).is_ok(),
            metadata.issuer == ISSUER
        );
        let _ = (metadata.supports_pkce(), metadata.supports_dpop());
        serde_json::to_string(&metadata).unwrap();
    }
    let url = str::from_utf8(input)
        .ok()
        .and_then(|text| Url::parse(text).ok());
    if let Some(url) = url.filter(|url| matches!(url.scheme(), "http" | "https")) {
        let mut places = well_known::of_resource(&url);
        places.extend(well_known::of_issuer(&url));
        places.push(well_known::of_origin(&url));
        for place in places {
            assert_eq!(place.origin(), url.origin(), "{place} of {url}");
        }
    }
});
