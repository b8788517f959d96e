//! The displayed form of an entry, without secrets.

use std::fmt;

use plexus_mcp_client::Affinity;
use plexus_mcp_wire::{Object, Raw};
use serde::Serialize;

use super::{Kind, ServerEntry};
use crate::mask;
use crate::secret::{MASK, Value};

impl ServerEntry {
    /// The definition as a file would have it, with every secret masked: values of environment
    /// variables and headers, unknown members, and everything that looks like a secret in arguments
    /// and URLs.
    pub fn shown(&self) -> Object {
        let mut shown = self.kind.shown();
        let flags = [
            ("disabled", self.disabled),
            ("serialize", self.serialize),
            ("trusted", self.trusted),
        ];
        for (key, _) in flags.into_iter().filter(|(_, set)| *set) {
            set(&mut shown, key, &true);
        }
        if !self.auto_restart {
            set(&mut shown, "auto_restart", &false);
        }
        for (key, time) in [
            ("startup_timeout", self.startup_timeout),
            ("startup_wait", self.startup_wait),
        ] {
            if let Some(time) = time {
                set(&mut shown, key, &time.as_secs_f64());
            }
        }
        if let Some(timeout) = self.timeout {
            let millis = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
            set(&mut shown, "timeout_ms", &millis);
        }
        if let Some(era) = self.era {
            set(&mut shown, "era", era.as_str());
        }
        if let Some(affinity) = self.affinity {
            let name = match affinity {
                Affinity::Shared => "shared",
                Affinity::Principal => "principal",
            };
            set(&mut shown, "affinity", name);
        }
        if self.prime_roots {
            set(&mut shown, "roots", "prime");
        }
        for (key, globs) in [("allow", self.tools.allow()), ("deny", self.tools.deny())] {
            if !globs.is_empty() {
                set(&mut shown, key, globs);
            }
        }
        for (key, member) in self.sign_in.members() {
            set(&mut shown, key, member.shown());
        }
        let mut oauth = Object::new();
        for (key, member) in self.sign_in.oauth_members() {
            set(&mut oauth, key, member.shown());
        }
        if oauth.iter().next().is_some() {
            shown.set("oauth", oauth.to_raw());
        }
        for (key, _) in self.other.iter() {
            set(&mut shown, key, MASK);
        }
        shown
    }
}

impl Kind {
    fn shown(&self) -> Object {
        let mut shown = Object::new();
        set(&mut shown, "type", self.name());
        match self {
            Self::Stdio {
                command,
                args,
                env,
                cwd,
            } => {
                set(&mut shown, "command", command.written());
                set(&mut shown, "args", &mask::arguments(args));
                set_values(&mut shown, "env", env);
                if let Some(cwd) = cwd {
                    set(&mut shown, "cwd", &*cwd.to_string_lossy());
                }
            }
            Self::Http { url, headers } | Self::Sse { url, headers } => {
                set(&mut shown, "url", &mask::url(url.written()));
                set_values(&mut shown, "headers", headers);
            }
            Self::Builtin(name) => set(&mut shown, "name", name),
            Self::Unsupported(reason) => set(&mut shown, "reason", reason),
        }
        shown
    }

    /// Its name in a file.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "stdio",
            Self::Http { .. } => "http",
            Self::Sse { .. } => "sse",
            Self::Builtin(_) => "sdk",
            Self::Unsupported(_) => "unsupported",
        }
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shown().to_raw().as_str())
    }
}

impl fmt::Debug for ServerEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerEntry")
            .field("name", &self.name)
            .field("source", &self.source)
            .field("definition", &self.shown())
            .finish_non_exhaustive()
    }
}

fn set_values(object: &mut Object, key: &'static str, values: &[(String, Value)]) {
    if values.is_empty() {
        return;
    }
    let mut masked = Object::new();
    for (name, _) in values {
        set(&mut masked, name, MASK);
    }
    object.set(key, masked.to_raw());
}

fn set(object: &mut Object, key: &str, value: &(impl Serialize + ?Sized)) {
    // Strings, numbers and lists of them are always JSON.
    if let Ok(raw) = Raw::encode(value) {
        object.set(key.to_owned(), raw);
    }
}
