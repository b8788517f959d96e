//! Messages to the user on standard error.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use plexus_mcp_server::http::HttpOptions;
use plexus_mcp_server::net::BindError;

use crate::VERSION;
use crate::output::say;

/// Prints where HTTP is served, how to connect, and whether a token is required.
pub(crate) fn listening(addresses: &[SocketAddr], options: &HttpOptions, needs_token: bool) {
    for line in addresses
        .iter()
        .flat_map(|&address| listening_lines(address, options, needs_token))
    {
        say(line);
    }
}

/// Explains to a user at a terminal that the program waits for messages.
pub(crate) fn waiting_for_messages() {
    say(format!(
        "plexus {VERSION} serves MCP on standard input and output, one JSON message a line; \
         Ctrl-D ends it"
    ));
}

/// Prints the URL of the sign-in page.
pub(crate) fn sign_in(url: &str, is_open: bool) {
    if is_open {
        say(format!(
            "a browser shows the page to sign in; if not, open: {url}"
        ));
    } else {
        say(format!(
            "to sign in, open this page; if it leads to an address that cannot be shown, paste that \
             address here:\n{url}"
        ));
    }
}

/// Prints what to do with a token that was just created.
pub(crate) fn token_made(name: &str) {
    say(format!(
        "this is shown once; {name} sends it as the header 'Authorization: Bearer TOKEN'"
    ));
}

/// Prints a warning.
pub(crate) fn problem(problem: &dyn std::fmt::Display) {
    say(format!("warning: {problem}"));
}

/// Prints an error, and a tip if there is one.
pub(crate) fn failure(error: &anyhow::Error) {
    say(format!("error: {error:#}"));
    if let Some(tip) = error.downcast_ref().and_then(bind_tip) {
        say(format!("\n  tip: {tip}"));
    }
}

/// Prints the error text of a failed tool.
pub(crate) fn refusal(text: &str) {
    let text = match text.trim_end() {
        "" => "the tool failed, and does not say why",
        text => text,
    };
    say(format!("error: {text}"));
}

fn listening_lines(address: SocketAddr, options: &HttpOptions, needs_token: bool) -> Vec<String> {
    let url = |address: SocketAddr, path: &str| format!("http://{address}{path}");
    let mut lines = vec![format!(
        "plexus {VERSION} listening on {}",
        url(address, &options.path)
    )];
    if let Some(sse) = &options.sse {
        lines.push(format!("  HTTP+SSE: {}", url(address, &sse.stream)));
    }
    let local_url = url(reachable(address), &options.path);
    let header = if needs_token {
        " --header 'Authorization: Bearer TOKEN'"
    } else {
        ""
    };
    lines.push(format!(
        "  connect: claude mcp add --transport http plexus {local_url}{header}"
    ));
    if needs_token {
        lines
            .push("  every request needs a token; to create one: plexus token add NAME".to_owned());
    }
    lines
}

/// The address at which a client on this machine reaches a listener on `address`.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

fn bind_tip(error: &BindError) -> Option<String> {
    let reason = std::error::Error::source(error)?.downcast_ref::<io::Error>()?;
    let ip = error.address.ip();
    let any_port = SocketAddr::new(ip, 0);
    match reason.kind() {
        io::ErrorKind::AddrInUse => Some(format!(
            "another program, perhaps another plexus, listens there; name another port, or use \
             '--http {any_port}' for one that is free"
        )),
        io::ErrorKind::PermissionDenied => Some(format!(
            "ports below 1024 are often reserved; name a higher one, or use '--http {any_port}' \
             for one that is free"
        )),
        io::ErrorKind::AddrNotAvailable => Some(format!(
            "this machine does not have the address {ip}; '--http 127.0.0.1:{}' serves this \
             machine only",
            error.address.port()
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use plexus_mcp_server::http::SsePaths;

    use super::*;

    fn lines_for(address: &str, options: &HttpOptions) -> Vec<String> {
        let address: SocketAddr = address.parse().unwrap();
        listening_lines(address, options, !address.ip().is_loopback())
    }

    #[test]
    fn on_loopback_there_is_nothing_to_warn_of() {
        let lines = lines_for("127.0.0.1:4445", &HttpOptions::default());
        let url = "http://127.0.0.1:4445/mcp";
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0], format!("plexus {VERSION} listening on {url}"));
        assert!(lines[1].ends_with(&format!("claude mcp add --transport http plexus {url}")));
    }

    #[test]
    fn elsewhere_callers_are_asked() {
        for (address, local_url) in [("0.0.0.0:80", "127.0.0.1:80"), ("[::]:80", "[::1]:80")] {
            let lines = lines_for(address, &HttpOptions::default());
            assert!(lines[0].ends_with(&format!("listening on http://{address}/mcp")));
            let connect =
                format!("plexus http://{local_url}/mcp --header 'Authorization: Bearer TOKEN'");
            assert!(lines[1].ends_with(&connect), "{}", lines[1]);
            assert!(lines[2].contains("needs a token"));
        }
    }

    #[test]
    fn every_endpoint_is_named() {
        let mut options = HttpOptions::default();
        options.path = "/here".to_owned();
        options.sse = Some(SsePaths::default());
        let lines = lines_for("[::1]:9", &options);
        assert!(lines[0].ends_with("http://[::1]:9/here"));
        assert!(lines[1].ends_with("http://[::1]:9/sse"));
    }
}
