//! The plan of an import, made before anything is changed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use plexus_mcp_config::clients::{self, Client, ImportedServer};
use plexus_mcp_config::edit::Document;
use plexus_mcp_config::{self as config, ConfigProblem, Kind, Locations, Scope, Source};
use plexus_mcp_core::Raw;

use crate::mcp::show::summary;
use crate::process_env::file_of;

/// The plan of an import.
pub(crate) struct Plan {
    /// The file to change.
    pub(crate) file: PathBuf,
    /// The servers that were found, in order.
    pub(crate) servers: Vec<Planned>,
    /// Files that cannot be read.
    pub(crate) problems: Vec<ConfigProblem>,
    /// The clients that have a file.
    pub(crate) found: Vec<Client>,
}

/// A server of another client.
pub(crate) struct Planned {
    pub(crate) name: String,
    pub(crate) client: Client,
    /// The file that defines it.
    pub(crate) from: PathBuf,
    /// Its definition, which may hold secrets.
    pub(crate) definition: Raw,
    pub(crate) action: ImportAction,
    /// Notes for the user.
    pub(crate) notes: Vec<String>,
    /// The members without a counterpart.
    pub(crate) left_out: Vec<String>,
}

/// The action of the import for one server.
pub(crate) enum ImportAction {
    /// It is added. There is a summary only if all its variables are set.
    Added { summary: Option<String> },
    /// This file already has a server of this name.
    Exists { file: PathBuf },
    /// It is for this project only.
    OfProject { project: PathBuf },
    /// It cannot be used.
    Unsupported { reason: String },
}

impl Plan {
    /// Reads the files of `clients`, and the user's own.
    ///
    /// # Errors
    /// The user's own file cannot be read.
    pub(crate) fn make(
        locations: &Locations,
        clients: &[Client],
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> anyhow::Result<Self> {
        let mut planning = Planning {
            locations,
            environment,
            taken: HashMap::new(),
            plan: Self {
                file: file_of(locations, Scope::User)?,
                servers: Vec::new(),
                problems: Vec::new(),
                found: Vec::new(),
            },
        };
        planning.take_existing()?;
        for client in clients {
            if planning.client(*client) {
                planning.plan.found.push(*client);
            }
        }
        Ok(planning.plan)
    }

    /// The servers to add.
    pub(crate) fn additions(&self) -> impl Iterator<Item = &Planned> {
        self.servers
            .iter()
            .filter(|server| matches!(server.action, ImportAction::Added { .. }))
    }
}

struct Planning<'a> {
    locations: &'a Locations,
    environment: &'a dyn Fn(&str) -> Option<String>,
    /// The used names, in lower case, and the files that use them.
    taken: HashMap<String, PathBuf>,
    plan: Plan,
}

impl Planning<'_> {
    fn take_existing(&mut self) -> Result<(), ConfigProblem> {
        for source in self.locations.sources() {
            if source.scope != Scope::User {
                continue;
            }
            match Document::open(&source.file) {
                Ok(document) => {
                    for (name, _) in document.servers() {
                        let file = source.file.clone();
                        self.taken.entry(name.to_lowercase()).or_insert(file);
                    }
                }
                Err(problem) if source.file == self.plan.file => return Err(problem),
                Err(problem) => self.plan.problems.push(problem),
            }
        }
        Ok(())
    }

    /// Plans for all files of a client, the user's first; returns whether there is one.
    fn client(&mut self, client: Client) -> bool {
        let of_project = client.project_files(self.locations);
        let of_user = client.user_files(self.locations);
        let mut found = false;
        for file in &of_user {
            found |= self.file(client, file, None);
        }
        // In the home directory, both lists are the same.
        for file in of_project.iter().filter(|file| !of_user.contains(file)) {
            found |= self.file(client, file, Some(&self.locations.project_dir));
        }
        found
    }

    fn file(&mut self, client: Client, file: &Path, project: Option<&Path>) -> bool {
        let Some(imported) = clients::read_file(client, file) else {
            return false;
        };
        self.plan.problems.extend(imported.problems);
        for mut server in imported.servers {
            if let Some(project) = project {
                server.project = Some(project.to_owned());
            }
            self.server(client, file, server);
        }
        true
    }

    fn server(&mut self, client: Client, file: &Path, server: ImportedServer) {
        let ImportedServer {
            name,
            project,
            definition,
            mut notes,
            mut left_out,
            refused,
            ..
        } = server;
        let definition = definition.to_raw();
        let taken = self.taken.get(&name.to_lowercase());
        let action = match (refused, project, taken) {
            (Some(reason), ..) => ImportAction::Unsupported { reason },
            (None, Some(project), _) => ImportAction::OfProject { project },
            (None, None, Some(file)) => ImportAction::Exists { file: file.clone() },
            (None, None, None) => self.action_for_new(&name, &definition, file, &mut notes),
        };
        if matches!(action, ImportAction::Added { .. }) {
            self.taken.insert(name.to_lowercase(), file.to_owned());
        } else {
            notes.clear();
            left_out.clear();
        }
        self.plan.servers.push(Planned {
            name,
            client,
            from: file.to_owned(),
            definition,
            action,
            notes,
            left_out,
        });
    }

    fn action_for_new(
        &self,
        name: &str,
        definition: &Raw,
        file: &Path,
        notes: &mut Vec<String>,
    ) -> ImportAction {
        let source = Source::new(Scope::User, file);
        let checked = config::check(name, definition, &source, self.locations, self.environment);
        match checked {
            Ok(entry) => match &entry.kind {
                Kind::Unsupported(reason) => ImportAction::Unsupported {
                    reason: reason.clone(),
                },
                Kind::Builtin(_) => ImportAction::Unsupported {
                    reason: "it is a part of that client".to_owned(),
                },
                _ => ImportAction::Added {
                    summary: Some(summary(&entry)),
                },
            },
            Err(problem) => {
                let text = problem_text(&problem);
                if problem.is_about_environment() {
                    notes.push(text);
                    ImportAction::Added { summary: None }
                } else {
                    ImportAction::Unsupported { reason: text }
                }
            }
        }
    }
}

/// A problem without the file and the server, which are shown beside it.
fn problem_text(problem: &ConfigProblem) -> String {
    let key = problem.key.as_ref().map(|key| format!("{key}: "));
    let advice = problem.advice.as_ref().map(|advice| format!("; {advice}"));
    let (key, advice) = (key.unwrap_or_default(), advice.unwrap_or_default());
    format!("{key}{}{advice}", problem.what)
}
