//! Secrets that are fetched from a program or the keyring when a server is connected.

use std::time::Duration;

use plexus_mcp_client::child::{Child, ChildInput, ExitReport, Grace, StartError};
use tokio::io::AsyncReadExt;

use plexus_mcp_config::{FetchedSecrets, Kind, Secret, SecretSource, ServerEntry, Value};

/// How long a program may take to print a secret: it may have to ask its user.
const SECRET_TIMEOUT: Duration = Duration::from_mins(2);
/// The longest secret that is accepted.
const MAX_SECRET_BYTES: u64 = 64 * 1024;

/// Why a secret could not be fetched. Never contains any part of the secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The program that prints it cannot be started.
    #[error("the program for a secret: {0}")]
    Start(#[from] StartError),
    /// The program failed.
    #[error("the program `{program}` for a secret {report}")]
    Failed {
        /// The program, without its arguments.
        program: String,
        /// How it exited.
        report: ExitReport,
    },
    /// It took too long, or its output is too long.
    #[error("the program `{0}` for a secret printed none")]
    Silent(String),
    /// The secret of one key of a server's definition.
    #[error("{key}: {error}")]
    OfKey {
        /// The key, as in `env.TOKEN`.
        key: String,
        /// Why it could not be fetched.
        error: Box<SecretError>,
    },
}

/// Fetches all secrets that `entry` needs to be connected.
///
/// # Errors
/// One of them cannot be fetched.
pub async fn fetch(entry: &ServerEntry) -> Result<FetchedSecrets, SecretError> {
    let mut secrets = FetchedSecrets::new();
    for source in entry.secret_sources() {
        if !secrets.contains_key(source) {
            let secret = ask(source).await.map_err(|error| SecretError::OfKey {
                key: key_of(entry, source),
                error: Box::new(error),
            })?;
            secrets.insert(source.clone(), secret);
        }
    }
    Ok(secrets)
}

/// The first key of a definition that refers to this secret.
fn key_of(entry: &ServerEntry, wanted: &SecretSource) -> String {
    let (group, values) = match &entry.kind {
        Kind::Stdio { env, .. } => ("env", env.as_slice()),
        Kind::Http { headers, .. } | Kind::Sse { headers, .. } => ("headers", headers.as_slice()),
        Kind::Builtin(_) | Kind::Unsupported(_) => ("type", &[][..]),
    };
    let is_wanted =
        |value: &Value| matches!(value, Value::Fetched { source, .. } if source == wanted);
    let found = values.iter().find(|(_, value)| is_wanted(value));
    found.map_or_else(|| group.to_owned(), |(name, _)| format!("{group}.{name}"))
}

/// Returns `value`, after fetching it if necessary.
///
/// # Errors
/// It cannot be fetched.
pub async fn resolve(value: &Value) -> Result<Secret, SecretError> {
    match value {
        Value::Known(secret) => Ok(secret.clone()),
        Value::Fetched { prefix, source } => {
            let secret = ask(source).await?;
            Ok(Secret::new(format!("{prefix}{}", secret.expose())))
        }
    }
}

/// Fetches one secret.
///
/// # Errors
/// It cannot be fetched.
pub async fn ask(source: &SecretSource) -> Result<Secret, SecretError> {
    let program = source.program();
    let name = program.command.clone();
    let (mut child, input, output) = Child::start(&program)?;
    drop::<ChildInput>(input);
    let mut said = String::new();
    let mut output = output.take(MAX_SECRET_BYTES);
    let saying = tokio::time::timeout(SECRET_TIMEOUT, async {
        let read = output.read_to_string(&mut said).await;
        (read, child.exited().await)
    });
    let Ok((Ok(_), report)) = saying.await else {
        child.stop(Grace::default()).await;
        return Err(SecretError::Silent(name));
    };
    if report != ExitReport::Code(0) {
        return Err(SecretError::Failed {
            program: name,
            report,
        });
    }
    let secret = said.strip_suffix('\n').unwrap_or(&said);
    Ok(Secret::new(secret.strip_suffix('\r').unwrap_or(secret)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(script: &str) -> SecretSource {
        SecretSource::Command {
            command: "sh".to_owned(),
            args: vec!["-c".to_owned(), script.to_owned()],
        }
    }

    #[tokio::test]
    async fn the_output_of_the_program_is_the_secret() {
        let secret = ask(&command("echo s3cret")).await.unwrap();
        assert_eq!(secret.expose(), "s3cret");
    }

    #[tokio::test]
    async fn failures_are_told_without_the_secret() {
        let failed = ask(&command("echo s3cret; exit 4"))
            .await
            .unwrap_err()
            .to_string();
        assert!(
            failed.contains("code 4") && !failed.contains("s3cret"),
            "{failed}"
        );
    }
}
