//! Gateways that start gateways. A server whose program runs `plexus serve` on the configuration that
//! defines the server would start itself again and again.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use anyhow::bail;
use http::Uri;
use http::uri::Scheme;
use plexus_mcp_client::Program;
use plexus_mcp_config::{Kind, Locations, Scope, ServerEntry, Text};
use plexus_mcp_server::http::HttpOptions;

use crate::process_env::environment;

/// The variable by which a gateway tells the programs that it starts which configurations the
/// gateways above them use.
pub(crate) const VARIABLE: &str = "PLEXUS_SERVE_CHAIN";
/// How many gateways may be nested.
const MAX_DEPTH: usize = 5;

/// The configurations of the gateways that this process was started by, the outermost first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ServeChain(Vec<String>);

impl ServeChain {
    /// The gateways above this process.
    pub(crate) fn of_process() -> Self {
        let written = environment(VARIABLE).unwrap_or_default();
        let known = written.split(',').filter(|link| !link.is_empty());
        Self(known.map(str::to_owned).collect())
    }

    /// Checks that a gateway on the configuration at `locations` may start.
    ///
    /// # Errors
    /// A gateway above it uses the same configuration, or there are too many above it.
    pub(crate) fn check(&self, locations: &Locations) -> anyhow::Result<()> {
        if self.0.contains(&link(locations)) {
            bail!(
                "this gateway was started by a server entry of its own configuration, and would \
                 start itself in a loop; remove that entry: 'plexus doctor' names it"
            );
        }
        if self.0.len() >= MAX_DEPTH {
            bail!(
                "{MAX_DEPTH} gateways have started each other already; remove the server entry \
                 that runs 'plexus serve'"
            );
        }
        Ok(())
    }

    /// The chain for the programs that a gateway on the configuration at `locations` starts, as the
    /// value of [`VARIABLE`].
    pub(crate) fn below(&self, locations: &Locations) -> String {
        let mut links = self.0.clone();
        links.push(link(locations));
        links.join(",")
    }
}

/// Where a gateway serves HTTP. A server with this address is the gateway itself, whose lists would
/// have their own entries again and again.
#[derive(Debug, Clone)]
pub(crate) struct OwnEndpoint {
    address: SocketAddr,
    paths: Vec<String>,
}

impl OwnEndpoint {
    pub(crate) fn new(address: SocketAddr, options: &HttpOptions) -> Self {
        let mut paths = vec![options.path.clone()];
        paths.extend(options.sse.iter().map(|sse| sse.stream.clone()));
        Self { address, paths }
    }

    /// Why a server cannot be used, if it is at this address.
    pub(crate) fn loop_in(&self, entry: &ServerEntry) -> Option<String> {
        let (Kind::Http { url, .. } | Kind::Sse { url, .. }) = &entry.kind else {
            return None;
        };
        let remove = Program::new("plexus").args(["mcp", "remove", &entry.name]);
        self.is_at(url.expanded()).then(|| {
            format!(
                "this address is that of the gateway itself, which would list its own tools again \
                 and again; to remove it: {remove}"
            )
        })
    }

    fn is_at(&self, url: &str) -> bool {
        let Ok(url) = url.parse::<Uri>() else {
            return false;
        };
        let own = self.address.ip();
        let host = url.host().unwrap_or_default();
        let is_here = if host.eq_ignore_ascii_case("localhost") {
            own.is_loopback() || own.is_unspecified()
        } else {
            let host = host.trim_matches(['[', ']']).parse::<IpAddr>();
            host.is_ok_and(|ip| ip == own || own.is_unspecified() && ip.is_loopback())
        };
        is_here
            && url.scheme() == Some(&Scheme::HTTP)
            && url.port_u16().unwrap_or(80) == self.address.port()
            && self.paths.iter().any(|path| path == url.path())
    }
}

/// Why a server cannot be used, if its program runs `plexus serve` on the configuration that defines
/// it. A shell or another program in between is only noticed when it starts the gateway.
pub(crate) fn loop_in(entry: &ServerEntry) -> Option<String> {
    let Kind::Stdio {
        command,
        args,
        env,
        cwd,
    } = &entry.kind
    else {
        return None;
    };
    // A file that the command line names is not read by a gateway without that command line.
    let is_elsewhere = entry.source.scope == Scope::Explicit
        || cwd.is_some()
        || env
            .iter()
            .any(|(name, _)| matches!(name.as_str(), "HOME" | "XDG_CONFIG_HOME"));
    let words = std::iter::once(command).chain(args).map(Text::expanded);
    let mut behind = words.skip_while(|word| !is_plexus(word)).skip(1);
    if is_elsewhere || behind.find(|word| !word.starts_with('-')) != Some("serve") {
        return None;
    }
    let remove = Program::new("plexus").args(["mcp", "remove", &entry.name]);
    Some(format!(
        "it runs 'plexus serve' on the configuration that defines it, and would start itself in a \
         loop; to remove it: {remove}"
    ))
}

/// Whether a word of a command line names this program, or the package that has it.
fn is_plexus(word: &str) -> bool {
    let file = Path::new(word).file_stem().unwrap_or_default();
    let file = file.to_string_lossy();
    let name = file.split('@').next().unwrap_or_default();
    let own = std::env::current_exe().ok();
    let own = own.as_deref().and_then(Path::file_stem);
    matches!(name, "plexus" | "plexus-mcp") || own.is_some_and(|own| own.to_string_lossy() == name)
}

/// Identifies a configuration.
fn link(locations: &Locations) -> String {
    let Locations {
        explicit,
        project_dir,
        home,
        config_dir,
    } = locations;
    let mut hasher = DefaultHasher::new();
    (explicit, project_dir, home, config_dir).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use plexus_mcp_config::Source;

    use super::*;

    fn entry(command: &str, args: &[&str]) -> ServerEntry {
        let kind = Kind::Stdio {
            command: Text::literal(command),
            args: args.iter().map(|arg| Text::literal(*arg)).collect(),
            env: Vec::new(),
            cwd: None,
        };
        ServerEntry::new("x", Source::new(Scope::User, "/home/ada/.mcp.json"), kind)
    }

    #[test]
    fn programs_that_serve_are_recognised() {
        let loops: [(&str, &[&str]); 4] = [
            ("plexus", &["serve"]),
            ("/usr/bin/plexus", &["serve", "--stdio"]),
            ("npx", &["-y", "plexus-mcp@1.2.0", "serve"]),
            ("uvx", &["plexus-mcp", "serve"]),
        ];
        for (command, args) in loops {
            assert!(
                loop_in(&entry(command, args)).is_some(),
                "{command} {args:?}"
            );
        }
        let others: [(&str, &[&str]); 4] = [
            ("plexus", &["bridge", "serve"]),
            ("serve", &["plexus"]),
            ("npx", &["-y", "plexus-tools", "serve"]),
            ("node", &["serve.js"]),
        ];
        for (command, args) in others {
            assert!(
                loop_in(&entry(command, args)).is_none(),
                "{command} {args:?}"
            );
        }
    }

    #[test]
    fn the_address_of_a_gateway_is_recognised() {
        let own = |address: &str| {
            let options = HttpOptions::default();
            OwnEndpoint::new(address.parse().unwrap(), &options)
        };
        for (address, url, expected) in [
            ("127.0.0.1:4445", "http://127.0.0.1:4445/mcp", true),
            ("127.0.0.1:4445", "http://LOCALHOST:4445/mcp", true),
            ("[::1]:4445", "http://[::1]:4445/mcp", true),
            ("0.0.0.0:80", "http://127.0.0.1/mcp", true),
            ("127.0.0.1:4445", "http://127.0.0.1:4446/mcp", false),
            ("127.0.0.1:4445", "http://127.0.0.1:4445/other", false),
            ("127.0.0.1:443", "https://127.0.0.1:443/mcp", false),
            ("127.0.0.1:4445", "http://a.example:4445/mcp", false),
        ] {
            assert_eq!(own(address).is_at(url), expected, "{address} {url}");
        }
    }

    #[test]
    fn a_configuration_is_served_once_in_a_chain() {
        let locations = |project: &str| Locations::of(project, &|_| None);
        let chain = ServeChain::default();
        assert!(chain.check(&locations("/a")).is_ok());
        let below = ServeChain(vec![chain.below(&locations("/a"))]);
        assert!(below.check(&locations("/a")).is_err());
        assert!(below.check(&locations("/b")).is_ok());
        let deep = ServeChain(vec![String::new(); MAX_DEPTH]);
        assert!(deep.check(&locations("/b")).is_err());
    }
}
