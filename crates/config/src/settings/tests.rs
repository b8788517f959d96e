use std::fs;

use super::*;
use crate::entry::Scope;

/// The merged settings of a project and of a user, and their problems.
fn loaded(project: Option<&str>, user: Option<&str>) -> (Settings, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let files = [
        (Scope::Project, "project.toml", project),
        (Scope::User, "user.toml", user),
    ];
    let sources = files.map(|(scope, name, text)| {
        let file = directory.path().join(name);
        if let Some(text) = text {
            fs::write(&file, text).unwrap();
        }
        Source::new(scope, file)
    });
    let mut problems = Vec::new();
    let settings = load(&sources, &[], &mut problems);
    let directory = format!("{}/", directory.path().display());
    let problems = problems
        .iter()
        .map(|problem| problem.to_string().replace(&directory, ""));
    (settings, problems.collect())
}

const USER: &str = r#"
[policy]
mode = "dangerously-skip-permissions"
rules = [
  { tool = "mcp__github__*", action = "allow" },
  { tool = "mcp__*", pattern = "*rm*", action = "ask" },
]

[serve]
http = "localhost:8080"
sse = true
path = "/plexus"
allow_hosts = ["plexus.local"]
allow_origins = ["https://app.example"]

[access]
required = true
resource = "https://plexus.example/mcp"
scopes = ["mcp"]

[[access.issuers]]
issuer = "https://as.example"
jwks_uri = "https://as.example/keys"

[[access.issuers]]
issuer = "https://other.example"
introspection = { client_id = "plexus", client_secret = { env = "SECRET" } }

[hub]
start = "lazy"
builtin = ["task", "echo"]
page_size = 200

[limits]
max_connections = 100
call_timeout_seconds = 1.5

[clients."codex"]
search = true

[clients."claude-code"]
tools = { allow = ["github__*"], deny = ["*__delete_*"] }
"#;

#[test]
fn with_no_file_everything_has_a_default() {
    let (settings, problems) = loaded(None, None);
    assert_eq!(settings, Settings::default());
    assert_eq!(settings.policy.mode, Mode::Default);
    assert_eq!(settings.hub.start, Start::Eager);
    assert_eq!(problems, [""; 0]);
    assert_eq!(loaded(Some(""), Some("")).0, settings);
}

/// C26, C28, C29: all settings can be set in the user's file.
#[test]
fn a_user_may_set_everything() {
    let (settings, problems) = loaded(None, Some(USER));
    assert_eq!(problems, [""; 0]);
    let rules: Vec<_> = settings
        .policy
        .rules
        .iter()
        .map(|rule| (rule.tool.as_str(), rule.pattern.as_deref(), rule.action))
        .collect();
    let expected = [
        ("mcp__github__*", None, Action::Allow),
        ("mcp__*", Some("*rm*"), Action::Ask),
    ];
    assert_eq!(rules, expected);
    assert_eq!(settings.policy.mode, Mode::DangerouslySkipPermissions);
    assert_eq!(settings.serve.http, Some("127.0.0.1:8080".parse().unwrap()));
    assert!(settings.serve.sse);
    assert_eq!(settings.serve.path.as_deref(), Some("/plexus"));
    assert!(settings.access.required && !settings.access.is_uncertain);
    assert_eq!(settings.access.scopes, ["mcp"]);
    let [signed, asked] = &settings.access.issuers[..] else {
        panic!("{:?}", settings.access);
    };
    assert_eq!(signed.jwks_uri.as_deref(), Some("https://as.example/keys"));
    let client = asked.introspection.as_ref().unwrap();
    let expected = SecretReference::Variable("SECRET".to_owned());
    assert_eq!(client.client_secret, expected);
    assert_eq!(settings.hub.start, Start::Lazy);
    assert_eq!(settings.hub.builtin.as_ref().unwrap().words, "task,echo");
    assert_eq!(settings.hub.page_size, NonZeroUsize::new(200));
    assert!(settings.clients["codex"].search);
    let filter = &settings.clients["claude-code"].tools;
    assert_eq!(filter.allow(), ["github__*"]);
    assert_eq!(filter.deny(), ["*__delete_*"]);
}

/// The defaults of `[limits]` are part of what operators rely on.
#[test]
fn limits_have_defaults_and_each_can_be_changed_alone() {
    let mebibyte = 1024 * 1024;
    let Limits {
        max_message_bytes,
        max_answer_bytes,
        max_in_flight_requests,
        max_parked_calls,
        answer_timeout_seconds,
        max_connections,
        max_sessions,
        session_idle_timeout_seconds,
        max_server_message_bytes,
        call_timeout_seconds,
        call_total_timeout_seconds,
        ..
    } = loaded(None, None).0.limits;
    assert_eq!(
        (
            max_message_bytes,
            max_answer_bytes,
            max_server_message_bytes
        ),
        (mebibyte, 10 * mebibyte, 16 * mebibyte)
    );
    assert_eq!((max_in_flight_requests, max_parked_calls), (4096, 10_000));
    assert_eq!((max_connections, max_sessions), (16_384, 65_536));
    let times = [
        answer_timeout_seconds,
        call_timeout_seconds,
        session_idle_timeout_seconds,
        call_total_timeout_seconds,
    ];
    assert_eq!(times.map(|time| time.as_secs()), [300, 600, 3600, 7200]);

    let (settings, problems) = loaded(None, Some(USER));
    assert_eq!(problems, [""; 0]);
    let changed = Limits {
        max_connections: 100,
        call_timeout_seconds: Duration::from_millis(1500),
        ..Limits::default()
    };
    assert_eq!(settings.limits, changed);
}

/// A project's file is not trusted.
#[test]
fn a_project_may_only_be_stricter() {
    let project = r#"
        hub.start = "eager"
        policy.mode = "dont-ask"
        policy.rules = [{ tool = "*delete*", action = "deny" }]
    "#;
    let (settings, problems) = loaded(Some(project), Some(USER));
    assert_eq!(problems, [""; 0]);
    assert_eq!(settings.policy.mode, Mode::DontAsk);
    assert_eq!(settings.policy.rules[0].tool, "*delete*");
    assert!(settings.policy.rules[0].file.ends_with("project.toml"));
    assert_eq!(settings.policy.rules.len(), 3);
    assert_eq!(settings.hub.start, Start::Eager);

    let (settings, problems) = loaded(Some(USER), None);
    let expected = [
        "project.toml: policy.rules: a project cannot allow \"mcp__github__*\" by itself; put it into your own plexus.toml",
        "project.toml: policy.mode: a project cannot skip permissions by itself; put it into your own plexus.toml",
        "project.toml: serve: a project cannot configure how Plexus is reached; put it into your own plexus.toml",
        "project.toml: access: a project cannot configure access control; put it into your own plexus.toml",
        "project.toml: clients: a project cannot configure what clients see; put it into your own plexus.toml",
        "project.toml: limits: a project cannot set limits; put it into your own plexus.toml",
        "project.toml: hub.page_size: a project cannot set the page size; put it into your own plexus.toml",
        "project.toml: hub.builtin: a project cannot select built-in services; put it into your own plexus.toml",
    ];
    assert_eq!(problems, expected);
    assert_eq!(settings.policy.mode, Mode::Default);
    assert_eq!(settings.policy.rules.len(), 1);
    assert_eq!(settings.serve, Serve::default());
    assert_eq!(settings.access, Access::default());
    assert!(settings.clients.is_empty());
    assert_eq!(settings.limits, Limits::default());
}

/// A file that cannot be parsed may have denied anything, so nothing is allowed that no rule
/// allows.
#[test]
fn a_broken_file_allows_nothing() {
    let cases = [
        ("[policy]\nmod = \"x\"", "user.toml:2:1: ", "`mod`"),
        ("[policies]", "user.toml:1:2: ", "`policies`"),
        ("[serve]\nsse = \"yes\"", "user.toml:2:7: sse: ", "boolean"),
        (
            "[hub]\nstart = \"soon\"",
            "user.toml:2:9: start: ",
            "`soon`",
        ),
        ("[hub\n", "user.toml:1:5: ", ""),
        (
            "policy.rules = [{ tool = \"x\" }]",
            "user.toml:1:17: ",
            "`action`",
        ),
        (
            "policy.rules = [{ tool = \"[\", action = \"ask\" }]",
            "user.toml: policy.rules[0].tool: ",
            "[",
        ),
        (
            "[clients.x]\ntools = { allow = [\"{\"] }",
            "user.toml: clients.x.tools: ",
            "{",
        ),
        (
            "[clients.x]\nresources = 1",
            "user.toml:2:1: ",
            "`resources`",
        ),
        ("[hub]\nbuiltin = 1", "user.toml:2:11: builtin: ", "\"all\""),
        (
            "[hub]\npage_size = 0",
            "user.toml:2:13: page_size: ",
            "at least 1",
        ),
        (
            "[hub]\npage_size = -5",
            "user.toml:2:13: page_size: ",
            "at least 1",
        ),
        (
            "[hub]\npage_size = \"many\"",
            "user.toml:2:13: page_size: ",
            "a whole number of entries is expected",
        ),
        (
            "[clients.x]\nsearch = 1",
            "user.toml:2:10: search: ",
            "boolean",
        ),
        (
            "[limits]\nmax_conections = 5",
            "user.toml:2:1: ",
            "`max_conections`",
        ),
        (
            "[limits]\nmax_connections = \"many\"",
            "user.toml:2:19: max_connections: ",
            "a whole number is expected",
        ),
        (
            "[limits]\ncall_timeout_seconds = \"10s\"",
            "user.toml:2:24: call_timeout_seconds: ",
            "a number of seconds is expected",
        ),
        (
            "[limits]\nmax_sessions = 0",
            "user.toml: limits.max_sessions: it is 0",
            "use a whole number from 1 to 1000000",
        ),
        (
            "[limits]\nmax_message_bytes = -1",
            "user.toml: limits.max_message_bytes: it is -1",
            "use a whole number from 1024 to 1073741824",
        ),
        (
            "[limits]\nrequest_timeout_seconds = 0",
            "user.toml: limits.request_timeout_seconds: it is 0",
            "use a number of seconds from 0.001 to 2592000",
        ),
        (
            "[limits]\ncall_timeout_seconds = 10000",
            "user.toml: limits.call_timeout_seconds: it is larger than",
            "raise limits.call_total_timeout_seconds",
        ),
        ("[access]\nrequire = true", "user.toml:2:1: ", "`require`"),
        (
            "[[access.issuers]]\nissuer = \"https://as.example\"\nintrospection = { client_id = \"x\", client_secret = {} }",
            "user.toml:3:52: client_secret: ",
            "{ env = ",
        ),
        (
            "policy.rules = [{ tool = \"x\", principal = \"![\", action = \"ask\" }]",
            "user.toml: policy.rules[0].principal: ",
            "[",
        ),
        (
            "serve.http = \"nowhere\"",
            "user.toml:1:14: serve.http: ",
            "localhost:4445",
        ),
    ];
    for (text, start, words) in cases {
        let (settings, problems) = loaded(None, Some(text));
        assert_eq!(problems.len(), 1, "{problems:?}");
        let problem = &problems[0];
        assert!(problem.starts_with(start), "{problem}");
        assert!(problem.contains(words), "{problem}");
        assert_eq!(problem.lines().count(), 1, "{problem}");
        assert_eq!(settings.policy.mode, Mode::DontAsk, "{problem}");
        assert!(settings.access.is_uncertain, "{problem}");
    }
}

#[test]
fn a_broken_project_does_not_undo_the_user() {
    let (settings, problems) = loaded(Some("["), Some(USER));
    assert_eq!(problems.len(), 1);
    assert_eq!(settings.policy.mode, Mode::DontAsk);
    assert!(!settings.access.is_uncertain, "a project has no say in it");
    assert_eq!(settings.policy.rules.len(), 2);
}
