//! The digest of a definition.
//!
//! Every struct is destructured without `..`, so that a new field does not compile until it is
//! added here or left out on purpose.

use std::time::Duration;

use http::{HeaderMap, Uri};
use plexus_mcp_protocol::messages::Implementation;
use plexus_mcp_wire::{Limits, Raw};
use sha2::{Digest as _, Sha256};

use super::{Affinity, Definition, HttpTarget, SessionLimits, Target, Timeouts};
use crate::child::Program;

pub(super) fn of(definition: &Definition) -> [u8; 32] {
    let Definition {
        target,
        era,
        capabilities,
        client_info,
        timeouts,
        serialize,
        limits,
        max_listed,
        max_listed_bytes,
        affinity,
        sessions,
        prime_roots,
    } = definition;
    let mut digest = Digest(Sha256::new());
    digest.target(target);
    digest.text(era.map_or("", |era| era.as_str()));
    digest.text(capabilities.raw().as_str());
    digest.client_info(client_info);
    digest.timeouts(timeouts);
    digest.flag(*serialize);
    digest.limits(limits);
    digest.count(*max_listed);
    digest.count(*max_listed_bytes);
    digest.text(match affinity {
        Affinity::Shared => "shared",
        Affinity::Principal => "principal",
    });
    digest.sessions(sessions);
    digest.flag(*prime_roots);
    digest.0.finalize().into()
}

/// A hash of values, each after its length or presence, so that different sequences of values have
/// different input.
struct Digest(Sha256);

impl Digest {
    fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.update(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn count(&mut self, count: usize) {
        self.0.update((count as u64).to_be_bytes());
    }

    fn flag(&mut self, flag: bool) {
        self.0.update([u8::from(flag)]);
    }

    fn duration(&mut self, duration: &Duration) {
        self.0.update(duration.as_nanos().to_be_bytes());
    }

    fn optional(&mut self, bytes: Option<&[u8]>) {
        self.flag(bytes.is_some());
        self.bytes(bytes.unwrap_or_default());
    }

    fn target(&mut self, target: &Target) {
        match target {
            Target::Stdio(program) => {
                self.text("stdio");
                self.program(program);
            }
            Target::Http(target) => {
                self.text("http");
                self.endpoint(target);
            }
            Target::Sse(target) => {
                self.text("sse");
                self.endpoint(target);
            }
        }
    }

    fn program(&mut self, program: &Program) {
        let Program {
            command,
            args,
            cwd,
            env,
            // It depends on the command.
            shown: _,
        } = program;
        self.text(command);
        self.count(args.len());
        for arg in args {
            self.text(arg);
        }
        let cwd = cwd.as_ref().map(|cwd| cwd.as_os_str().as_encoded_bytes());
        self.optional(cwd);
        self.count(env.len());
        for (name, value) in env {
            self.text(name);
            self.optional(value.as_ref().map(String::as_bytes));
        }
    }

    fn endpoint(&mut self, target: &HttpTarget) {
        let HttpTarget {
            url,
            headers,
            authorizer: _,
            identities: _,
        } = target;
        self.url(url);
        self.headers(headers);
    }

    fn url(&mut self, url: &Uri) {
        self.text(&url.to_string());
    }

    fn headers(&mut self, headers: &HeaderMap) {
        self.count(headers.len());
        for (name, value) in headers {
            self.text(name.as_str());
            self.bytes(value.as_bytes());
        }
    }

    fn client_info(&mut self, client_info: &Implementation) {
        // The JSON of client info, as it is sent, has all its members.
        let sent = Raw::encode(client_info).ok();
        self.optional(sent.as_ref().map(Raw::as_bytes));
    }

    fn timeouts(&mut self, timeouts: &Timeouts) {
        let Timeouts {
            connect,
            probe,
            request,
            call,
            call_total,
            linger,
        } = timeouts;
        for timeout in [connect, probe, request, call, call_total, linger] {
            self.duration(timeout);
        }
    }

    fn limits(&mut self, limits: &Limits) {
        let Limits {
            max_bytes,
            max_depth,
            max_batch,
        } = limits;
        for limit in [max_bytes, max_depth, max_batch] {
            self.count(*limit);
        }
    }

    fn sessions(&mut self, sessions: &SessionLimits) {
        let SessionLimits {
            max_sessions,
            max_per_principal,
            idle_timeout,
        } = sessions;
        self.count(*max_sessions);
        self.count(*max_per_principal);
        self.duration(idle_timeout);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use plexus_mcp_protocol::Era;
    use plexus_mcp_protocol::messages::ClientCapabilities;

    use super::*;

    fn program() -> Program {
        Program::new("server").arg("a").env("KEY", "1")
    }

    /// A definition that differs from `from` in what `change` changes.
    fn with(from: impl Into<Definition>, change: impl FnOnce(&mut Definition)) -> Definition {
        let mut definition = from.into();
        change(&mut definition);
        definition
    }

    fn with_program(change: impl FnOnce(&mut Program)) -> Definition {
        let mut program = program();
        change(&mut program);
        program.into()
    }

    /// S004-53: every field that is compared changes the digest.
    #[test]
    fn every_change_has_another_digest() {
        let url: Uri = "http://localhost/mcp".parse().unwrap();
        let mut with_header = HttpTarget::new(url.clone());
        with_header.headers.insert("x-key", "1".parse().unwrap());
        let second = Duration::from_secs(1);
        let definitions: Vec<Definition> = vec![
            program().into(),
            with_program(|program| program.command.push('2')),
            with_program(|program| program.args.push(String::new())),
            with_program(|program| program.args = vec!["aKEY".to_owned()]),
            with_program(|program| program.cwd = Some("/".into())),
            with_program(|program| program.env.clear()),
            with_program(|program| program.env = [("KEY".to_owned(), None)].into()),
            HttpTarget::new(url.clone()).into(),
            Definition::new(Target::Sse(HttpTarget::new(url))),
            HttpTarget::new("http://localhost/other".parse().unwrap()).into(),
            with_header.into(),
            with(program(), |it| it.era = Some(Era::Handshake)),
            with(program(), |it| it.era = Some(Era::Stateless)),
            with(program(), |it| it.capabilities = ClientCapabilities::none()),
            with(program(), |it| it.client_info.name.push('2')),
            with(program(), |it| it.client_info.title = Some("T".to_owned())),
            with(program(), |it| it.timeouts.connect += second),
            with(program(), |it| it.timeouts.probe += second),
            with(program(), |it| it.timeouts.request += second),
            with(program(), |it| it.timeouts.call += second),
            with(program(), |it| it.timeouts.call_total += second),
            with(program(), |it| it.timeouts.linger += second),
            with(program(), |it| it.serialize = true),
            with(program(), |it| it.limits.max_bytes += 1),
            with(program(), |it| it.limits.max_depth += 1),
            with(program(), |it| it.limits.max_batch += 1),
            with(program(), |it| it.max_listed += 1),
            with(program(), |it| it.max_listed_bytes += 1),
            with(program(), |it| it.affinity = Affinity::Principal),
            with(program(), |it| it.sessions.max_sessions += 1),
            with(program(), |it| it.sessions.max_per_principal += 1),
            with(program(), |it| it.sessions.idle_timeout += second),
            with(program(), |it| it.prime_roots = true),
        ];
        let digests: HashSet<_> = definitions.iter().map(Definition::digest).collect();
        assert_eq!(digests.len(), definitions.len());
        assert_eq!(
            Definition::from(program()).digest(),
            Definition::from(program()).digest()
        );
    }
}
