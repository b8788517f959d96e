//! The agents on this machine, and what is to be done for each.

use std::path::{Path, PathBuf};

use plexus_mcp_config::clients::{AddCommand, AgentProgram, Client, ClientFile};
use plexus_mcp_config::edit::Document;
use plexus_mcp_config::{self as config, ConfigProblem, Locations, Scope, Source};
use plexus_mcp_core::{Object, Raw};

use crate::doctor::is_in_path;
use crate::import::plan::{ImportAction, Plan, Planned};
use crate::process_env::environment;

/// What is to be done for one agent.
pub(super) struct Agent {
    pub(super) client: Client,
    /// The file in which Plexus is added.
    pub(super) file: PathBuf,
    pub(super) registration: Registration,
    /// The servers to turn off, by their file.
    pub(super) originals: Vec<Original>,
    /// The servers that stay on, and why.
    pub(super) kept: Vec<(String, String)>,
    /// Why a file of the agent cannot be edited; nothing is done then.
    pub(super) problem: Option<ConfigProblem>,
}

/// How Plexus is added to an agent.
pub(super) enum Registration {
    /// The agent has it.
    Present,
    /// With the agent's own command.
    Command(&'static AgentProgram, &'static AddCommand),
    /// In its file.
    File,
}

/// A server that is to be turned off in an agent.
pub(super) struct Original {
    pub(super) name: String,
    pub(super) file: PathBuf,
}

/// The agents that have a file or a program here, of those that are named or of all.
pub(super) fn find(locations: &Locations, named: &[Client]) -> Vec<Client> {
    let is_here = |client: &Client| {
        let has_program = client
            .program()
            .is_some_and(|program| is_in_path(program.name));
        has_program || existing(*client, locations).next().is_some()
    };
    let is_wanted = |client: &Client| named.is_empty() || named.contains(client);
    let clients = Client::ALL.into_iter();
    clients.filter(is_wanted).filter(is_here).collect()
}

fn existing(client: Client, locations: &Locations) -> impl Iterator<Item = PathBuf> {
    let files = client.user_files(locations).into_iter();
    files.filter(|file| file.exists())
}

impl Agent {
    /// Plans for one agent.
    ///
    /// # Errors
    /// The file with Plexus's own servers cannot be read, or there is no place for a file of the agent.
    pub(super) fn plan(
        client: Client,
        plan: &Plan,
        locations: &Locations,
        command: &[String],
    ) -> anyhow::Result<Self> {
        let first = client.user_files(locations).into_iter().next();
        let file = existing(client, locations).next().or(first);
        let file = file.ok_or_else(|| anyhow::anyhow!("there is no home directory; set HOME"))?;
        let mut agent = Self {
            client,
            file,
            registration: Registration::File,
            originals: Vec::new(),
            kept: Vec::new(),
            problem: None,
        };
        if let Err(problem) = agent.look(plan, locations, command) {
            agent.originals.clear();
            agent.kept.clear();
            agent.problem = Some(problem);
        }
        Ok(agent)
    }

    fn look(
        &mut self,
        plan: &Plan,
        locations: &Locations,
        command: &[String],
    ) -> Result<(), ConfigProblem> {
        let mut files = vec![self.file.clone()];
        let further = existing(self.client, locations);
        files.extend(further.filter(|file| *file != self.file));
        let mut is_registered = false;
        for file in &files {
            let (mut edited, _) = ClientFile::open(self.client, file)?;
            is_registered |= edited.has_plexus();
            let servers = plan.servers.iter();
            for server in
                servers.filter(|server| server.client == self.client && server.from == *file)
            {
                if edited.is_turned_on(&server.name) != Some(true) {
                    continue;
                }
                match stays_on(server, plan, locations)? {
                    Some(reason) => self.kept.push((server.name.clone(), reason)),
                    None if is_taken_over(server) => {
                        edited.disable(&server.name)?;
                        self.originals.push(Original {
                            name: server.name.clone(),
                            file: file.clone(),
                        });
                    }
                    None => {}
                }
            }
            if *file == self.file && !edited.has_plexus() {
                edited.register(command)?;
            }
        }
        let program = self
            .client
            .program()
            .filter(|program| is_in_path(program.name));
        self.registration = match program.and_then(|program| Some((program, program.add.as_ref()?)))
        {
            _ if is_registered => Registration::Present,
            Some((program, add)) => Registration::Command(program, add),
            None => Registration::File,
        };
        Ok(())
    }

    /// Whether anything is to be done, and can be done.
    pub(super) fn has_work(&self) -> bool {
        let is_registered = matches!(self.registration, Registration::Present);
        self.is_editable() && (!is_registered || !self.originals.is_empty())
    }

    pub(super) fn is_editable(&self) -> bool {
        self.problem.is_none()
    }

    /// The servers to turn off in `file`.
    pub(super) fn originals_in(&self, file: &Path) -> impl Iterator<Item = &str> {
        let originals = self.originals.iter();
        originals
            .filter(move |original| original.file == file)
            .map(|original| original.name.as_str())
    }

    /// The files to edit.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let is_registered = matches!(self.registration, Registration::Present);
        let mut files = Vec::new();
        if !is_registered || self.originals_in(&self.file).next().is_some() {
            files.push(self.file.clone());
        }
        for original in &self.originals {
            if !files.contains(&original.file) {
                files.push(original.file.clone());
            }
        }
        files
    }
}

/// Whether Plexus has the server, or will have it.
fn is_taken_over(server: &Planned) -> bool {
    matches!(
        server.action,
        ImportAction::Added { .. } | ImportAction::Exists { .. }
    )
}

/// Why a server has to stay on in its agent, although it is taken over.
fn stays_on(
    server: &Planned,
    plan: &Plan,
    locations: &Locations,
) -> Result<Option<String>, ConfigProblem> {
    if !is_taken_over(server) {
        return Ok(None);
    }
    if let ImportAction::Exists { file } = &server.action {
        let same = definition_in(&server.name, file, plan)?
            .is_some_and(|other| normal(&other) == normal(&server.definition));
        if !same {
            let file = file.display();
            return Ok(Some(format!("{file} has another server of this name")));
        }
    }
    let source = Source::new(Scope::User, &plan.file);
    let definition = &server.definition;
    if let Err(problem) = config::check(&server.name, definition, &source, locations, &environment)
    {
        return Ok(Some(format!(
            "{}; then run this command again",
            problem.what
        )));
    }
    // opencode replaces this by the content of a file.
    if definition.as_str().contains("{file:") {
        return Ok(Some("it refers to a file for a value".to_owned()));
    }
    Ok(None)
}

/// The definition of the server that has this name already.
fn definition_in(name: &str, file: &Path, plan: &Plan) -> Result<Option<Raw>, ConfigProblem> {
    let is_it = |other: &str| other.to_lowercase() == name.to_lowercase();
    let added = plan.additions().find(|added| is_it(&added.name));
    if let Some(added) = added {
        return Ok(Some(added.definition.clone()));
    }
    let document = Document::open(file)?;
    let found = document.servers().find(|(other, _)| is_it(other));
    Ok(found.map(|(_, definition)| definition.clone()))
}

/// The members of a definition in the order of their names, without those that say nothing.
fn normal(definition: &Raw) -> Vec<(String, String)> {
    let Ok(object) = Object::parse(definition) else {
        return Vec::new();
    };
    let implied = if object.contains("command") {
        "\"stdio\""
    } else {
        "\"http\""
    };
    let says_nothing = |key: &str, value: &str| match key {
        "type" => value == implied || value == "\"streamable-http\"",
        "disabled" => value == "false",
        _ => matches!(value, "{}" | "[]" | "null"),
    };
    let mut members: Vec<_> = object
        .iter()
        .map(|(key, value)| {
            let value = value.decode::<serde_json::Value>();
            let value = value.map_or_else(|_| String::new(), |value| value.to_string());
            (key.to_owned(), expanded(&value))
        })
        .filter(|(key, value)| !says_nothing(key, value))
        .collect();
    members.sort();
    members
}

/// The text with the values of variables that are set: a secret may be written in both ways.
fn expanded(text: &str) -> String {
    let mut parts = text.split("${");
    let mut expanded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let variable = part.split_once('}');
        match variable.and_then(|(name, rest)| Some((environment(name)?, rest))) {
            Some((value, rest)) => expanded.extend([value.as_str(), rest]),
            None => expanded.extend(["${", part]),
        }
    }
    expanded
}
