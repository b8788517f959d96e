//! `plexus healthcheck`, which containers run.

use std::net::TcpListener;

use crate::http::serve;
use crate::process::{Plexus, ProcessOutput};

fn check(arguments: &[&str]) -> ProcessOutput {
    Plexus::start(&[&["healthcheck"], arguments].concat()).end()
}

#[test]
fn a_gateway_that_answers_is_healthy() {
    let (_plexus, address, _) = serve(&[]);
    for path in ["", "/", "/mcp", "/health?verbose"] {
        let ended = check(&[&format!("http://{address}{path}")]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(ended.stdout, [format!("http://{address}/health answers")]);
    }
}

#[test]
fn silence_is_not_healthy() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let ended = check(&[&format!("http://{address}")]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr[0].contains("does not answer"), "{ended:?}");
}

#[test]
fn an_address_without_a_scheme_is_wrong_usage() {
    for url in ["localhost:4445", "ftp://localhost", "/health"] {
        let ended = check(&[url]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr[0].contains("http://"), "{ended:?}");
    }
}
