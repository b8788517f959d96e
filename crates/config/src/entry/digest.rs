//! Digests of definitions.

use plexus_mcp_client::Affinity;
use plexus_mcp_protocol::Era;
use sha2::{Digest as _, Sha256};

use super::{Kind, ServerEntry};
use crate::secret::{SecretSource, Value};
use crate::sign_in::Member;

/// A hash over fields, each prefixed with its length, so that different lists of fields have
/// different hashes.
#[derive(Clone)]
pub(crate) struct Digest(Sha256);

impl Digest {
    /// `purpose` separates hashes of different kinds.
    pub(crate) fn new(purpose: &str) -> Self {
        let mut digest = Self(Sha256::new());
        digest.text(purpose);
        digest
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }

    fn count(&mut self, count: usize) {
        self.0.update((count as u64).to_be_bytes());
    }

    fn values(&mut self, values: &[(String, Value)]) {
        self.count(values.len());
        for (name, value) in values {
            self.text(name);
            self.value(value);
        }
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Known(secret) => {
                self.text("known");
                self.text(secret.expose());
            }
            Value::Fetched { prefix, source } => {
                self.text("fetched");
                self.text(prefix);
                self.source(source);
            }
        }
    }

    fn source(&mut self, source: &SecretSource) {
        match source {
            SecretSource::Command { command, args } => {
                self.text("command");
                self.text(command);
                self.count(args.len());
                for arg in args {
                    self.text(arg);
                }
            }
            SecretSource::Keyring { service, account } => {
                self.text("keyring");
                self.text(service);
                self.text(account);
            }
        }
    }
}

/// The digest of everything that a connection depends on.
pub(super) fn of_connection(entry: &ServerEntry) -> Digest {
    let mut digest = Digest::new("connection");
    match &entry.kind {
        Kind::Stdio {
            command,
            args,
            env,
            cwd,
        } => {
            digest.text("stdio");
            digest.text(command.expanded());
            digest.count(args.len());
            for arg in args {
                digest.text(arg.expanded());
            }
            digest.values(env);
            digest.count(usize::from(cwd.is_some()));
            if let Some(cwd) = cwd {
                digest.bytes(cwd.as_os_str().as_encoded_bytes());
            }
        }
        Kind::Http { url, headers } => {
            digest.text("http");
            digest.text(url.expanded());
            digest.values(headers);
        }
        Kind::Sse { url, headers } => {
            digest.text("sse");
            digest.text(url.expanded());
            digest.values(headers);
        }
        Kind::Builtin(name) => {
            digest.text("builtin");
            digest.text(name);
        }
        Kind::Unsupported(reason) => {
            digest.text("unsupported");
            digest.text(reason);
        }
    }
    digest.text(&format!("{:?}", entry.timeout));
    digest.text(&format!("{:?}", entry.startup_timeout));
    digest.count(usize::from(entry.serialize));
    digest.text(entry.era.map_or("any", Era::as_str));
    digest.text(match entry.affinity {
        None => "any",
        Some(Affinity::Shared) => "shared",
        Some(Affinity::Principal) => "principal",
    });
    digest.count(usize::from(entry.prime_roots));
    for members in [entry.sign_in.members(), entry.sign_in.oauth_members()] {
        digest.count(members.len());
        for (key, member) in members {
            digest.text(key);
            match member {
                Member::Plain(text) => digest.text(&text),
                Member::Secret(value) => digest.value(value),
            }
        }
    }
    digest
}
