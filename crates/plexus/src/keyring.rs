//! The desktop's keyring, through the system's own tool, which also asks the user to unlock it.

use std::time::Duration;

use plexus_mcp_client::Program;
use plexus_mcp_client::child::{Child, ExitReport, Grace};
use plexus_mcp_config::SecretSource;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// An entry of the keyring. Both texts are without spaces and quotes.
#[derive(Debug, Clone)]
pub(crate) struct KeyringEntry {
    pub(crate) service: String,
    pub(crate) account: String,
}

impl KeyringEntry {
    /// The secret of this entry, if there is one.
    pub(crate) async fn lookup(&self, timeout: Duration) -> Option<String> {
        let source = SecretSource::Keyring {
            service: self.service.clone(),
            account: self.account.clone(),
        };
        ask(&source.program(), None, timeout).await
    }

    /// Stores a secret; returns whether the keyring returns it.
    pub(crate) async fn store(&self, label: &str, secret: &str, timeout: Duration) -> bool {
        let Self { service, account } = self;
        // The tool reads the secret from standard input: arguments are visible to all users.
        let (program, input) = if cfg!(target_os = "macos") {
            let hex: String = secret
                .bytes()
                .map(|byte| HexByte(byte).to_string())
                .collect();
            let line = format!("add-generic-password -U -s {service} -a {account} -X {hex}\n");
            (Program::new("security").arg("-i"), line)
        } else {
            let program = Program::new("secret-tool")
                .args(["store".to_owned(), format!("--label={label}")])
                .args(["service", service.as_str(), "username", account.as_str()]);
            (program, secret.to_owned())
        };
        ask(&program, Some(&input), timeout).await.is_some()
            && self.lookup(timeout).await.as_deref() == Some(secret)
    }
}

/// Runs a keyring tool; returns its output if it succeeds in time.
async fn ask(program: &Program, input: Option<&str>, timeout: Duration) -> Option<String> {
    let (mut child, mut stdin, mut stdout) = Child::start(program).ok()?;
    let work = async {
        if let Some(input) = input {
            stdin.write_all(input.as_bytes()).await.ok()?;
        }
        drop(stdin);
        let mut said = String::new();
        stdout.read_to_string(&mut said).await.ok()?;
        let report = child.exited().await;
        (report == ExitReport::Code(0)).then(|| said.trim().to_owned())
    };
    let said = tokio::time::timeout(timeout, work).await;
    child.stop(Grace::default()).await;
    said.ok().flatten()
}

/// A byte as two hexadecimal digits.
pub(crate) struct HexByte(pub(crate) u8);

impl std::fmt::Display for HexByte {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:02x}", self.0)
    }
}
