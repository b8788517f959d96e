use plexus_mcp_core::Principal;
use plexus_mcp_protocol::messages::ToolAnnotations;
use plexus_mcp_wire::Limits;

use super::*;

const FILE: &str = "/etc/plexus.toml";

fn rule(tool: &str, action: Action) -> Rule {
    Rule::new(tool, action, FILE)
}

fn with_pattern(tool: &str, pattern: &str, action: Action) -> Rule {
    let mut rule = rule(tool, action);
    rule.pattern = Some(pattern.to_owned());
    rule
}

fn settings(mode: Mode, rules: Vec<Rule>) -> config::Policy {
    let mut settings = config::Policy::default();
    (settings.rules, settings.mode) = (rules, mode);
    settings
}

fn raw(json: &str) -> Raw {
    Raw::parse(json.to_owned().into(), &Limits::default()).unwrap()
}

fn action(decision: Decision<'_>) -> Action {
    match decision {
        Decision::Allow => Action::Allow,
        Decision::Ask(_) => Action::Ask,
        Decision::Deny(_) => Action::Deny,
    }
}

/// The decision of these rules about a call, behind a client that asks its user.
fn decided(rules: &[Rule], server: &str, tool: &str, arguments: &str) -> Action {
    let policy = Policy::behind_client(&settings(Mode::Default, rules.to_vec()));
    let shown = format!("{}__{tool}", server.replace(' ', "_"));
    let facts = ToolFacts::new(&shown, server, tool);
    action(policy.decide(&facts, &raw(arguments)))
}

/// C28, S001-45, S001-74, S001-D01: real globs, over each of the names.
#[test]
fn globs_match_any_name_of_a_tool() {
    for glob in [
        "mcp__github__*",
        "mcp__*",
        "mcp__*__delete_*",
        "github__*",
        "github.delete_repo",
        "*.delete_*",
        "{gitlab,github}__delete_rep?",
    ] {
        let rules = [rule(glob, Action::Ask)];
        assert_eq!(
            decided(&rules, "github", "delete_repo", "{}"),
            Action::Ask,
            "{glob}"
        );
        let other = decided(&rules, "fs", "read", "{}");
        assert_eq!(other == Action::Ask, glob == "mcp__*", "{glob}");
    }
    for glob in ["github", "delete_repo", "mcp__git__*", "MCP__GITHUB__*"] {
        let rules = [rule(glob, Action::Ask)];
        assert_eq!(
            decided(&rules, "github", "delete_repo", "{}"),
            Action::Allow,
            "{glob}"
        );
    }
    for glob in [
        "mcp__my server__*",
        "mcp__my_server__*",
        "my_server__*",
        "my server.*",
    ] {
        let rules = [rule(glob, Action::Deny)];
        assert_eq!(
            decided(&rules, "my server", "x", "{}"),
            Action::Deny,
            "{glob}"
        );
    }
}

/// C29, S001-45: any deny wins, wherever it stands; otherwise the first match decides.
#[test]
fn denies_win_and_then_the_first_match() {
    let github = rule("mcp__github__*", Action::Allow);
    let all = rule("mcp__*", Action::Ask);
    let deletions = rule("*delete*", Action::Deny);
    let rules = [github.clone(), all.clone()];
    assert_eq!(decided(&rules, "github", "search", "{}"), Action::Allow);
    assert_eq!(decided(&rules, "fs", "read", "{}"), Action::Ask);
    let turned = [all.clone(), github.clone()];
    assert_eq!(decided(&turned, "github", "search", "{}"), Action::Ask);
    for rules in [
        [github.clone(), all.clone(), deletions.clone()],
        [deletions, github, all],
    ] {
        assert_eq!(decided(&rules, "github", "delete_repo", "{}"), Action::Deny);
        assert_eq!(decided(&rules, "github", "search", "{}"), Action::Allow);
    }
}

/// S001-14, C28: strings at any depth, and the arguments as compact JSON, are matched, however they
/// are escaped.
#[test]
fn strict_patterns_match_any_text_among_the_arguments() {
    let rules = |pattern| [with_pattern("*", pattern, Action::Deny)];
    for (pattern, arguments) in [
        ("rm *", r#"{"command":"rm -r /"}"#),
        ("rm *", r#"{"a":[1,{"b":["x","rm -r\n/"]}]}"#),
        ("rm *", r#"{"command":"\u0072m -r /"}"#),
        ("rm *", r#"{"command":"rm -r /","command":"ls"}"#),
        (r#"*"force":true*"#, r#"{ "force" : true , "n": 1 }"#),
        (
            r#"{"a":\[1,"x",null,-2,0.5\],"b":\{\}\}"#,
            r#"{"a": [1, "x", null, -2, 0.5], "b": {}}"#,
        ),
        ("*", "{}"),
        ("rm *", r#"{"command":"\ud800"}"#),
    ] {
        let decision = decided(&rules(pattern), "sh", "run", arguments);
        assert_eq!(decision, Action::Deny, "{pattern} in {arguments}");
    }
    for arguments in [r#"{"command":"ls"}"#, r#"{"command":"echo rm x"}"#, "{}"] {
        let decision = decided(&rules("rm *"), "sh", "run", arguments);
        assert_eq!(decision, Action::Allow, "{arguments}");
    }
}

/// An argument that matches must not let another pass that does not.
#[test]
fn allowing_patterns_must_match_every_string() {
    let rules = [
        with_pattern("*", "git *", Action::Allow),
        rule("*", Action::Ask),
    ];
    for (arguments, expected) in [
        (r#"{"command":"git log"}"#, Action::Allow),
        (r#"{"command":"git log","timeout":5}"#, Action::Allow),
        (r#"{"command":"rm -r /","comment":"git log"}"#, Action::Ask),
        (r#"{"command":"git log","command":"rm -r /"}"#, Action::Ask),
        (r#"{"command":"git \ud800"}"#, Action::Ask),
        ("{}", Action::Ask),
    ] {
        assert_eq!(
            decided(&rules, "sh", "run", arguments),
            expected,
            "{arguments}"
        );
    }
}

/// C26, S001-35, S004-K101: the mode decides about calls that no rule matches.
#[test]
fn modes_decide_what_no_rule_matches() {
    let facts = ToolFacts::new("fs__read", "fs", "read");
    let rules = vec![rule("other__*", Action::Deny)];
    for (mode, alone, behind_client) in [
        (
            Mode::DangerouslySkipPermissions,
            Action::Allow,
            Action::Allow,
        ),
        (Mode::Default, Action::Ask, Action::Allow),
        (Mode::DontAsk, Action::Deny, Action::Deny),
    ] {
        let settings = settings(mode, rules.clone());
        let decide = |policy: Policy| action(policy.decide(&facts, &raw("{}")));
        assert_eq!(decide(Policy::new(&settings)), alone, "{mode:?}");
        assert_eq!(
            decide(Policy::behind_client(&settings)),
            behind_client,
            "{mode:?}"
        );
    }
}

/// C26: rules take precedence over every mode.
#[test]
fn no_mode_skips_a_denial_or_forgets_a_permission() {
    let rules = vec![
        rule("fs__write", Action::Deny),
        rule("fs__read", Action::Allow),
    ];
    for mode in [
        Mode::DangerouslySkipPermissions,
        Mode::Default,
        Mode::DontAsk,
    ] {
        let policy = Policy::new(&settings(mode, rules.clone()));
        let decide = |shown: &str, tool: &str| {
            action(policy.decide(&ToolFacts::new(shown, "fs", tool), &raw("{}")))
        };
        assert_eq!(decide("fs__write", "write"), Action::Deny, "{mode:?}");
        assert_eq!(decide("fs__read", "read"), Action::Allow, "{mode:?}");
    }
}

/// Annotations are read from the definition of the tool; those that cannot be parsed are ignored.
#[test]
fn annotations_are_those_of_the_definition() {
    let facts = |annotations: &str, trusted| {
        let text = format!(r#"{{"name":"read","annotations":{annotations}}}"#);
        let definition = Raw::parse(text.into(), &plexus_mcp_wire::Limits::default()).unwrap();
        ToolFacts::new("fs__read", "fs", "read").defined_by(definition, trusted)
    };
    assert!(facts(r#"{"readOnlyHint":true}"#, true).is_harmless());
    assert!(!facts(r#"{"readOnlyHint":true}"#, false).is_harmless());
    assert!(facts(r#"{"destructiveHint":true}"#, false).is_destructive());
    assert!(!facts("7", true).is_harmless() && !facts("7", true).is_destructive());
}

/// C26: annotations lower the risk only for trusted servers, and no annotation overrides a rule.
#[test]
fn annotations_lower_risk_only_for_trusted_servers() {
    let read_only = ToolAnnotations::new().read_only(true);
    let facts =
        |trusted| ToolFacts::new("fs__read", "fs", "read").annotated(read_only.clone(), trusted);
    let unnamed = Policy::new(&settings(Mode::Default, Vec::new()));
    assert_eq!(
        action(unnamed.decide(&facts(false), &raw("{}"))),
        Action::Ask
    );
    assert_eq!(
        action(unnamed.decide(&facts(true), &raw("{}"))),
        Action::Allow
    );
    let asking = Policy::new(&settings(Mode::Default, vec![rule("fs__*", Action::Ask)]));
    assert_eq!(action(asking.decide(&facts(true), &raw("{}"))), Action::Ask);
    let strict = Policy::new(&settings(Mode::DontAsk, Vec::new()));
    assert_eq!(
        action(strict.decide(&facts(true), &raw("{}"))),
        Action::Deny
    );
}

/// C26: warnings are believed from any server, unless a trusted server says otherwise.
#[test]
fn annotations_raise_risk_for_everybody() {
    let facts = |annotations: ToolAnnotations, trusted| {
        ToolFacts::new("fs__write", "fs", "write").annotated(annotations, trusted)
    };
    let destructive = ToolAnnotations::new().destructive(true);
    assert!(facts(destructive.clone(), false).is_destructive());
    assert!(facts(destructive.clone(), true).is_destructive());
    let both = destructive.read_only(true);
    assert!(facts(both.clone(), false).is_destructive());
    assert!(!facts(both, true).is_destructive());
}

#[test]
fn a_rule_with_a_broken_glob_lets_nothing_through() {
    for broken in [
        |action| rule("[", action),
        |action| with_pattern("*", "[", action),
    ] {
        for (action, expected) in [
            (Action::Allow, Action::Ask),
            (Action::Ask, Action::Ask),
            (Action::Deny, Action::Deny),
        ] {
            let rules = [broken(action), rule("*", Action::Ask)];
            assert_eq!(decided(&rules, "fs", "read", "{}"), expected, "{action:?}");
        }
    }
}

#[test]
fn reasons_name_the_rule_and_its_file() {
    let rules = vec![with_pattern("fs__*", "*.env", Action::Deny)];
    let policy = Policy::new(&settings(Mode::Default, rules));
    let facts = ToolFacts::new("fs__read", "fs", "read");
    let Decision::Deny(reason) = policy.decide(&facts, &raw(r#"{"path":"a/.env"}"#)) else {
        panic!("it is denied");
    };
    let expected =
        r#"the rule { tool = "fs__*", pattern = "*.env", action = "deny" } in /etc/plexus.toml"#;
    assert_eq!(reason.to_string(), expected);
}

/// A rule may match some callers only, by their principal or by the scopes of their tokens.
#[test]
fn a_rule_may_be_about_some_callers() {
    let peer = |principal: &str, scopes: Option<&[&str]>| {
        let none = plexus_mcp_protocol::messages::ClientCapabilities::none();
        let revision = plexus_mcp_protocol::Revision::V2026_07_28;
        let peer = plexus_mcp_core::Peer::new(revision, none, None, Principal::new(principal));
        peer.holding(scopes.map(|scopes| scopes.iter().copied().collect()))
    };
    let decided = |change: &dyn Fn(&mut Rule), peer: &plexus_mcp_core::Peer| {
        let mut rule = rule("fs__*", Action::Deny);
        change(&mut rule);
        let policy = Policy::behind_client(&settings(Mode::Default, vec![rule]));
        let facts = ToolFacts::new("fs__write", "fs", "write").called_by(peer);
        action(policy.decide(&facts, &raw("{}")))
    };
    let reader = peer("https://as.example alice", Some(&["read"]));
    let writer = peer("token:ci", Some(&["read", "write"]));
    let local = peer("anonymous", None);
    let callers = [&reader, &writer, &local];

    let by = |change: &dyn Fn(&mut Rule)| callers.map(|peer| decided(change, peer));
    let is = |condition: &'static str| {
        move |rule: &mut Rule| rule.principal = Some(condition.to_owned())
    };
    let allows =
        |condition: &'static str| move |rule: &mut Rule| rule.scope = Some(condition.to_owned());
    let [allow, deny] = [Action::Allow, Action::Deny];
    assert_eq!(by(&is("token:*")), [allow, deny, allow]);
    assert_eq!(by(&is("!token:*")), [deny, allow, deny]);
    assert_eq!(by(&is("https://as.example *")), [deny, allow, allow]);
    assert_eq!(by(&allows("write")), [allow, deny, allow]);
    assert_eq!(by(&allows("!write")), [deny, allow, allow]);
    // A condition that is not a valid glob must not let anything through.
    assert_eq!(by(&is("[")), [deny, deny, deny]);
}

/// A decision by the definition: any rule that denies wins, otherwise the first that matches.
fn scanned<'a>(policy: &'a Policy, tool: &ToolFacts<'_>, arguments: &Raw) -> Decision<'a> {
    let arguments = Arguments::new(arguments);
    let matching = policy
        .rules
        .iter()
        .filter(|rule| rule.can_match(tool) && rule.matches_arguments(&arguments))
        .map(|rule| &rule.source);
    let denying = matching.clone().find(|rule| rule.action == Action::Deny);
    match denying.or_else(|| matching.clone().next()) {
        Some(rule) if rule.action == Action::Deny => Decision::Deny(Reason::Rule(rule)),
        Some(rule) if rule.action == Action::Ask => Decision::Ask(Reason::Rule(rule)),
        Some(_) => Decision::Allow,
        None => policy.unmatched(tool),
    }
}

/// The cache of applicable rules changes no decision, for any order of rules, tool, caller and
/// arguments.
#[test]
fn cached_decisions_are_those_of_a_scan() {
    let mut kinds = Vec::new();
    for action in [Action::Allow, Action::Ask, Action::Deny] {
        kinds.push(rule("fs__*", action));
        kinds.push(with_pattern("*", "*secret*", action));
        let mut of_ci = rule("*__write", action);
        of_ci.principal = Some("token:ci".to_owned());
        kinds.push(of_ci);
    }
    let caller = |principal: &str| {
        let revision = plexus_mcp_protocol::Revision::NEWEST_STATELESS;
        let none = plexus_mcp_protocol::messages::ClientCapabilities::none();
        plexus_mcp_core::Peer::new(revision, none, None, Principal::new(principal))
    };
    let callers = [caller("token:ci"), caller("anonymous")];
    let arguments = [raw("{}"), raw(r#"{"path":"secret"}"#)];
    for first in &kinds {
        for second in &kinds {
            for third in &kinds {
                let rules = vec![first.clone(), second.clone(), third.clone()];
                let policy = Policy::behind_client(&settings(Mode::Default, rules));
                for (caller, tool) in callers.iter().flat_map(|c| [(c, "write"), (c, "read")]) {
                    let facts =
                        ToolFacts::new(&format!("fs__{tool}"), "fs", tool).called_by(caller);
                    for arguments in arguments.iter().chain(&arguments) {
                        assert_eq!(
                            policy.decide(&facts, arguments),
                            scanned(&policy, &facts, arguments),
                            "{:?} {facts:?} {arguments:?}",
                            policy.rules
                        );
                    }
                }
            }
        }
    }
}

/// In a first-match list the first match decides, also if a later rule of the list denies; a rule
/// that denies in another list wins. A rule that awaits approval matches nothing.
#[test]
fn the_first_match_of_a_first_match_list_decides() {
    let mut list = [
        with_pattern("git__*", "*force*", Action::Deny),
        rule("git__*", Action::Allow),
        rule("*", Action::Deny),
    ];
    for rule in &mut list {
        rule.first_match = true;
    }
    let decide = |rules: &[Rule], server, arguments| decided(rules, server, "push", arguments);
    assert_eq!(decide(&list, "git", r#"{"a":"--force"}"#), Action::Deny);
    assert_eq!(decide(&list, "git", "{}"), Action::Allow);
    assert_eq!(decide(&list, "web", "{}"), Action::Deny);
    let [first, second, last] = list;
    let elsewhere = with_pattern("git__*", "*main*", Action::Deny);
    let rules = [first, second, last.clone(), elsewhere];
    assert_eq!(decide(&rules, "git", r#"{"a":"main"}"#), Action::Deny);
    assert_eq!(decide(&rules, "git", r#"{"a":"other"}"#), Action::Allow);

    let mut waiting = rule("git__*", Action::Allow);
    waiting.awaits_approval = true;
    assert_eq!(decide(&[waiting, last], "git", "{}"), Action::Deny);
}
