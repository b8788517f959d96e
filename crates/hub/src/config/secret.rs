//! Values that nobody is shown.

use std::collections::HashMap;
use std::fmt;

use plexus_client::Program;

/// What is shown in place of a secret.
pub const MASK: &str = "••••";

/// A text that is never shown: its debug form is a mask, and it has no other.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Secret(String);

impl Secret {
    /// Keeps `text` from view.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for handing it to the server it is meant for.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

/// What an environment variable or a header is set to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a value is there, or it has to be fetched"
)]
pub enum Value {
    /// What the file says, with variables expanded.
    Known(Secret),
    /// Something that is fetched when the server is connected.
    Fetched {
        /// What stands before it, such as `Bearer `.
        prefix: String,
        /// Where it is.
        source: SecretSource,
    },
}

/// Where a secret is kept that the configuration only refers to.
///
/// In a file it is `{"command": ["pass", "show", "github"]}` or
/// `{"keyring": {"service": "github", "account": "me"}}` in place of a value.
#[derive(Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SecretSource {
    /// A program prints it.
    Command {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
    },
    /// The keyring of the desktop has it.
    Keyring {
        /// What it is for.
        service: String,
        /// Whose it is.
        account: String,
    },
}

/// Secrets that were fetched.
pub type FetchedSecrets = HashMap<SecretSource, Secret>;

impl SecretSource {
    /// The program whose standard output is the secret, apart from a line break at its end.
    ///
    /// A keyring is asked by means of the system's own tool, which is also what asks the user.
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

/// Shows which program or keyring is asked, but not its arguments.
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

    /// S004-43: what headers and environments hold is masked wherever it is shown.
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
