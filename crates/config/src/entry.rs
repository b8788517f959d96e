//! One configured server.

mod digest;
mod shown;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use plexus_mcp_client::{Affinity, Definition, HttpTarget, Program, Target};
use plexus_mcp_protocol::Era;
use plexus_mcp_wire::Object;

use super::filter::ToolFilter;
use super::problem::ConfigProblem;
use super::secret::{FetchedSecrets, SecretSource, Value};
use super::settings::Limits;
use super::sign_in::SignIn;
use super::text::Text;

pub(super) use self::digest::Digest;

/// One configured server, with its source. Its debug form shows no secrets.
#[derive(Clone)]
#[non_exhaustive]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a key of the configuration, independent of the others"
)]
pub struct ServerEntry {
    /// The name, with any characters.
    pub name: String,
    /// The file that defines it.
    pub source: Source,
    /// The kind of server.
    pub kind: Kind,
    /// Whether it is disabled.
    pub disabled: bool,
    /// How long a tool call may run without a response or progress.
    pub timeout: Option<Duration>,
    /// Calls are sent one at a time (C32).
    pub serialize: bool,
    /// Its tool annotations are trusted (C26).
    pub trusted: bool,
    /// It is reconnected after it fails or is lost (C35).
    pub auto_restart: bool,
    /// How long it may take from its start to the end of the handshake.
    pub startup_timeout: Option<Duration>,
    /// How long lists wait for it while its offer is unknown.
    pub startup_wait: Option<Duration>,
    /// The era it speaks; `None` to detect it.
    pub era: Option<Era>,
    /// Which callers share a session; `None` for the default of the transport.
    pub affinity: Option<Affinity>,
    /// Callers are asked for their roots before their first calls.
    pub prime_roots: bool,
    /// The filter of its tools.
    pub tools: ToolFilter,
    /// How to sign in to it, if it is a remote server.
    pub sign_in: SignIn,
    /// The members of its definition that Plexus does not know.
    pub other: Object,
    /// See [`ServerEntry::written`].
    written: WrittenDefinition,
    /// See [`ServerEntry::approval`].
    approval: [u8; 32],
}

/// The definition of a server as its files have it, with variables that are not expanded. Its debug
/// form shows nothing of it.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct WrittenDefinition {
    /// The members of the definition.
    pub members: Object,
    /// The variables of its environment file.
    pub file_variables: Vec<(String, String)>,
}

/// It may hold secrets.
impl fmt::Debug for WrittenDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WrittenDefinition").finish_non_exhaustive()
    }
}

/// The source of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Source {
    /// The scope of the file.
    pub scope: Scope,
    /// The file.
    pub file: PathBuf,
}

impl Source {
    /// `file`, of the given scope.
    pub fn new(scope: Scope, file: impl Into<PathBuf>) -> Self {
        Self {
            scope,
            file: file.into(),
        }
    }
}

/// The scope of a configuration file, in the order of precedence (C24).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "what a scope may do is decided for each of them"
)]
pub enum Scope {
    /// A file that was named on the command line.
    Explicit,
    /// The user's own file for this project.
    Local,
    /// The project's file, which may come from others: its servers need the user's approval.
    Project,
    /// The user's file for all projects.
    User,
}

impl Scope {
    /// Its name on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Explicit => "explicit",
            Self::Local => "local",
            Self::Project => "project",
            Self::User => "user",
        }
    }
}

/// The kind of a server. Its debug form shows no secrets.
#[derive(Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "each kind is started in its own way"
)]
pub enum Kind {
    /// A program that speaks MCP on its standard input and output.
    Stdio {
        /// Its name or path.
        command: Text,
        /// Its arguments.
        args: Vec<Text>,
        /// Environment variables that are set in addition to our own, each name once.
        env: Vec<(String, Value)>,
        /// Its working directory; `None` for our own.
        cwd: Option<PathBuf>,
    },
    /// A URL that speaks Streamable HTTP, or if it does not, HTTP+SSE (C22).
    Http {
        /// The endpoint.
        url: Text,
        /// Headers of every request (S004-43).
        headers: Vec<(String, Value)>,
    },
    /// A URL that speaks HTTP+SSE.
    Sse {
        /// The URL of its event stream.
        url: Text,
        /// Headers of every request.
        headers: Vec<(String, Value)>,
    },
    /// A built-in service, in this process.
    Builtin(String),
    /// A valid definition that Plexus cannot connect, and why.
    Unsupported(String),
}

impl ServerEntry {
    /// A server with defaults for everything optional.
    pub fn new(name: impl Into<String>, source: Source, kind: Kind) -> Self {
        let mut entry = Self {
            name: name.into(),
            source,
            kind,
            disabled: false,
            timeout: None,
            serialize: false,
            trusted: false,
            auto_restart: true,
            startup_timeout: None,
            startup_wait: None,
            era: None,
            affinity: None,
            prime_roots: false,
            tools: ToolFilter::default(),
            sign_in: SignIn::default(),
            other: Object::new(),
            written: WrittenDefinition::default(),
            approval: [0; 32],
        };
        let fingerprint = entry.fingerprint();
        entry.approval = approval(&entry.name, &entry.source.file, &fingerprint);
        entry
    }

    /// Ties the approval to the written definition, and to the environment file it names.
    pub(super) fn with_written(mut self, written: WrittenDefinition, digest: &Digest) -> Self {
        self.approval = approval(&self.name, &self.source.file, &digest.clone().finish());
        self.written = written;
        self
    }

    /// The definition that the [approval](Self::approval) is for.
    pub fn written(&self) -> &WrittenDefinition {
        &self.written
    }

    /// The fingerprint of everything that the connection depends on: the server is reconnected if
    /// and only if this changes. Values of variables count, fetched secrets do not.
    pub fn fingerprint(&self) -> [u8; 32] {
        digest::of_connection(self).finish()
    }

    /// The digest of what the user approves: the file, the name, and the definition as it is
    /// written, including an environment file. A variable that changes needs no new approval.
    pub fn approval(&self) -> [u8; 32] {
        self.approval
    }

    /// The secrets that must be fetched for a [`definition`](Self::definition).
    pub fn secret_sources(&self) -> impl Iterator<Item = &SecretSource> {
        let values = match &self.kind {
            Kind::Stdio { env, .. } => env.as_slice(),
            Kind::Http { headers, .. } | Kind::Sse { headers, .. } => headers.as_slice(),
            Kind::Builtin(_) | Kind::Unsupported(_) => &[],
        };
        values.iter().filter_map(|(_, value)| match value {
            Value::Fetched { source, .. } => Some(source),
            Value::Known(_) => None,
        })
    }

    /// The definition of the server to connect to, with the fetched secrets. The server's own
    /// timeouts take precedence over `limits`.
    ///
    /// # Errors
    /// A secret is missing or invalid, or this is not a server to connect to.
    pub fn definition(
        &self,
        secrets: &FetchedSecrets,
        limits: &Limits,
    ) -> Result<Definition, ConfigProblem> {
        let target = match &self.kind {
            Kind::Stdio {
                command,
                args,
                env,
                cwd,
            } => {
                let mut program = Program::new(command.expanded())
                    .shown_as(command.written())
                    .args(args.iter().map(Text::expanded));
                program.cwd.clone_from(cwd);
                for (name, value) in env {
                    program = program.env(name, self.value("env", name, value, secrets)?);
                }
                Target::Stdio(program)
            }
            Kind::Http { url, headers } => Target::Http(self.endpoint(url, headers, secrets)?),
            Kind::Sse { url, headers } => Target::Sse(self.endpoint(url, headers, secrets)?),
            Kind::Builtin(name) => {
                let what = format!("{name:?} is built in, there is nothing to connect to");
                return Err(self.problem("type", what));
            }
            Kind::Unsupported(reason) => return Err(self.problem("type", reason.as_str())),
        };
        let mut definition = Definition::new(target);
        limits.apply_to(&mut definition);
        definition.era = self.era;
        definition.serialize = self.serialize;
        definition.prime_roots = self.prime_roots;
        if let Some(timeout) = self.timeout {
            let timeouts = &mut definition.timeouts;
            timeouts.call = timeout;
            timeouts.call_total = timeouts.call_total.max(timeout);
        }
        if let Some(timeout) = self.startup_timeout {
            definition.timeouts.connect = timeout;
        }
        Ok(definition)
    }

    fn endpoint(
        &self,
        url: &Text,
        headers: &[(String, Value)],
        secrets: &FetchedSecrets,
    ) -> Result<HttpTarget, ConfigProblem> {
        let url = endpoint_url(url.expanded()).map_err(|what| self.problem("url", what))?;
        let mut target = HttpTarget::new(url);
        target.headers = HeaderMap::with_capacity(headers.len());
        for (name, value) in headers {
            let value = self.value("headers", name, value, secrets)?;
            let (header, value) = header(name, &value)
                .map_err(|what| self.problem(format!("headers.{name}"), what))?;
            target.headers.append(header, value);
        }
        Ok(target)
    }

    fn value(
        &self,
        group: &str,
        name: &str,
        value: &Value,
        secrets: &FetchedSecrets,
    ) -> Result<String, ConfigProblem> {
        match value {
            Value::Known(secret) => Ok(secret.expose().to_owned()),
            Value::Fetched { prefix, source } => {
                let secret = secrets.get(source).ok_or_else(|| {
                    let what = format!("the secret was not fetched from {source:?}");
                    self.problem(format!("{group}.{name}"), what)
                })?;
                Ok(format!("{prefix}{}", secret.expose()))
            }
        }
    }

    fn problem(&self, key: impl Into<Box<str>>, what: impl Into<Box<str>>) -> ConfigProblem {
        ConfigProblem::new(&self.source.file, what)
            .server(self.name.as_str())
            .key(key)
    }
}

/// Parses the URL of an endpoint.
pub(super) fn endpoint_url(url: &str) -> Result<Uri, &'static str> {
    const NOT_HTTP_URL: &str = "not an http:// or https:// URL";
    let Ok(uri) = url.parse::<Uri>() else {
        return Err(NOT_HTTP_URL);
    };
    match (uri.scheme_str(), uri.host()) {
        (Some("http" | "https"), Some(host)) if !host.is_empty() => Ok(uri),
        _ => Err(NOT_HTTP_URL),
    }
}

/// Parses a header. The value is marked sensitive, so that it is not logged.
pub(super) fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), &'static str> {
    let Ok(name) = name.parse::<HeaderName>() else {
        return Err("not the name of a header");
    };
    let Ok(mut value) = value.parse::<HeaderValue>() else {
        return Err("the value holds characters that a header cannot");
    };
    value.set_sensitive(true);
    Ok((name, value))
}

fn approval(name: &str, file: &Path, definition: &[u8; 32]) -> [u8; 32] {
    let mut digest = Digest::new("approval");
    digest.text(name);
    digest.bytes(file.as_os_str().as_encoded_bytes());
    digest.bytes(definition);
    digest.finish()
}

#[cfg(test)]
mod tests;
