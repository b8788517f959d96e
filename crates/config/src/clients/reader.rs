//! Finds the servers in a file of another client, and translates them.

use std::path::Path;

use plexus_mcp_wire::{Kind, Object, Raw};
use serde::Deserialize;

use super::formats::{ClientFormat, Syntax};
use super::rules::{Translation, literal};
use super::variables::Variables;
use super::{Imported, ImportedServer};
use crate::filter::ToolFilter;
use crate::json;
use crate::problem::ConfigProblem;

/// Reads one file.
pub(super) struct Reading<'a> {
    format: &'static ClientFormat,
    file: &'a Path,
    variables: Variables,
    /// Which servers are turned on, by name.
    turned_on: ToolFilter,
    imported: Imported,
}

/// Servers turned on and off by name, in Gemini CLI and Qwen Code. The second has globs.
#[derive(Deserialize, Default)]
struct Selection {
    #[serde(default)]
    allowed: Vec<String>,
    #[serde(default)]
    excluded: Vec<String>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(format: &'static ClientFormat, file: &'a Path, root: &Raw) -> Self {
        let selection = member(root, "mcp").and_then(|raw| raw.decode().ok());
        let Selection { allowed, excluded } = selection.unwrap_or_default();
        Self {
            format,
            file,
            variables: Variables::new(format.notation, root),
            turned_on: ToolFilter::new(allowed, excluded).unwrap_or_default(),
            imported: Imported::default(),
        }
    }

    pub(super) fn finish(mut self, root: &Raw) -> Imported {
        self.servers(root, None);
        // Claude Code has servers for all projects, and for each of them.
        let projects = member(root, "projects");
        let projects = projects.as_ref().and_then(json::members);
        for (project, settings) in projects.unwrap_or_default() {
            self.servers(&settings, Some(Path::new(&project)));
        }
        self.imported
    }

    fn servers(&mut self, holder: &Raw, project: Option<&Path>) {
        let mut servers = holder.clone();
        for key in self.format.servers {
            match member(&servers, key) {
                Some(value) if value.kind() != Kind::Null => servers = value,
                _ => return,
            }
        }
        // Continue has a list.
        let listed = || match self.format.syntax {
            Syntax::Yaml => listed(&servers),
            _ => None,
        };
        let Some(servers) = json::members(&servers).or_else(listed) else {
            let problem = ConfigProblem::new(self.file, "an object is expected");
            let problem = problem.key(self.format.servers.join("."));
            return self.imported.problems.push(problem);
        };
        for (name, definition) in servers {
            match Object::parse(&definition) {
                Ok(definition) => self.server(name, definition, project),
                Err(error) => {
                    let problem = ConfigProblem::new(self.file, error.to_string());
                    self.imported.problems.push(problem.server(name));
                }
            }
        }
    }

    fn server(&mut self, name: String, definition: Object, project: Option<&Path>) {
        let mut translation = Translation::of(definition);
        if let Some(shape) = self.format.shape {
            shape(&mut translation);
        }
        translation.apply(self.format.rules);
        self.variables.translate(&mut translation);
        if !self.turned_on.admits(&name) {
            translation.definition.set("disabled", literal(&true));
        }
        let is_plexus = translation.refused.is_none() && runs_plexus(&translation.definition);
        if is_plexus {
            translation.refused = Some("it is Plexus itself".to_owned());
        }
        self.imported.servers.push(ImportedServer {
            name,
            project: project.map(Path::to_owned),
            definition: translation.definition,
            notes: translation.notes,
            left_out: translation.left_out,
            refused: translation.refused,
            is_plexus,
        });
    }
}

/// Servers in a list, each with its name.
fn listed(raw: &Raw) -> Option<Vec<(String, Raw)>> {
    let servers = raw.elements()?.enumerate().map(|(index, server)| {
        let name = member(&server, "name").and_then(|name| Some(name.text()?.into_owned()));
        (name.unwrap_or_else(|| format!("{}", index + 1)), server)
    });
    Some(servers.collect())
}

/// Whether a definition starts `plexus serve`, as a program or as a package.
fn runs_plexus(definition: &Object) -> bool {
    let args = definition.get("args").and_then(|raw| raw.decode().ok());
    let args: Vec<String> = args.unwrap_or_default();
    let command = definition.text("command").unwrap_or_default();
    let program = command.rsplit(['/', '\\']).next().unwrap_or_default();
    let program = program.strip_suffix(".exe").unwrap_or(program);
    let mut words = std::iter::once(program).chain(args.iter().map(String::as_str));
    words.any(|word| {
        let package = word.split_once('@').map_or(word, |(package, _)| package);
        matches!(package, "plexus" | "plexus-mcp")
    }) && args.iter().any(|arg| arg == "serve")
}

/// The first member `key` of an object.
pub(super) fn member(raw: &Raw, key: &str) -> Option<Raw> {
    let members = json::members(raw)?;
    let (_, value) = members.into_iter().find(|(name, _)| name == key)?;
    Some(value)
}
