//! Secret values, which are never displayed.

use std::collections::HashMap;
use std::fmt;

use plexus_mcp_client::Program;

/// The mask that is displayed in place of a secret.
pub const MASK: &str = "••••";

/// A text that is never displayed: its debug form is a mask, and it has no other form.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Secret(String);

impl Secret {
    /// Wraps `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, to be handed to its server.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

/// The value of an environment variable or a header.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a value is there, or it has to be fetched"
)]
pub enum Value {
    /// The value in the file, with variables expanded.
    Known(Secret),
    /// A value that is fetched when the server is connected.
    Fetched {
        /// The text before it, such as `Bearer `.
        prefix: String,
        /// The source that it is fetched from.
        source: SecretSource,
    },
}

/// The source of a secret that the configuration only refers to.
///
/// In a file it is `{"command": ["pass", "show", "github"]}` or `{"keyring": {"service": "github",
/// "account": "me"}}` in place of a value.
#[derive(Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SecretSource {
    /// The output of a program.
    Command {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
    },
    /// An entry of the desktop's keyring.
    Keyring {
        /// The service attribute.
        service: String,
        /// The account attribute.
        account: String,
    },
}

/// Fetched secrets, by their source.
pub type FetchedSecrets = HashMap<SecretSource, Secret>;

impl SecretSource {
    /// The program that prints the secret, with an optional line break at its end.
    ///
    /// A keyring is read with the system's own tool, which also asks the user to unlock it.
    pub fn program(&self) -> Program {
        match self {
            Self::Command { command, args } => Program::new(command).args(args),
            Self::Keyring { service, account } if cfg!(target_os = "macos") => {
                Program::new("security")
                    .arg("find-generic-password")
                    .args(["-s", service, "-a", account, "-w"])
            }
            Self::Keyring { service, account } => Program::new("secret-tool")
                .arg("lookup")
                .args(["service", service, "username", account]),
        }
    }
}

/// Shows the program or keyring, but not its arguments.
impl fmt::Debug for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command { command, .. } => write!(f, "Command({command:?}, {MASK})"),
            Self::Keyring { service, .. } => write!(f, "Keyring({service:?}, {MASK})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S004-43: values of headers and environment variables are masked wherever they are displayed.
    #[test]
    fn secrets_are_not_shown() {
        let command = SecretSource::Command {
            command: "sh".into(),
            args: vec!["-c".into(), "echo hunter2".into()],
        };
        let values = [
            Value::Known(Secret::new("hunter2")),
            Value::Fetched {
                prefix: "Bearer ".into(),
                source: command,
            },
        ];
        let shown = format!("{values:?}");
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains(MASK), "{shown}");
    }

    #[test]
    fn a_keyring_is_asked_by_the_systems_tool() {
        let source = SecretSource::Keyring {
            service: "github".into(),
            account: "me".into(),
        };
        let asked = source.program().to_string();
        assert!(asked.contains("github") && asked.contains("me"), "{asked}");
    }
}
