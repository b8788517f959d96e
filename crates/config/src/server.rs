//! Parses the definition of one server.

mod fields;
mod keys;
mod sign_in;
#[cfg(test)]
mod tests;
mod values;

use std::collections::HashMap;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use plexus_mcp_client::Affinity;
use plexus_mcp_protocol::{Era, UnknownEra};
use plexus_mcp_wire::{Kind as JsonKind, Object, ObjectError, Raw};

use super::dotenv;
use super::entry::{Digest, Kind, ServerEntry, Source, WrittenDefinition, endpoint_url, header};
use super::filter::ToolFilter;
use super::json;
use super::problem::ConfigProblem;
use super::secret::{Secret, Value};
use super::text::Text;

pub use keys::{KeyDefault, KeyServers, KeyValue, SERVER_KEYS, ServerKey};

/// The maximum of all times for the start of a server.
pub(super) const STARTUP_TIME_MAX: Duration = Duration::from_hours(1);
const STARTUP_TIMEOUT_MIN: Duration = Duration::from_millis(1);

/// The context in which a definition is read.
pub(super) struct ReadContext<'a> {
    /// The file that contains it.
    pub(super) source: &'a Source,
    /// The base of relative paths.
    pub(super) base: &'a Path,
    /// Looks up an environment variable.
    pub(super) environment: &'a dyn Fn(&str) -> Option<String>,
    /// Reads an environment file.
    pub(super) read: &'a dyn Fn(&Path) -> Result<Option<String>, ConfigProblem>,
}

/// Reads the definition of the server `name`.
pub(super) fn read(
    name: &str,
    definition: &Raw,
    context: &ReadContext<'_>,
) -> Result<ServerEntry, ConfigProblem> {
    let problem = |what: String| ConfigProblem::new(&context.source.file, what).server(name);
    let fields = Object::parse(definition).map_err(|error| match error {
        ObjectError::NotAnObject => problem(format!(
            "an object is expected, not {}",
            kind_name(definition.kind())
        )),
        other => problem(other.to_string()),
    })?;
    let reader = Reader {
        name,
        context,
        fields,
        variables: HashMap::new(),
    };
    reader.read(definition)
}

struct Reader<'a> {
    name: &'a str,
    context: &'a ReadContext<'a>,
    /// The members that have not been read yet.
    fields: Object,
    /// The variables of the environment file.
    variables: HashMap<String, String>,
}

impl Reader<'_> {
    fn read(mut self, definition: &Raw) -> Result<ServerEntry, ConfigProblem> {
        let members = self.fields.clone();
        let mut written = Digest::new("definition");
        written.text(&json::compact(definition));
        let file_variables = self.environment_file()?;
        for (name, value) in &file_variables {
            written.text(name);
            written.text(value);
        }
        self.variables.extend(file_variables.iter().cloned());

        let kind = self.kind(file_variables.clone())?;
        let sign_in = self.sign_in(&kind)?;
        let mut entry = ServerEntry::new(self.name, self.context.source.clone(), kind);
        entry.disabled = self.flag("disabled")?;
        entry.serialize = self.flag("serialize")?;
        entry.trusted = self.flag("trusted")?;
        entry.auto_restart = self
            .optional("auto_restart", "true or false")?
            .unwrap_or(true);
        entry.startup_timeout = self.seconds("startup_timeout", STARTUP_TIMEOUT_MIN)?;
        entry.startup_wait = self.seconds("startup_wait", Duration::ZERO)?;
        entry.timeout = self.timeout()?;
        entry.era = self.era()?;
        entry.affinity = self.affinity()?;
        entry.prime_roots = self.primes_roots()?;
        entry.tools = self.tools()?;
        entry.sign_in = sign_in;
        entry.other = self.fields;
        let definition = WrittenDefinition {
            members,
            file_variables,
        };
        Ok(entry.with_written(definition, &written))
    }

    /// C23: the type is optional if it follows from the other keys.
    fn kind(&mut self, file_variables: Vec<(String, String)>) -> Result<Kind, ConfigProblem> {
        let written: Option<String> = self.optional("type", "a string")?;
        let (command, url) = (self.has("command"), self.has("url"));
        match (written.as_deref(), command, url) {
            (Some("stdio"), ..) | (None, true, false) => self.stdio(file_variables),
            (Some("http" | "streamable-http" | "streamableHttp"), ..) | (None, false, true) => {
                let (url, headers) = self.endpoint()?;
                Ok(Kind::Http { url, headers })
            }
            (Some("sse"), ..) => {
                let (url, headers) = self.endpoint()?;
                Ok(Kind::Sse { url, headers })
            }
            (Some("sdk"), ..) => {
                let name = self.optional("name", "a string")?;
                Ok(Kind::Builtin(name.unwrap_or_else(|| self.name.to_owned())))
            }
            (Some("claudeai-proxy"), ..) => Ok(Kind::Unsupported(
                "unsupported: only claude.ai itself can connect to its connectors".to_owned(),
            )),
            (Some(other), ..) => Err(self
                .problem("type", format!("{other:?} is unknown"))
                .advice("use stdio, http, sse or sdk")),
            (None, true, true) => Err(self
                .problem("type", "there are both a command and a url")
                .advice("say with \"type\" which of them to use")),
            (None, false, false) => Err(self
                .problem("command", "there is neither a command nor a url")
                .advice("give the program to start as command, or a URL as url")),
        }
    }

    /// S000-27, S001-26
    fn stdio(&mut self, file_variables: Vec<(String, String)>) -> Result<Kind, ConfigProblem> {
        let command: String = self.required("command")?;
        if command.trim().is_empty() {
            return Err(self.problem("command", "it is empty"));
        }
        let command = self.expanded("command", command)?;
        let args: Vec<String> = self
            .optional("args", "a list of strings")?
            .unwrap_or_default();
        let args = args.into_iter().enumerate();
        let args = args.map(|(index, arg)| self.expanded(&format!("args[{index}]"), arg));
        let args = args.collect::<Result<_, _>>()?;
        let cwd: Option<String> = self.optional("cwd", "a string")?;
        let cwd = cwd.map(|cwd| self.path("cwd", cwd)).transpose()?;

        let mut env = self.values("env")?;
        let from_file = file_variables
            .into_iter()
            .filter(|(name, _)| env.iter().all(|(own, _)| own != name))
            .map(|(name, value)| (name, Value::Known(Secret::new(value))))
            .collect::<Vec<_>>();
        env.extend(from_file);
        for (name, value) in &env {
            let has_zero = matches!(value, Value::Known(value) if value.expose().contains('\0'));
            if name.is_empty() || name.contains(['=', '\0']) || has_zero {
                let what = "the system cannot hold such a variable";
                return Err(self.problem(format!("env.{name}"), what));
            }
        }
        Ok(Kind::Stdio {
            command: command.map_expanded(|command| self.without_tilde(command)),
            args,
            env,
            cwd,
        })
    }

    fn endpoint(&mut self) -> Result<(Text, Vec<(String, Value)>), ConfigProblem> {
        let url = self.required("url")?;
        let url = self.expanded("url", url)?;
        if let Err(what) = endpoint_url(url.expanded()) {
            return Err(self.problem("url", what));
        }
        let headers = self.values("headers")?;
        for (name, value) in &headers {
            let known = match value {
                Value::Known(value) => value.expose(),
                Value::Fetched { prefix, .. } => prefix,
            };
            if let Err(what) = header(name, known) {
                return Err(self.problem(format!("headers.{name}"), what));
            }
        }
        Ok((url, headers))
    }

    fn environment_file(&mut self) -> Result<Vec<(String, String)>, ConfigProblem> {
        const KEY: &str = "env_file";
        let Some(file) = self.optional(KEY, "a string")? else {
            return Ok(Vec::new());
        };
        let file = self.path(KEY, file)?;
        let shown = file.display();
        let text = (self.context.read)(&file)
            .map_err(|problem| self.problem(KEY, format!("{shown}: {}", problem.what)))?
            .ok_or_else(|| {
                let what = format!("{shown}: there is no such file");
                let advice = format!("create {shown}, or remove \"{KEY}\"");
                self.problem(KEY, what).advice(advice).of_environment()
            })?;
        dotenv::parse(&text).map_err(|line| {
            self.problem(
                KEY,
                format!("{shown}:{line}: this is not NAME=value, or the value needs quotes"),
            )
        })
    }

    fn flag(&mut self, key: &str) -> Result<bool, ConfigProblem> {
        Ok(self.optional(key, "true or false")?.unwrap_or_default())
    }

    fn timeout(&mut self) -> Result<Option<Duration>, ConfigProblem> {
        const KEY: &str = "timeout_ms";
        let millis: Option<u64> = self.optional(KEY, "a whole number of milliseconds")?;
        match millis {
            Some(0) => Err(self
                .problem(KEY, "it is 0")
                .advice("remove it for the default")),
            millis => Ok(millis.map(Duration::from_millis)),
        }
    }

    /// A time in seconds, with an optional fraction.
    fn seconds(&mut self, key: &str, min: Duration) -> Result<Option<Duration>, ConfigProblem> {
        let seconds: Option<f64> = self.optional(key, "a number of seconds")?;
        let Some(seconds) = seconds else {
            return Ok(None);
        };
        let time = Duration::try_from_secs_f64(seconds).ok();
        let time = time.filter(|time| (min..=STARTUP_TIME_MAX).contains(time));
        let range = || {
            let (min, max) = (min.as_secs_f64(), STARTUP_TIME_MAX.as_secs());
            format!("use a number of seconds from {min} to {max}, or remove it for the default")
        };
        let out_of_range = || {
            self.problem(key, format!("it is {seconds}"))
                .advice(range())
        };
        Ok(Some(time.ok_or_else(out_of_range)?))
    }

    fn era(&mut self) -> Result<Option<Era>, ConfigProblem> {
        let written: Option<String> = self.optional("era", "a string")?;
        let era = written.as_deref().map(Era::from_str).transpose();
        era.map_err(|UnknownEra(other)| {
            self.problem("era", format!("{other:?} is unknown"))
                .advice("use legacy or modern, or remove it to detect it")
        })
    }

    fn affinity(&mut self) -> Result<Option<Affinity>, ConfigProblem> {
        let written: Option<String> = self.optional("affinity", "a string")?;
        match written.as_deref() {
            None => Ok(None),
            Some("shared") => Ok(Some(Affinity::Shared)),
            Some("principal") => Ok(Some(Affinity::Principal)),
            Some(other) => Err(self
                .problem("affinity", format!("{other:?} is unknown"))
                .advice("use shared or principal, or remove it for the default of the transport")),
        }
    }

    fn primes_roots(&mut self) -> Result<bool, ConfigProblem> {
        let written: Option<String> = self.optional("roots", "a string")?;
        match written.as_deref() {
            None => Ok(false),
            Some("prime") => Ok(true),
            Some(other) => Err(self
                .problem("roots", format!("{other:?} is unknown"))
                .advice("use prime, or remove it to ask when the server does")),
        }
    }

    fn tools(&mut self) -> Result<ToolFilter, ConfigProblem> {
        let mut globs = |key: &str| -> Result<Vec<String>, ConfigProblem> {
            let globs = self.optional(key, "a list of strings")?;
            Ok(globs.unwrap_or_default())
        };
        let (allow, deny) = (globs("allow")?, globs("deny")?);
        ToolFilter::new(allow.clone(), Vec::new())
            .map_err(|error| self.problem("allow", error.to_string()))?;
        ToolFilter::new(allow, deny).map_err(|error| self.problem("deny", error.to_string()))
    }
}

/// A JSON type in words.
pub(super) fn kind_name(kind: JsonKind) -> &'static str {
    match kind {
        JsonKind::Null => "null",
        JsonKind::Bool => "true or false",
        JsonKind::Number => "a number",
        JsonKind::String => "a string",
        JsonKind::Array => "a list",
        JsonKind::Object => "an object",
    }
}
