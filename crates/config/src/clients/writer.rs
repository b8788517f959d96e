//! Adds Plexus to a file of another client, and turns off the servers that it has.
//!
//! The text is edited in place. After each edit the file is read again: it must hold what it held
//! before, and the edit. A file that cannot be edited in this way is refused.

use std::fmt;
use std::path::{Path, PathBuf};

use plexus_mcp_wire::{Kind, Object, Raw};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::content::{allowed, differences, server, servers_or_none, without};
use super::edit_json::JsonText;
use super::edit_yaml::YamlText;
use super::formats::{ClientFormat, Syntax};
use super::rules::literal;
use super::{Client, ImportedServer, edit_toml};
use crate::problem::ConfigProblem;
use crate::{disk, json};

/// The name of Plexus in the files of other clients.
pub const PLEXUS: &str = "plexus";

/// The reason for a refusal.
pub(super) const UNEDITABLE: &str = "the file cannot be edited without changing the rest of it";

/// The list of the servers that are turned on, in Gemini CLI and Qwen Code.
pub(super) const ALLOWED: [&str; 2] = ["mcp", "allowed"];

/// How a client writes a server that is a program, and how a server is turned off.
#[derive(Debug)]
pub(super) struct Writing {
    /// The members in front of the program, as JSON.
    pub(super) head: &'static [(&'static str, &'static str)],
    pub(super) command: CommandKeys,
    /// The members after the arguments, as JSON.
    pub(super) tail: &'static [(&'static str, &'static str)],
    pub(super) disabling: Disabling,
    /// Whether the servers are a list, and each has its name.
    pub(super) is_list: bool,
}

/// Where the program and its arguments are.
#[derive(Debug)]
pub(super) enum CommandKeys {
    /// The program is under this key, the arguments under `args`.
    Split(&'static str),
    /// Both are one list under `command`.
    Joined,
}

/// How a server is turned off.
#[derive(Debug)]
pub(super) enum Disabling {
    /// The client has no key for this: the server is removed.
    Removal,
    /// The client has this key, and a server is turned off by this value.
    Key(&'static str, bool),
}

/// An edit of a file, with all that is needed to take it back. It may hold secrets, which its debug
/// form does not show.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "edit", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Edit {
    /// A server was added.
    Added {
        /// Its name.
        name: String,
    },
    /// A server was added to the list of servers that are turned on.
    Allowed {
        /// Its name.
        name: String,
    },
    /// A server was removed.
    Removed {
        /// Its name.
        name: String,
        /// What was written for it.
        text: String,
    },
    /// A server was turned off by a key.
    TurnedOff {
        /// Its name.
        name: String,
        /// The key.
        key: String,
        /// The value before; `None` if there was none.
        before: Option<bool>,
        /// The value that turns it off.
        after: bool,
    },
}

impl Edit {
    /// The server.
    pub fn name(&self) -> &str {
        match self {
            Self::Added { name }
            | Self::Allowed { name }
            | Self::Removed { name, .. }
            | Self::TurnedOff { name, .. } => name,
        }
    }
}

impl fmt::Debug for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Self::Added { .. } => "Added",
            Self::Allowed { .. } => "Allowed",
            Self::Removed { .. } => "Removed",
            Self::TurnedOff { .. } => "TurnedOff",
        };
        write!(f, "{kind}({:?})", self.name())
    }
}

/// The outcome of taking back an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "an edit is there, or it is not")]
pub enum TakenBack {
    /// It was taken back.
    Done,
    /// The file has changed at this place since then: that change is kept.
    Changed,
}

/// A file of another client that is being edited.
#[derive(Clone)]
pub struct ClientFile {
    client: Client,
    file: PathBuf,
    syntax: Syntax,
    /// The text without a byte order mark, with line feeds only.
    text: String,
    has_mark: bool,
    has_carriage_returns: bool,
    edits: Vec<Edit>,
}

/// Shows no text: it may hold secrets.
impl fmt::Debug for ClientFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientFile")
            .field("client", &self.client)
            .field("file", &self.file)
            .field("edits", &self.edits)
            .finish_non_exhaustive()
    }
}

impl ClientFile {
    /// Reads a file of `client`. The second value is its text as it is; `None` if it does not exist.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn open(client: Client, file: &Path) -> Result<(Self, Option<String>), ConfigProblem> {
        let text = disk::read_whole(file)?;
        let edited = Self::of(client, file, text.as_deref().unwrap_or_default())?;
        Ok((edited, text))
    }

    /// A file with this text.
    ///
    /// # Errors
    /// It is not written as the client writes it.
    pub fn of(client: Client, file: &Path, text: &str) -> Result<Self, ConfigProblem> {
        let plain = disk::without_mark(text);
        let syntax = match client.format().syntax {
            Syntax::Yaml if file.extension().is_some_and(|ending| ending == "json") => {
                Syntax::Jsonc
            }
            syntax => syntax,
        };
        let mut edited = Self {
            client,
            file: file.to_owned(),
            syntax,
            text: plain.replace("\r\n", "\n"),
            has_mark: plain.len() != text.len(),
            has_carriage_returns: plain.contains("\r\n"),
            edits: Vec::new(),
        };
        if edited.is_json() && plain.trim().is_empty() {
            "{}\n".clone_into(&mut edited.text);
        } else {
            edited.value(&edited.text)?;
        }
        if edited.written() != text && !plain.trim().is_empty() {
            let problem =
                ConfigProblem::new(file, "some of its lines end with \\r\\n, some with \\n");
            return Err(problem.advice("give all of them the same end"));
        }
        Ok(edited)
    }

    /// Whether a server of this file is Plexus.
    pub fn has_plexus(&self) -> bool {
        self.servers().iter().any(|server| server.is_plexus)
    }

    /// Adds Plexus, which is started with `command`. Does nothing if the file has it.
    ///
    /// # Errors
    /// The file has another server of its name, or cannot be edited safely.
    pub fn register(&mut self, command: &[String]) -> Result<(), ConfigProblem> {
        if !self.has_plexus() {
            let mut servers = self.servers().into_iter();
            if servers.any(|server| server.name.eq_ignore_ascii_case(PLEXUS)) {
                let problem =
                    ConfigProblem::new(&self.file, "there is another server of this name");
                return Err(problem.server(PLEXUS).advice("rename it"));
            }
            self.add(command)?;
        }
        self.allow()
    }

    fn add(&mut self, command: &[String]) -> Result<(), ConfigProblem> {
        let entry = self.format().writing.entry(command);
        let is_list = self.format().writing.is_list;
        let holder = self.holder();
        let text = match self.syntax {
            Syntax::Json | Syntax::Jsonc => {
                JsonText::parse(&self.text).and_then(|text| text.add(holder, PLEXUS, &entry))
            }
            Syntax::Toml => edit_toml::add(&self.text, holder, PLEXUS, &entry),
            Syntax::Yaml => YamlText::parse(&self.text)
                .and_then(|text| text.add(holder, PLEXUS, &entry, is_list)),
        };
        let definition: Value = entry
            .decode()
            .map_err(|error| self.problem(&error.to_string()))?;
        self.accept(text, |root| {
            match root.entry(holder).or_insert(Value::Null) {
                Value::Array(servers) => servers.push(definition),
                Value::Object(servers) => {
                    servers.insert(PLEXUS.to_owned(), definition);
                }
                none @ Value::Null if is_list => *none = Value::Array(vec![definition]),
                none @ Value::Null => {
                    let servers = [(PLEXUS.to_owned(), definition)];
                    *none = Value::Object(servers.into_iter().collect());
                }
                _ => {}
            }
        })?;
        let name = PLEXUS.to_owned();
        self.edits.push(Edit::Added { name });
        Ok(())
    }

    /// Adds Plexus to the list of servers that are turned on, if there is one.
    fn allow(&mut self) -> Result<(), ConfigProblem> {
        if !self.is_json() {
            return Ok(());
        }
        let pushed = JsonText::parse(&self.text).map(|text| text.push(ALLOWED, PLEXUS));
        let Some(text) = pushed.map_err(|what| self.problem(what))? else {
            return Ok(());
        };
        self.accept(Ok(text), |root| {
            if let Some(Value::Array(allowed)) = allowed(root) {
                allowed.push(PLEXUS.into());
            }
        })?;
        let name = PLEXUS.to_owned();
        self.edits.push(Edit::Allowed { name });
        Ok(())
    }

    /// Whether a server is turned on: `None` if there is no such server.
    pub fn is_turned_on(&self, name: &str) -> Option<bool> {
        let servers = self.servers();
        let server = servers.iter().find(|server| server.name == name)?;
        let disabled = server.definition.get("disabled").map(Raw::as_str);
        Some(disabled != Some("true"))
    }

    /// Turns a server off, or removes it if the client has no other way. Does nothing if it is off
    /// or is not there.
    ///
    /// # Errors
    /// The file cannot be edited safely.
    pub fn disable(&mut self, name: &str) -> Result<(), ConfigProblem> {
        if self.is_turned_on(name) != Some(true) {
            return Ok(());
        }
        let edit = match self.format().writing.disabling {
            Disabling::Removal => {
                let text = self.remove(name)?;
                let name = name.to_owned();
                Edit::Removed { name, text }
            }
            Disabling::Key(key, after) => {
                let before = self.set(name, key, Some(after))?;
                Edit::TurnedOff {
                    name: name.to_owned(),
                    key: key.to_owned(),
                    before,
                    after,
                }
            }
        };
        self.edits.push(edit);
        Ok(())
    }

    /// Takes back an edit that was made earlier.
    ///
    /// # Errors
    /// The file cannot be edited safely.
    pub fn take_back(&mut self, edit: &Edit) -> Result<TakenBack, ConfigProblem> {
        let state = self.is_turned_on(edit.name());
        match edit {
            Edit::Added { name } => {
                let servers = self.servers();
                let added = servers.iter().find(|server| server.name == *name);
                if !added.is_some_and(|server| server.is_plexus) {
                    return Ok(TakenBack::Changed);
                }
                self.remove(name)?;
            }
            Edit::Allowed { name } => {
                let pulled = JsonText::parse(&self.text).map(|text| text.pull(ALLOWED, name));
                let Some(text) = pulled.map_err(|what| self.problem(what))? else {
                    return Ok(TakenBack::Changed);
                };
                self.accept(Ok(text), |root| {
                    if let Some(Value::Array(allowed)) = allowed(root) {
                        allowed.retain(|allowed| allowed != name.as_str());
                    }
                })?;
            }
            Edit::Removed { name, text } if state.is_none() => self.restore(name, text)?,
            Edit::TurnedOff {
                name, key, before, ..
            } if state == Some(false) => {
                self.set(name, key, *before)?;
            }
            Edit::Removed { .. } | Edit::TurnedOff { .. } => return Ok(TakenBack::Changed),
        }
        Ok(TakenBack::Done)
    }

    /// The edits that were made.
    pub fn edits(&self) -> &[Edit] {
        &self.edits
    }

    /// The whole text, with its byte order mark and line ends.
    pub fn written(&self) -> String {
        let text = if self.has_carriage_returns {
            self.text.replace('\n', "\r\n")
        } else {
            self.text.clone()
        };
        let mark = if self.has_mark { "\u{feff}" } else { "" };
        format!("{mark}{text}")
    }

    /// The keys of what this text and an earlier one hold that differ. Values are not shown: they may
    /// be secrets.
    ///
    /// # Errors
    /// The earlier text is not written as the client writes it.
    pub fn changed_keys(&self, earlier: &str) -> Result<Vec<String>, ConfigProblem> {
        let earlier = Self::of(self.client, &self.file, earlier)?;
        let before = earlier.value(&earlier.text)?;
        Ok(differences(&before, &self.value(&self.text)?))
    }

    /// Removes a server, and returns its text.
    fn remove(&mut self, name: &str) -> Result<String, ConfigProblem> {
        let holder = self.holder();
        let removed = match self.syntax {
            Syntax::Json | Syntax::Jsonc => {
                JsonText::parse(&self.text).and_then(|text| text.remove(holder, name))
            }
            Syntax::Toml => {
                edit_toml::remove(&self.text, holder, name).map(|text| (text, String::new()))
            }
            Syntax::Yaml => YamlText::parse(&self.text).and_then(|text| text.remove(holder, name)),
        };
        let (text, removed) = removed.map_err(|what| self.problem(what))?;
        self.accept(Ok(text), |root| without(root, holder, name))?;
        Ok(removed)
    }

    fn restore(&mut self, name: &str, written: &str) -> Result<(), ConfigProblem> {
        let holder = self.holder();
        let text = match self.syntax {
            Syntax::Json | Syntax::Jsonc => {
                JsonText::parse(&self.text).and_then(|text| text.restore(holder, written))
            }
            Syntax::Toml => Err(UNEDITABLE),
            Syntax::Yaml => {
                YamlText::parse(&self.text).and_then(|text| text.restore(holder, written))
            }
        };
        let text = text.map_err(|what| self.problem(what))?;
        let mut rest = self.value(&text)?;
        without(&mut rest, holder, name);
        let mut before = self.value(&self.text)?;
        without(&mut before, holder, name);
        self.text = text;
        let is_there = self.is_turned_on(name).is_some();
        // An object or list that became empty may have been removed.
        if is_there && servers_or_none(&rest, holder) == servers_or_none(&before, holder) {
            Ok(())
        } else {
            Err(self.problem(UNEDITABLE))
        }
    }

    /// Sets a truth value of a server, and returns the value before.
    fn set(
        &mut self,
        name: &str,
        key: &str,
        value: Option<bool>,
    ) -> Result<Option<bool>, ConfigProblem> {
        let holder = self.holder();
        let set = match self.syntax {
            Syntax::Json | Syntax::Jsonc => {
                JsonText::parse(&self.text).and_then(|text| text.set(holder, name, key, value))
            }
            Syntax::Toml => edit_toml::set(&self.text, holder, name, key, value),
            Syntax::Yaml => {
                YamlText::parse(&self.text).and_then(|text| text.set(holder, name, key, value))
            }
        };
        let (text, before) = set.map_err(|what| self.problem(what))?;
        self.accept(Ok(text), |root| {
            if let Some(Value::Object(server)) = server(root, holder, name) {
                match value {
                    Some(value) => drop(server.insert(key.to_owned(), value.into())),
                    None => drop(server.remove(key)),
                }
            }
        })?;
        Ok(before)
    }

    /// Accepts a new text if it holds what the old one holds after `expected`.
    fn accept(
        &mut self,
        text: Result<String, &'static str>,
        expected: impl FnOnce(&mut Map<String, Value>),
    ) -> Result<(), ConfigProblem> {
        let text = text.map_err(|what| self.problem(what))?;
        let mut before = self.value(&self.text)?;
        expected(&mut before);
        let holder = self.holder();
        let is_expected = self
            .value(&text)
            .is_ok_and(|after| servers_or_none(&after, holder) == servers_or_none(&before, holder));
        if !is_expected {
            return Err(self.problem(UNEDITABLE));
        }
        self.text = text;
        Ok(())
    }

    fn value(&self, text: &str) -> Result<Map<String, Value>, ConfigProblem> {
        let raw = self.syntax.parse(&self.file, text)?;
        if raw.kind() == Kind::Null {
            return Ok(Map::new());
        }
        raw.decode()
            .map_err(|_other| self.problem("the file is not an object"))
    }

    fn servers(&self) -> Vec<ImportedServer> {
        let servers = super::read(self.client, &self.file, &self.text).servers;
        let is_global = |server: &ImportedServer| server.project.is_none();
        servers.into_iter().filter(is_global).collect()
    }

    fn format(&self) -> &'static ClientFormat {
        self.client.format()
    }

    fn holder(&self) -> &'static str {
        self.format().servers.first().copied().unwrap_or_default()
    }

    fn is_json(&self) -> bool {
        matches!(self.syntax, Syntax::Json | Syntax::Jsonc)
    }

    fn problem(&self, what: &str) -> ConfigProblem {
        let problem = ConfigProblem::new(&self.file, what.to_owned());
        if what == UNEDITABLE {
            problem.advice("add Plexus by hand, as docs/clients.md shows")
        } else {
            problem
        }
    }
}

impl Writing {
    /// The entry of Plexus, which is started with `command`.
    pub(super) fn entry(&self, command: &[String]) -> Raw {
        let mut entry = Object::new();
        let given = |entry: &mut Object, members: &[(&'static str, &'static str)]| {
            for (key, value) in members {
                entry.set(*key, Raw::from_static(value));
            }
        };
        given(&mut entry, self.head);
        match (&self.command, command) {
            (CommandKeys::Split(key), [program, args @ ..]) => {
                entry.set(*key, literal(program));
                entry.set("args", literal(args));
            }
            _ => {
                entry.set("command", literal(command));
            }
        }
        given(&mut entry, self.tail);
        entry.to_raw()
    }
}

/// A value on one line.
pub(super) fn inline(raw: &Raw) -> String {
    if let Some(members) = json::members(raw) {
        let members = members
            .iter()
            .map(|(key, value)| format!("{}: {}", Raw::string(key).as_str(), inline(value)));
        let members: Vec<_> = members.collect();
        return match members.as_slice() {
            [] => "{}".to_owned(),
            members => format!("{{ {} }}", members.join(", ")),
        };
    }
    match raw.elements() {
        Some(elements) => {
            let elements: Vec<_> = elements.map(|element| inline(&element)).collect();
            format!("[{}]", elements.join(", "))
        }
        None => raw.as_str().to_owned(),
    }
}
