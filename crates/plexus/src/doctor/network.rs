//! Checks of ports, proxies and URLs.

use std::io;
use std::net::TcpListener;

use plexus_mcp_config::{Kind, ServerEntry, Settings};

use super::Finding;
use crate::cli::DEFAULT_ADDRESS;
use crate::process_env::environment;

const PROXIES: [&str; 6] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
];

pub(super) fn check(settings: &Settings) -> Vec<Finding> {
    port(settings).into_iter().chain(proxies()).collect()
}

/// Warns of URLs over which secrets are sent unencrypted.
pub(super) fn check_server(server: &ServerEntry) -> Option<Finding> {
    let (Kind::Http { url, headers } | Kind::Sse { url, headers }) = &server.kind else {
        return None;
    };
    let url: http::Uri = url.expanded().parse().ok()?;
    let host = url.host()?;
    let is_here = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
    if url.scheme_str() != Some("http") || is_here || headers.is_empty() {
        return None;
    }
    let what = format!("its headers are sent to {host} without encryption");
    let finding = Finding::warning("url", what).of(&server.name);
    Some(finding.fix("use https:// if the server has it"))
}

/// Whether the port of `plexus serve` is free.
fn port(settings: &Settings) -> Option<Finding> {
    let address = settings.serve.http.unwrap_or(DEFAULT_ADDRESS);
    let error = TcpListener::bind(address).err()?;
    let finding = match error.kind() {
        io::ErrorKind::AddrInUse if is_ours() => {
            let what = format!("{address} is in use, and a gateway is running: plexus status");
            return Some(Finding::note("port", what));
        }
        io::ErrorKind::AddrInUse => {
            Finding::warning("port", format!("{address} is in use by another program"))
        }
        _ => Finding::warning("port", format!("nothing can listen on {address}: {error}")),
    };
    Some(finding.fix("serve on another port: plexus serve --http 127.0.0.1:0"))
}

/// Whether a gateway is running.
fn is_ours() -> bool {
    #[cfg(unix)]
    let is_running = !crate::control::running().is_empty();
    #[cfg(not(unix))]
    let is_running = false;
    is_running
}

fn proxies() -> Vec<Finding> {
    let set = PROXIES.iter().filter_map(|name| {
        let value = environment(name).filter(|value| !value.trim().is_empty())?;
        let is_address = value
            .parse::<http::Uri>()
            .is_ok_and(|uri| uri.host().is_some());
        Some(if is_address {
            let what = format!("{name} is set: servers on other machines are reached through it");
            Finding::note("proxy", what)
        } else {
            let what = format!("{name} is not the address of a proxy, and is ignored");
            Finding::warning("proxy", what).fix(format!("correct or unset {name}"))
        })
    });
    set.collect()
}
