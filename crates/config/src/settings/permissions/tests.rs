use std::fs;

use tempfile::TempDir;

use super::*;
use crate::settings::{Settings, load};

const LOCAL: &str = "project/.claude/settings.local.json";
const SHARED: &str = "project/.claude/settings.json";
const MINE: &str = "home/.claude/settings.json";
const PROJECTS_TOML: &str = "project/plexus.toml";
const MY_TOML: &str = "home/plexus.toml";

struct Fixture {
    directory: TempDir,
    settings: Settings,
    problems: Vec<String>,
}

impl Fixture {
    /// The merged settings of these files.
    fn new(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let file = directory.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let source = |scope, name| Source::new(scope, directory.path().join(name));
        let settings_files = [
            source(Scope::Project, PROJECTS_TOML),
            source(Scope::User, MY_TOML),
        ];
        let permissions = [
            source(Scope::Local, LOCAL),
            source(Scope::Project, SHARED),
            source(Scope::User, MINE),
        ];
        let mut problems = Vec::new();
        let settings = load(&settings_files, &permissions, &mut problems);
        let prefix = format!("{}/", directory.path().display());
        let problems = problems.iter();
        let problems = problems.map(|problem| problem.to_string().replace(&prefix, ""));
        Self {
            problems: problems.collect(),
            settings,
            directory,
        }
    }

    /// The rules in order: tool and action, and whether the rule awaits approval.
    fn rules(&self) -> Vec<String> {
        let rules = self.settings.policy.rules.iter();
        let shown = rules.map(|rule| {
            let pattern = rule.pattern.as_deref().map(|pattern| format!(" {pattern}"));
            let waits = if rule.awaits_approval { " (waits)" } else { "" };
            let action = rule.action.as_str();
            format!(
                "{action} {}{}{waits}",
                rule.tool,
                pattern.unwrap_or_default()
            )
        });
        shown.collect()
    }
}

/// S001-12, S001-14, C29: a list of rules keeps its order.
#[test]
fn a_list_of_rules_is_read_in_order() {
    let text = r#"{"model": "opus", "permissions": [
        {"tool": "mcp__github__*", "action": "allow"},
        {"tool": "Bash", "pattern": "git *", "action": "allow"},
        {"tool": "mcp__*", "action": "ask"}
    ]}"#;
    let fixture = Fixture::new(&[(MINE, text)]);
    let expected = ["allow mcp__github__*", "allow Bash git *", "ask mcp__*"];
    assert_eq!(fixture.rules(), expected);
    assert_eq!(fixture.problems, [""; 0]);
    assert_eq!(fixture.settings.policy.mode, Mode::Default);
}

/// Claude Code's lists rank deny, ask, allow, in all files together; the name of a server stands for
/// its tools. Rules for the client's own tools are no problem, and neither are its other settings.
#[test]
fn the_lists_of_claude_code_are_ranked() {
    let mine = r#"{"permissions": {
        "allow": ["mcp__git", "mcp__my.server__read_*", "Bash(git log:*)", "WebFetch(domain:a.example)"],
        "ask": ["mcp__git__push", "*"],
        "deny": ["Read(./.env)", "mcp__files__delete"],
        "defaultMode": "acceptEdits", "additionalDirectories": ["../docs"]
    }, "env": {"A": "b"}}"#;
    let shared = r#"{"permissions": {"deny": ["mcp__web"], "ask": ["Edit", "mcp__git__commit"]}}"#;
    let fixture = Fixture::new(&[(MINE, mine), (SHARED, shared)]);
    let expected = [
        "deny mcp__web__*",
        "ask mcp__git__commit",
        "deny mcp__files__delete",
        "ask mcp__git__push",
        "ask *",
        "allow mcp__git__*",
        "allow mcp__my.server__read_*",
    ];
    assert_eq!(fixture.rules(), expected);
    assert_eq!(fixture.problems, [""; 0]);
}

/// The user's plexus.toml has precedence over the user's other files, and a project's rules come
/// first.
#[test]
fn rules_of_all_files_have_an_order() {
    let list = |tool: &str, action: &str| {
        format!(r#"{{"permissions": [{{"tool": "{tool}", "action": "{action}"}}]}}"#)
    };
    let toml = |tool: &str| format!("policy.rules = [{{ tool = {tool:?}, action = \"ask\" }}]");
    let fixture = Fixture::new(&[
        (MINE, &list("mine", "allow")),
        (LOCAL, &list("local", "ask")),
        (SHARED, &list("shared", "deny")),
        (MY_TOML, &toml("my_toml")),
        (PROJECTS_TOML, &toml("projects_toml")),
    ]);
    let expected = [
        "ask projects_toml",
        "ask local",
        "deny shared",
        "ask my_toml",
        "allow mine",
    ];
    assert_eq!(fixture.rules(), expected);
}

/// A project only makes the policy stricter until the user approves its rules. The approval is for
/// exactly these rules.
#[test]
fn what_a_project_allows_awaits_approval() {
    let local = r#"{"permissions": [
        {"tool": "mcp__git__*", "action": "allow"}, {"tool": "*", "action": "ask"}
    ]}"#;
    let shared = r#"{"permissions": {"allow": ["mcp__web__get"], "deny": ["mcp__web__post"]}}"#;
    let mut fixture = Fixture::new(&[(LOCAL, local), (SHARED, shared)]);
    let expected = [
        "deny mcp__web__post",
        "allow mcp__git__* (waits)",
        "ask *",
        "allow mcp__web__get (waits)",
    ];
    assert_eq!(fixture.rules(), expected);
    let file = |name| fixture.directory.path().join(name);
    let (local_file, shared_file) = (file(LOCAL), file(SHARED));
    let policy = &mut fixture.settings.policy;
    assert_eq!(
        policy.files_awaiting_approval(),
        [&shared_file, &local_file]
    );
    let digest = policy.approval_of(&local_file);
    assert_ne!(digest, policy.approval_of(&shared_file));
    policy.approve(&local_file);
    assert_eq!(policy.files_awaiting_approval(), [&shared_file]);
    assert_eq!(policy.approval_of(&local_file), digest);

    let turned = r#"{"permissions": [
        {"tool": "*", "action": "ask"}, {"tool": "mcp__git__*", "action": "allow"}
    ]}"#;
    let other = Fixture::new(&[(LOCAL, turned)]);
    let file = other.directory.path().join(LOCAL);
    assert_ne!(other.settings.policy.approval_of(&file), digest);
}

/// A rule that cannot be understood is reported. It allows nothing, and what it may deny stays
/// denied.
#[test]
fn rules_that_cannot_be_understood_are_reported() {
    let uncertain = Mode::DontAsk;
    for (permissions, rules, mode, expected) in [
        (
            r#"{"deny": ["mcp__git__push(--force)"]}"#,
            &["deny mcp__git__push"][..],
            Mode::Default,
            "permissions.deny[0]: a rule for a tool of a server takes no arguments, so it holds",
        ),
        (
            r#"{"ask": ["git__push"]}"#,
            &["ask git__push"],
            Mode::Default,
            "permissions.ask[0]: it names neither a tool of a server nor one of the client",
        ),
        (
            r#"{"allow": ["mcp__*", "mcp__git__log"]}"#,
            &["allow mcp__git__log"],
            Mode::Default,
            "permissions.allow[0]: a rule that allows tools names their server",
        ),
        (
            r#"{"allow": ["mcp__git__log(x)"]}"#,
            &[],
            Mode::Default,
            "permissions.allow[0]: a rule for a tool of a server takes no arguments; it allows",
        ),
        (
            r#"{"deny": [7]}"#,
            &[],
            uncertain,
            "permissions.deny[0]: a text is expected",
        ),
        (
            r#"{"deny": "mcp__git"}"#,
            &[],
            uncertain,
            "permissions.deny: a list is expected",
        ),
        (
            r#"{"Deny": ["mcp__git"]}"#,
            &[],
            uncertain,
            "permissions.Deny: there is no such list",
        ),
        (
            "7",
            &[],
            uncertain,
            "permissions: a list of rules, or an object with the lists",
        ),
        (
            r#"[{"tool": "x", "action": "block"}]"#,
            &[],
            uncertain,
            "permissions[0]: unknown variant `block`",
        ),
        (
            r#"[{"tool": "x["  , "action": "deny"}]"#,
            &[],
            uncertain,
            "permissions[0]: ",
        ),
        (
            r#"[{"tool": "x", "action": "deny", "when": "now"}]"#,
            &[],
            uncertain,
            "permissions[0]: unknown field `when`",
        ),
        (
            r#"[{"tools": "x", "action": "allow"}]"#,
            &[],
            Mode::Default,
            "permissions[0]: unknown field `tools`",
        ),
    ] {
        let fixture = Fixture::new(&[(MINE, &format!(r#"{{"permissions": {permissions}}}"#))]);
        assert_eq!(fixture.rules(), rules, "{permissions}");
        assert_eq!(fixture.settings.policy.mode, mode, "{permissions}");
        let [problem] = &fixture.problems[..] else {
            panic!("{permissions}: {:?}", fixture.problems);
        };
        let expected = format!("{MINE}: {expected}");
        assert!(problem.starts_with(&expected), "{problem}");
        assert_eq!(problem.lines().count(), 1, "{problem}");
    }
    let broken = Fixture::new(&[(MINE, "{\"permissions\": [")]);
    assert_eq!(broken.settings.policy.mode, uncertain);
    let [problem] = &broken.problems[..] else {
        panic!("{:?}", broken.problems);
    };
    assert!(problem.starts_with(&format!("{MINE}:1:")), "{problem}");
    assert!(problem.ends_with(UNTIL_REPAIRED), "{problem}");
    assert_eq!(Fixture::new(&[(MINE, "\n")]).problems, [""; 0]);
}
