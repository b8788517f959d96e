//! Rules about tools of the host in Claude Code's form: `Bash(git log:*)`, `Read(./.env)`, `Edit`.
//!
//! A rule that denies or asks holds if any part of a call matches; a rule that allows, only if every
//! part does. A command has parts where the shell has operators such as `&&`, `;` and `|`.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use plexus_mcp_config::{Action, AgentToolRule};
use plexus_mcp_wire::Raw;
use serde::Deserialize;

const BASH: &str = "Bash";
/// The tools that a rule for the first also applies to.
const FAMILIES: [&[&str]; 2] = [&["Read", "Glob", "Grep"], &["Edit", "Write"]];
/// With these, a command may run others that are not seen.
const SUBSTITUTIONS: [&str; 5] = ["$(", "`", "<(", ">(", "${"];

/// The rules, ready to be matched.
#[derive(Debug, Default)]
pub(super) struct AgentRules {
    rules: Vec<CompiledRule>,
    root: PathBuf,
}

#[derive(Debug)]
struct CompiledRule {
    source: AgentToolRule,
    tool: GlobMatcher,
    condition: Condition,
}

#[derive(Debug)]
enum Condition {
    /// All calls.
    Always,
    /// Commands that begin with this.
    CommandPrefix(String),
    /// Commands that match.
    Command(GlobMatcher),
    /// Paths that match, in the form of `.gitignore`.
    Path(Gitignore),
    /// It cannot be understood, so a rule that allows never matches, and any other always.
    Unclear,
}

/// What the rules decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RuleDecision {
    pub(super) action: Action,
    /// The rule, as text.
    pub(super) rule: String,
}

/// The arguments that rules look at.
#[derive(Deserialize, Default)]
struct Looked {
    command: Option<String>,
    file_path: Option<String>,
    path: Option<String>,
    /// Whether nothing in the command is substituted or redirected.
    #[serde(skip)]
    is_plain: bool,
}

impl AgentRules {
    /// The rules for an agent that works in `root`, whose user has this home directory. What a
    /// project's file allows does not count: its author could have written it.
    pub(super) fn new(rules: &[AgentToolRule], root: &Path, home: Option<&Path>) -> Self {
        let counting = rules
            .iter()
            .filter(|rule| !(rule.is_of_project && rule.action == Action::Allow));
        Self {
            rules: counting
                .filter_map(|rule| CompiledRule::new(rule, root, home))
                .collect(),
            root: root.to_owned(),
        }
    }

    /// The decision about a call: that of a rule that denies, else one that asks, else one that
    /// allows; `None` if no rule matches.
    pub(super) fn decide(&self, tool: &str, input: &Raw) -> Option<RuleDecision> {
        let looked: Looked = input.decode().unwrap_or_default();
        let looked = Looked {
            is_plain: is_plain(looked.command.as_deref().unwrap_or_default()),
            ..looked
        };
        // Each command in an allowed one may be allowed by another rule.
        let command = looked.command.as_deref().unwrap_or_default();
        let several = parts(command).count() > 1 && tool == BASH && looked.is_plain;
        let each_is_allowed = several && {
            let of_part = |part: &str| Looked {
                command: Some(part.to_owned()),
                is_plain: true,
                ..Looked::default()
            };
            parts(command).all(|part| self.first(Action::Allow, tool, &of_part(part)).is_some())
        };
        [Action::Deny, Action::Ask, Action::Allow]
            .into_iter()
            .find_map(|action| {
                let rule = match self.first(action, tool, &looked) {
                    Some(rule) => rule.as_text(),
                    None if each_is_allowed && action == Action::Allow => {
                        "rules for each of its commands".to_owned()
                    }
                    None => return None,
                };
                Some(RuleDecision { action, rule })
            })
    }

    fn first(&self, action: Action, tool: &str, looked: &Looked) -> Option<&CompiledRule> {
        let mut rules = self.rules.iter();
        rules.find(|rule| rule.source.action == action && rule.matches(tool, looked, &self.root))
    }

    /// Whether a rule denies reading this file.
    pub(super) fn hides(&self, path: &Path) -> bool {
        self.rules.iter().any(|rule| {
            let denies_reading = rule.source.action == Action::Deny && rule.is_for("Read");
            denies_reading
                && matches!(&rule.condition, Condition::Path(paths) if is_in(paths, path))
        })
    }
}

impl CompiledRule {
    fn new(rule: &AgentToolRule, root: &Path, home: Option<&Path>) -> Option<Self> {
        let tool = GlobBuilder::new(&rule.tool).build().ok()?.compile_matcher();
        let condition = match rule.specifier.as_deref() {
            None | Some("*" | "**" | "") => Condition::Always,
            Some(specifier) if tool.is_match(BASH) && rule.tool != "*" => command(specifier),
            Some(specifier) => path(specifier, root, home),
        };
        Some(Self {
            source: rule.clone(),
            tool,
            condition,
        })
    }

    /// Whether the rule is for this tool, or for one of its family: who may not edit a file may not
    /// write it either.
    fn is_for(&self, tool: &str) -> bool {
        let is_related = |family: &&[&str]| {
            family.contains(&tool)
                && family
                    .first()
                    .is_some_and(|named| *named == self.source.tool)
        };
        self.tool.is_match(tool) || FAMILIES.iter().any(is_related)
    }

    fn matches(&self, tool: &str, looked: &Looked, root: &Path) -> bool {
        if !self.is_for(tool) {
            return false;
        }
        let allows = self.source.action == Action::Allow;
        match &self.condition {
            Condition::Always => true,
            Condition::Unclear => !allows,
            Condition::CommandPrefix(prefix) => {
                self.command_matches(looked, |part| begins_with(part, prefix, allows))
            }
            Condition::Command(glob) => self.command_matches(looked, |part| glob.is_match(part)),
            Condition::Path(paths) => {
                let given = looked.file_path.as_deref().or(looked.path.as_deref());
                let path = given.map_or_else(|| root.to_owned(), |given| root.join(given));
                is_in(paths, &path)
            }
        }
    }

    fn command_matches(&self, looked: &Looked, matches: impl Fn(&str) -> bool) -> bool {
        let command = looked.command.as_deref().unwrap_or_default();
        let mut parts = parts(command).peekable();
        if self.source.action != Action::Allow {
            return matches(command.trim()) || parts.any(matches);
        }
        looked.is_plain && parts.peek().is_some() && parts.all(matches)
    }

    fn as_text(&self) -> String {
        let AgentToolRule {
            tool,
            specifier,
            action,
            file,
            ..
        } = &self.source;
        let condition = specifier.as_ref();
        let condition = condition.map_or_else(String::new, |text| format!("({text})"));
        format!(
            "the rule {tool}{condition} in the list {:?} of {}",
            action.as_str(),
            file.display()
        )
    }
}

fn is_plain(command: &str) -> bool {
    !SUBSTITUTIONS.iter().any(|mark| command.contains(mark)) && !command.contains(['<', '>'])
}

/// The commands between the operators of the shell. Quotes are not looked at: a part that is one word
/// of a longer text only makes a rule stricter.
fn parts(command: &str) -> impl Iterator<Item = &str> {
    let parts = command.split(['\n', ';', '|', '&']);
    parts.map(str::trim).filter(|part| !part.is_empty())
}

/// A rule that allows `git log` does not allow `git logs`.
fn begins_with(part: &str, prefix: &str, whole_words: bool) -> bool {
    let Some(rest) = part.strip_prefix(prefix) else {
        return false;
    };
    !whole_words || rest.is_empty() || rest.starts_with(char::is_whitespace)
}

fn command(specifier: &str) -> Condition {
    if let Some(prefix) = specifier.strip_suffix(":*") {
        return Condition::CommandPrefix(prefix.trim().to_owned());
    }
    let glob = globset::escape(specifier).replace("[*]", "*");
    let glob = GlobBuilder::new(&glob).literal_separator(false).build();
    glob.map_or(Condition::Unclear, |glob| {
        Condition::Command(glob.compile_matcher())
    })
}

/// A path in the form of `.gitignore`: `//x` is absolute, `~/x` in the home directory, and others are
/// in the directory of the agent.
fn path(specifier: &str, root: &Path, home: Option<&Path>) -> Condition {
    let (base, pattern) = if let Some(rest) = specifier.strip_prefix("//") {
        (Path::new("/"), format!("/{rest}"))
    } else if let Some(rest) = specifier.strip_prefix("~/") {
        let Some(home) = home else {
            return Condition::Unclear;
        };
        (home, format!("/{rest}"))
    } else if let Some(rest) = specifier.strip_prefix("./") {
        (root, format!("/{rest}"))
    } else {
        (root, specifier.to_owned())
    };
    let mut builder = GitignoreBuilder::new(base);
    match builder
        .add_line(None, &pattern)
        .and_then(|builder| builder.build())
    {
        Ok(paths) => Condition::Path(paths),
        Err(_invalid) => Condition::Unclear,
    }
}

fn is_in(paths: &Gitignore, path: &Path) -> bool {
    let path = lexical(path);
    let resolved = path.canonicalize().unwrap_or_else(|_new| path.clone());
    [path, resolved].iter().any(|path| {
        path.starts_with(paths.path())
            && paths
                .matched_path_or_any_parents(path, path.is_dir())
                .is_ignore()
    })
}

/// The path without `.` and `..`, so that they cannot be used to get around a rule.
pub(crate) fn lexical(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn rules(rules: &[(&str, Action)]) -> AgentRules {
        let rules: Vec<_> = rules
            .iter()
            .map(|(text, action)| {
                let (tool, specifier) = match text.split_once('(') {
                    Some((tool, rest)) => (tool, rest.strip_suffix(')')),
                    None => (*text, None),
                };
                AgentToolRule {
                    tool: tool.to_owned(),
                    specifier: specifier.map(str::to_owned),
                    action: *action,
                    file: "settings.json".into(),
                    is_of_project: false,
                }
            })
            .collect();
        AgentRules::new(&rules, Path::new("/project"), Some(Path::new("/home/ada")))
    }

    fn decided(rules: &AgentRules, tool: &str, input: &Value) -> Option<Action> {
        let input = Raw::encode(input).unwrap();
        rules.decide(tool, &input).map(|decision| decision.action)
    }

    #[test]
    fn commands_are_allowed_only_as_a_whole() {
        let rules = rules(&[
            ("Bash(git log:*)", Action::Allow),
            ("Bash(make)", Action::Allow),
        ]);
        for (command, is_allowed) in [
            ("git log", true),
            ("git log --oneline", true),
            ("git log; git log -1", true),
            ("make", true),
            ("make && git log", true),
            ("git logs", false),
            ("git log; rm -r .", false),
            ("git log | sh", false),
            ("git log & rm -r .", false),
            ("git log\nrm -r .", false),
            ("git log $(rm -r .)", false),
            ("git log `rm -r .`", false),
            ("git log > /etc/passwd", false),
            ("make all", false),
            ("", false),
        ] {
            let decision = decided(&rules, "Bash", &json!({"command": command}));
            let expected = is_allowed.then_some(Action::Allow);
            assert_eq!(decision, expected, "{command}");
        }
        assert_eq!(
            decided(&rules, "Read", &json!({"file_path": "git log"})),
            None
        );
    }

    #[test]
    fn a_command_is_denied_if_a_part_of_it_is() {
        let rules = rules(&[("Bash(rm:*)", Action::Deny), ("Bash", Action::Allow)]);
        for (command, expected) in [
            ("rm -r .", Action::Deny),
            ("ls && rm x", Action::Deny),
            ("rmdir x", Action::Deny),
            ("ls", Action::Allow),
        ] {
            let decision = decided(&rules, "Bash", &json!({"command": command}));
            assert_eq!(decision, Some(expected), "{command}");
        }
    }

    #[test]
    fn paths_are_matched_however_they_are_written() {
        let rules = rules(&[
            ("Read(./.env)", Action::Deny),
            ("Read(secrets/**)", Action::Deny),
            ("Read(~/.ssh/**)", Action::Deny),
            ("Edit(//etc/**)", Action::Deny),
        ]);
        for (tool, input, is_denied) in [
            ("Read", json!({"file_path": ".env"}), true),
            ("Read", json!({"file_path": "/project/src/../.env"}), true),
            ("Read", json!({"file_path": "src/.env"}), false),
            ("Grep", json!({"path": "secrets/deep/key"}), true),
            ("Read", json!({"file_path": "/home/ada/.ssh/id"}), true),
            ("Write", json!({"file_path": "/etc/passwd"}), true),
            ("Edit", json!({"file_path": "/project/etc/passwd"}), false),
            ("Write", json!({"file_path": ".env"}), false),
        ] {
            let expected = is_denied.then_some(Action::Deny);
            assert_eq!(decided(&rules, tool, &input), expected, "{tool} {input}");
        }
        assert!(rules.hides(Path::new("/project/secrets/key")));
        assert!(!rules.hides(Path::new("/project/src/main.rs")));
    }

    /// A rule that cannot be understood allows nothing, and a project's file allows nothing.
    #[test]
    fn what_is_unclear_or_of_a_project_allows_nothing() {
        let unclear = rules(&[("Read(~/x)", Action::Allow)]);
        let rule = unclear.rules[0].source.clone();
        let no_home = AgentRules::new(std::slice::from_ref(&rule), Path::new("/project"), None);
        assert_eq!(decided(&no_home, "Read", &json!({"file_path": "/x"})), None);
        let of_project = AgentToolRule {
            specifier: None,
            is_of_project: true,
            ..rule
        };
        let deny = AgentToolRule {
            action: Action::Deny,
            tool: "Bash".to_owned(),
            ..of_project.clone()
        };
        let rules = AgentRules::new(&[of_project, deny], Path::new("/project"), None);
        assert_eq!(decided(&rules, "Read", &json!({"file_path": "x"})), None);
        assert_eq!(decided(&rules, "Bash", &json!({})), Some(Action::Deny));
    }
}
