//! Loading of all configuration files.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;

use plexus_mcp_wire::{Kind as JsonKind, Raw};

use super::entry::{Scope, ServerEntry, Source};
use super::locations::{Locations, ServerFile};
use super::problem::ConfigProblem;
use super::server::{self, ReadContext, kind_name};
use super::settings::{self, Settings};
use super::{disk, json};

/// The loaded configuration.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Loaded {
    /// Every valid server, in the order of precedence, then of the file.
    pub servers: Vec<ServerEntry>,
    /// Plexus's own settings.
    pub settings: Settings,
    /// The problems found.
    pub problems: Vec<ConfigProblem>,
    /// Every file that was looked for, whether it exists or not: the files to watch.
    pub files: Vec<PathBuf>,
}

impl Loaded {
    /// Whether the syntax of some file is wrong, which may be because it is being written.
    pub(super) fn has_broken_files(&self) -> bool {
        self.problems.iter().any(ConfigProblem::is_about_syntax)
    }
}

/// Loads the files at `locations`. A problem with one file or server does not affect the others.
///
/// If several files define the same name, the file with precedence defines the server (C24), even
/// if its definition is invalid: another server under that name would be a surprise.
pub fn load(locations: &Locations, environment: &dyn Fn(&str) -> Option<String>) -> Loaded {
    let mut loading = Loading {
        environment,
        names: HashMap::new(),
        servers: Vec::new(),
        problems: Vec::new(),
        files: RefCell::new(Vec::new()),
    };
    for place in locations.server_files() {
        loading.file(&place);
    }
    let mut problems = loading.problems;
    let mut files = loading.files.into_inner();
    let sources = locations.settings_files();
    let permissions = locations.permission_files();
    let of_settings = sources.iter().chain(&permissions);
    for source in of_settings {
        // A file may have servers and permissions.
        if !files.contains(&source.file) {
            files.push(source.file.clone());
        }
    }
    let settings = settings::load(&sources, &permissions, &mut problems);
    Loaded {
        servers: loading.servers,
        settings,
        problems,
        files,
    }
}

/// Reads Plexus's own settings alone, with the problems of their files.
pub fn load_settings(locations: &Locations) -> (Settings, Vec<ConfigProblem>) {
    let mut problems = Vec::new();
    let sources = locations.settings_files();
    let settings = settings::load(&sources, &locations.permission_files(), &mut problems);
    (settings, problems)
}

/// Validates one definition as if it were in the file of `source`, which need not exist.
///
/// # Errors
/// [`load`] would reject it.
pub fn check(
    name: &str,
    definition: &Raw,
    source: &Source,
    locations: &Locations,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<ServerEntry, ConfigProblem> {
    if name.is_empty() {
        return Err(ConfigProblem::new(&source.file, EMPTY_NAME).server(name));
    }
    let context = ReadContext {
        source,
        base: locations.base(source),
        environment,
        read: &disk::read,
    };
    server::read(name, definition, &context)
}

const EMPTY_NAME: &str = "the name is empty";

struct Loading<'a> {
    environment: &'a dyn Fn(&str) -> Option<String>,
    /// The names that are taken, in lower case.
    names: HashMap<String, Taken>,
    servers: Vec<ServerEntry>,
    problems: Vec<ConfigProblem>,
    files: RefCell<Vec<PathBuf>>,
}

struct Taken {
    name: String,
    file: PathBuf,
}

impl Loading<'_> {
    fn file(&mut self, place: &ServerFile) {
        let file = &place.source.file;
        self.files.borrow_mut().push(file.clone());
        let read = disk::read(file).and_then(|text| match text {
            Some(text) => definitions(place, &text, &mut self.problems),
            None if place.source.scope == Scope::Explicit => {
                Err(ConfigProblem::new(file, "there is no such file"))
            }
            // S001-59
            None => Ok(Vec::new()),
        });
        match read {
            Ok(definitions) => {
                for (name, definition) in definitions {
                    self.server(&name, &definition, place);
                }
            }
            // S001-60
            Err(problem) => self.problems.push(problem),
        }
    }

    fn server(&mut self, name: &str, definition: &Raw, place: &ServerFile) {
        match self.take(name, &place.source) {
            Ok(true) => {}
            Ok(false) => return,
            Err(problem) => return self.problems.push(problem),
        }
        let context = ReadContext {
            source: &place.source,
            base: &place.base,
            environment: self.environment,
            read: &|file| {
                self.files.borrow_mut().push(file.to_owned());
                disk::read(file)
            },
        };
        match server::read(name, definition, &context) {
            Ok(entry) => self.servers.push(entry),
            Err(problem) => self.problems.push(problem),
        }
    }

    /// Registers a name, unless a file with precedence has it.
    fn take(&mut self, name: &str, source: &Source) -> Result<bool, ConfigProblem> {
        let refused = |what: String| ConfigProblem::new(&source.file, what).server(name);
        if name.is_empty() {
            return Err(refused(EMPTY_NAME.to_owned()));
        }
        let Some(taken) = self.names.get(&name.to_lowercase()) else {
            let taken = Taken {
                name: name.to_owned(),
                file: source.file.clone(),
            };
            self.names.insert(name.to_lowercase(), taken);
            return Ok(true);
        };
        if taken.name != name {
            let what = format!(
                "the name differs only in case from {:?} in {}",
                taken.name,
                taken.file.display()
            );
            return Err(refused(what).advice("rename one of them"));
        }
        if taken.file == source.file {
            let what = "the name is in the file twice, the first is used";
            return Err(refused(what.to_owned()).advice("rename or remove one of them"));
        }
        Ok(false)
    }
}

/// The definitions under `mcpServers` (S001-37).
pub(super) fn definitions(
    place: &ServerFile,
    text: &str,
    problems: &mut Vec<ConfigProblem>,
) -> Result<Vec<(String, Raw)>, ConfigProblem> {
    const KEY: &str = "mcpServers";
    let file = &place.source.file;
    let root = json::parse(file, text)?;
    let members = json::members(&root).ok_or_else(|| {
        let found = kind_name(root.kind());
        ConfigProblem::new(file, format!("an object is expected, not {found}"))
    })?;
    let mut found = members.iter().filter(|(key, _)| key == KEY);
    let Some((_, servers)) = found.next() else {
        if place.is_for_servers() && !members.is_empty() {
            let problem = ConfigProblem::new(file, "there is no \"mcpServers\"").key(KEY);
            return Err(problem.advice("put the servers into {\"mcpServers\": {…}}"));
        }
        return Ok(Vec::new());
    };
    if found.next().is_some() {
        let what = "the key is in the file twice, the first is used";
        problems.push(ConfigProblem::new(file, what).key(KEY));
    }
    if servers.kind() == JsonKind::Null {
        return Ok(Vec::new());
    }
    json::members(servers).ok_or_else(|| {
        let found = kind_name(servers.kind());
        ConfigProblem::new(file, format!("an object is expected, not {found}")).key(KEY)
    })
}

#[cfg(test)]
mod tests;
