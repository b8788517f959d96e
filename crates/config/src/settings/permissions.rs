//! Permissions in the settings files of Claude Code (`.claude/settings.json`), in two forms: a list
//! of rules, and the lists of Claude Code.
//!
//! A rule that cannot be understood is a [`ConfigProblem`]. It allows nothing. If it may ask or
//! deny, it holds as far as it can be read; if it cannot be read at all, only tools that another
//! rule allows can be used.

use std::path::Path;

use globset::Glob;
use plexus_mcp_wire::{Kind as JsonKind, Raw};
use serde::Deserialize;

use crate::entry::{Digest, Scope, Source};
use crate::problem::ConfigProblem;
use crate::{disk, json};

use super::{Action, AgentToolRule, Mode, Policy, Rule};

/// The key of the permissions.
const KEY: &str = "permissions";
/// The lists of Claude Code, in the order in which they rank.
const LISTS: [(&str, Action); 3] = [
    ("deny", Action::Deny),
    ("ask", Action::Ask),
    ("allow", Action::Allow),
];
/// The prefix of the tools of MCP servers in Claude Code's lists.
const MCP: &str = "mcp__";
/// The consequence of permissions that cannot be read.
pub(super) const UNTIL_REPAIRED: &str = "until then, only tools that a rule allows can be used";

/// The permissions of several files, the one with precedence first.
#[derive(Debug, Default)]
pub(super) struct Permissions {
    /// The `deny` lists of all files, then the `ask` lists.
    strict: Vec<Rule>,
    /// The lists of rules.
    listed: Vec<Rule>,
    /// The `allow` lists.
    allowed: Vec<Rule>,
    /// The rules about tools of the agent itself.
    agent_tools: Vec<AgentToolRule>,
    /// Whether a rule that may deny calls cannot be read.
    is_uncertain: bool,
}

/// A rule of a list, as the file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRule {
    tool: String,
    pattern: Option<String>,
    action: Action,
}

/// The meaning of a rule in one of Claude Code's lists.
enum Meaning {
    /// It is about a tool of the agent itself, such as `Bash(git log:*)`: the tool, and what is in
    /// the brackets.
    AgentTool(String, Option<String>),
    /// The tools that this glob matches.
    Tools(String),
    /// It cannot be understood, for this reason. At most the tools that the glob matches are meant.
    Unclear(String, &'static str),
}

impl Permissions {
    /// Reads the permissions of these files.
    pub(super) fn read(sources: &[Source], problems: &mut Vec<ConfigProblem>) -> Self {
        let mut permissions = Self::default();
        for source in sources {
            let before = problems.len();
            if let Err(problem) = permissions.file(source, problems) {
                // A directory of that name has no rules.
                if source.file.is_dir() {
                    if !problems.contains(&problem) {
                        problems.push(problem);
                    }
                } else {
                    permissions.is_uncertain = true;
                    report(problem, problems);
                }
            }
            for problem in problems.iter_mut().skip(before) {
                *problem = problem.clone().of_permissions();
            }
        }
        // A list of one file must not undo a stricter list of another.
        permissions
            .strict
            .sort_by_key(|rule| rule.action != Action::Deny);
        permissions
    }

    /// Adds the rules behind those of `policy`, and returns those that come after all others.
    pub(super) fn add_behind(self, policy: &mut Policy) -> Vec<Rule> {
        policy.agent_tools.extend(self.agent_tools);
        policy.rules.extend(self.strict);
        policy.rules.extend(self.listed);
        restrict(policy, self.is_uncertain);
        self.allowed
    }

    /// Adds the rules in front of those of `policy`, and returns those that come after all others.
    pub(super) fn add_in_front(self, policy: &mut Policy) -> Vec<Rule> {
        policy.agent_tools.extend(self.agent_tools);
        let rules = self.strict.into_iter().chain(self.listed);
        policy.rules.splice(0..0, rules);
        restrict(policy, self.is_uncertain);
        self.allowed
    }

    fn file(
        &mut self,
        source: &Source,
        problems: &mut Vec<ConfigProblem>,
    ) -> Result<(), ConfigProblem> {
        let file = &source.file;
        let text = disk::read(file)?.unwrap_or_default();
        if text.trim().is_empty() {
            return Ok(());
        }
        let root = json::parse(file, &text)?;
        let is_not = |what: &str| ConfigProblem::new(file, format!("{what} is expected"));
        let members = json::members(&root).ok_or_else(|| is_not("an object"))?;
        let mut found = members.iter().filter(|(key, _)| key == KEY);
        let Some((_, permissions)) = found.next() else {
            return Ok(());
        };
        if found.next().is_some() {
            return Err(ConfigProblem::new(file, "the key is in the file twice")
                .key(KEY)
                .advice(format!("merge them; {UNTIL_REPAIRED}")));
        }
        match permissions.kind() {
            JsonKind::Null => {}
            JsonKind::Array => self.rules(source, permissions, problems),
            JsonKind::Object => self.lists(source, permissions, problems),
            _ => {
                let expected = "a list of rules, or an object with the lists allow, ask and deny,";
                return Err(is_not(expected).key(KEY));
            }
        }
        Ok(())
    }

    /// Reads a list of rules (S001-14, C29).
    fn rules(&mut self, source: &Source, list: &Raw, problems: &mut Vec<ConfigProblem>) {
        for (index, rule) in elements(list).iter().enumerate() {
            let key = format!("{KEY}[{index}]");
            match WrittenRule::read(rule) {
                Ok(written) => {
                    let mut rule = new_rule(source, written.tool, written.action);
                    rule.pattern = written.pattern;
                    self.listed.push(rule);
                }
                Err(what) => {
                    let problem = ConfigProblem::new(&source.file, what).key(key);
                    let written = r#"write {"tool": "mcp__SERVER__TOOL", "action": "ask"}"#;
                    problems.push(if allows(rule) {
                        problem.advice(format!("{written}; it allows nothing until then"))
                    } else {
                        self.is_uncertain = true;
                        problem.advice(format!("{written}; {UNTIL_REPAIRED}"))
                    });
                }
            }
        }
    }

    /// Reads the lists of Claude Code. Other members are settings of Claude Code itself.
    fn lists(&mut self, source: &Source, object: &Raw, problems: &mut Vec<ConfigProblem>) {
        let members = json::members(object).unwrap_or_default();
        for (name, list) in &members {
            let problem =
                |what: &str| ConfigProblem::new(&source.file, what).key(format!("{KEY}.{name}"));
            let known = LISTS.into_iter().find(|(known, _)| known == name);
            let Some((_, action)) = known else {
                let lower = name.to_lowercase();
                if LISTS.iter().any(|(known, _)| *known == lower) {
                    self.is_uncertain = true;
                    let advice = format!("write {lower:?}; {UNTIL_REPAIRED}");
                    problems.push(problem("there is no such list").advice(advice));
                }
                continue;
            };
            if list.kind() != JsonKind::Array {
                self.is_uncertain |= action != Action::Allow;
                problems.push(problem("a list is expected").advice(UNTIL_REPAIRED));
                continue;
            }
            for (index, rule) in elements(list).iter().enumerate() {
                self.ranked(source, action, rule).unwrap_or_else(|what| {
                    let key = format!("{KEY}.{name}[{index}]");
                    problems.push(ConfigProblem::new(&source.file, &*what).key(key).advice(
                        match action {
                            Action::Allow => "it allows nothing until it is corrected",
                            _ => "write mcp__SERVER__TOOL, or mcp__SERVER for all its tools",
                        },
                    ));
                });
            }
        }
    }

    /// Reads a rule of Claude Code's lists, or says what is wrong with it.
    fn ranked(&mut self, source: &Source, action: Action, rule: &Raw) -> Result<(), String> {
        let Ok(text) = rule.decode::<String>() else {
            self.is_uncertain |= action != Action::Allow;
            return Err("a text is expected".to_owned());
        };
        let (glob, wrong) = match Meaning::of(&text, action) {
            Meaning::AgentTool(tool, specifier) => {
                self.agent_tools.push(AgentToolRule {
                    tool,
                    specifier,
                    action,
                    file: source.file.clone(),
                    is_of_project: source.scope != Scope::User,
                });
                return Ok(());
            }
            Meaning::Tools(glob) => (glob, None),
            Meaning::Unclear(_, wrong) if action == Action::Allow => return Err(wrong.to_owned()),
            Meaning::Unclear(glob, wrong) => (glob, Some(wrong)),
        };
        let rule = new_rule(source, glob, action);
        match action {
            Action::Allow => self.allowed.push(rule),
            Action::Ask | Action::Deny => self.strict.push(rule),
        }
        wrong.map_or(Ok(()), |wrong| {
            Err(format!(
                "{wrong}, so it holds for all calls that it may mean"
            ))
        })
    }
}

impl WrittenRule {
    fn read(raw: &Raw) -> Result<Self, String> {
        let rule: Self = raw.decode().map_err(|error| {
            let text = error.to_string();
            // The position is one in the rule, not in the file.
            text.split(" at line ")
                .next()
                .unwrap_or_default()
                .to_owned()
        })?;
        for glob in [Some(&rule.tool), rule.pattern.as_ref()]
            .into_iter()
            .flatten()
        {
            Glob::new(glob).map_err(|error| error.to_string())?;
        }
        Ok(rule)
    }
}

impl Meaning {
    fn of(text: &str, action: Action) -> Self {
        let (tool, input) = match text.split_once('(') {
            Some((tool, input)) => (tool, Some(input)),
            None => (text, None),
        };
        let is_own = |letter: char| letter.is_ascii_alphanumeric() || letter == '*';
        if tool.starts_with(|first: char| first.is_ascii_uppercase()) && tool.chars().all(is_own) {
            let specifier = input.map(|rest| rest.strip_suffix(')').unwrap_or(rest).to_owned());
            return Self::AgentTool(tool.to_owned(), specifier);
        }
        let glob = glob(tool);
        let Some(named) = tool.strip_prefix(MCP) else {
            return match (tool, action) {
                ("*", Action::Ask | Action::Deny) => Self::Tools(glob),
                _ => Self::Unclear(
                    glob,
                    "it names neither a tool of a server nor one of the client",
                ),
            };
        };
        // The client's rules for MCP tools have no conditions on the arguments.
        if input.is_some() {
            return Self::Unclear(glob, "a rule for a tool of a server takes no arguments");
        }
        let server = named.split("__").next().unwrap_or_default();
        // As in Claude Code: otherwise the rule would allow the tools of servers to come.
        if action == Action::Allow && (server.is_empty() || server.contains('*')) {
            return Self::Unclear(glob, "a rule that allows tools names their server");
        }
        Self::Tools(glob)
    }
}

/// A glob for a name in Claude Code's lists, where only `*` has a meaning, and the name of a server
/// stands for all of its tools.
fn glob(name: &str) -> String {
    let glob = globset::escape(name).replace("[*]", "*");
    let is_server = name
        .strip_prefix(MCP)
        .is_some_and(|named| !named.contains("__") && !named.ends_with('*'));
    if is_server { glob + "__*" } else { glob }
}

fn new_rule(source: &Source, tool: String, action: Action) -> Rule {
    let mut rule = Rule::new(tool, action, &source.file);
    rule.awaits_approval = action == Action::Allow && source.scope != Scope::User;
    rule
}

/// Whether a rule that cannot be read only allows something.
fn allows(rule: &Raw) -> bool {
    #[derive(Deserialize)]
    struct OnlyAction {
        action: Action,
    }
    let action = rule.decode::<OnlyAction>().map(|rule| rule.action);
    action.is_ok_and(|action| action == Action::Allow)
}

fn elements(list: &Raw) -> Vec<Raw> {
    list.decode().unwrap_or_default()
}

fn restrict(policy: &mut Policy, is_uncertain: bool) {
    if is_uncertain {
        policy.mode = Mode::DontAsk;
    }
}

/// Adds a problem of a whole file, which may have been reported for its servers already.
fn report(mut problem: ConfigProblem, problems: &mut Vec<ConfigProblem>) {
    let mut known = problems.iter_mut();
    let known = known.find(|known| {
        known.file == problem.file
            && known.position == problem.position
            && known.what == problem.what
    });
    let advice = |advice: Option<&str>| match advice {
        Some(advice) if advice.contains(UNTIL_REPAIRED) => advice.to_owned(),
        Some(advice) => format!("{advice}; {UNTIL_REPAIRED}"),
        None => UNTIL_REPAIRED.to_owned(),
    };
    if let Some(known) = known {
        known.advice = Some(advice(known.advice.as_deref()).into());
    } else {
        problem.advice = Some(advice(problem.advice.as_deref()).into());
        problems.push(problem);
    }
}

impl Policy {
    /// The files whose rules allow nothing yet, because the user has not approved them.
    pub fn files_awaiting_approval(&self) -> Vec<&Path> {
        let rules = self.rules.iter().filter(|rule| rule.awaits_approval);
        let mut files: Vec<_> = rules.map(|rule| rule.file.as_path()).collect();
        files.sort_unstable();
        files.dedup();
        files
    }

    /// A problem for each of these files, which says how to approve it.
    pub fn unapproved(&self) -> Vec<ConfigProblem> {
        let files = self.files_awaiting_approval().into_iter();
        let problem = |file| {
            ConfigProblem::new(
                file,
                "it allows tools, which holds only once you approve it",
            )
            .key(KEY)
            .advice("to see its rules and approve them: plexus trust")
            .of_permissions()
        };
        files.map(problem).collect()
    }

    /// Identifies the rules of a file: an approval is for exactly these rules, in this order.
    pub fn approval_of(&self, file: &Path) -> [u8; 32] {
        let mut digest = Digest::new("permissions");
        for rule in self.rules.iter().filter(|rule| rule.file == file) {
            digest.text(&rule.tool);
            digest.text(match rule.pattern {
                Some(_) => "pattern",
                None => "any arguments",
            });
            digest.text(rule.pattern.as_deref().unwrap_or_default());
            digest.text(rule.action.as_str());
        }
        digest.finish()
    }

    /// Lets the rules of a file allow calls, because the user has approved them.
    pub fn approve(&mut self, file: &Path) {
        for rule in &mut self.rules {
            rule.awaits_approval &= rule.file != file;
        }
    }
}

#[cfg(test)]
mod tests;
