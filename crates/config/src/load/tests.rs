use std::fs;

use tempfile::TempDir;

use super::*;
use crate::entry::Kind;

/// A home and a project in it, with the given files.
struct Fixture {
    directory: TempDir,
    locations: Locations,
}

impl Fixture {
    fn new(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().join("home");
        let locations = Locations {
            explicit: Vec::new(),
            project_dir: home.join("project"),
            config_dir: Some(home.join(".config/plexus")),
            home: Some(home),
        };
        fs::create_dir_all(&locations.project_dir).unwrap();
        let fixture = Self {
            directory,
            locations,
        };
        for (name, text) in files {
            fixture.write(name, text.as_bytes());
        }
        fixture
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("home").join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let file = self.path(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, bytes).unwrap();
    }

    fn load(&self) -> Loaded {
        load(&self.locations, &|name| {
            (name == "COMMAND").then(|| "from environment".to_owned())
        })
    }

    /// The problems, with paths relative to the home directory; each must be one line.
    fn problems(&self) -> Vec<String> {
        let home = format!("{}/", self.path("").display()).replace("//", "/");
        let problems = self.load().problems;
        let lines: Vec<_> = problems
            .iter()
            .map(|problem| problem.to_string().replace(&home, ""))
            .collect();
        assert!(
            lines.iter().all(|line| line.lines().count() == 1),
            "{lines:?}"
        );
        lines
    }
}

fn names(loaded: &Loaded) -> Vec<&str> {
    let servers = loaded.servers.iter();
    servers.map(|server| server.name.as_str()).collect()
}

fn command(entry: &ServerEntry) -> &str {
    match &entry.kind {
        Kind::Stdio { command, .. } => command.expanded(),
        other => panic!("{other:?}"),
    }
}

/// A file with one server, whose command is the file's name.
fn file_with(servers: &[&str], command: &str) -> String {
    let servers: Vec<_> = servers
        .iter()
        .map(|name| format!("{name:?}: {{\"command\": {command:?}}}"))
        .collect();
    format!("{{\"mcpServers\": {{{}}}}}", servers.join(", "))
}

/// S001-37, C24, S001-38, S000-24, S000-25, S000-26
#[test]
fn files_have_precedence_per_server() {
    let mut fixture = Fixture::new(&[
        (".mcp.json", &file_with(&["a", "b", "c", "d", "e"], "user")),
        (
            ".claude/settings.local.json",
            &file_with(&["a", "b", "c", "d"], "user-local"),
        ),
        ("project/.mcp.json", &file_with(&["c", "b", "a"], "project")),
        (
            "project/.claude/settings.local.json",
            &file_with(&["a", "b"], "local"),
        ),
        ("given.json", &file_with(&["a"], "explicit")),
    ]);
    fixture.locations.explicit = vec![fixture.path("given.json")];
    let loaded = fixture.load();
    assert_eq!(loaded.problems, []);
    let found: Vec<_> = loaded
        .servers
        .iter()
        .map(|server| (server.name.as_str(), command(server), server.source.scope))
        .collect();
    let expected = [
        ("a", "explicit", Scope::Explicit),
        ("b", "local", Scope::Local),
        ("c", "project", Scope::Project),
        ("d", "user-local", Scope::User),
        ("e", "user", Scope::User),
    ];
    assert_eq!(found, expected);
    assert_eq!(
        loaded.servers[2].source.file,
        fixture.path("project/.mcp.json")
    );
}

/// S001-59, S001-13: without any file there are no servers, and no problems.
#[test]
fn missing_files_are_silent() {
    let fixture = Fixture::new(&[]);
    let loaded = fixture.load();
    assert_eq!((names(&loaded).len(), loaded.problems.len()), (0, 0));
    let watched = [
        "project/.claude/settings.local.json",
        "project/.mcp.json",
        ".config/plexus/servers.json",
        ".claude/settings.local.json",
        ".mcp.json",
        "project/plexus.toml",
        ".config/plexus/plexus.toml",
        "project/.claude/settings.json",
        ".claude/settings.json",
    ];
    assert_eq!(loaded.files, watched.map(|name| fixture.path(name)));
}

/// S004-K109.
#[test]
fn a_file_that_was_named_must_be_there() {
    let mut fixture = Fixture::new(&[]);
    fixture.locations.explicit = vec![fixture.path("none.json")];
    assert_eq!(fixture.problems(), ["none.json: there is no such file"]);
}

/// S001-40, S001-60, S004-K108, S001-D05: one file is broken, the others work.
#[test]
fn a_broken_file_keeps_none_from_working() {
    let broken: [(&[u8], &str); 9] = [
        (
            b"{\n  \"mcpServers\": {",
            "project/.mcp.json:2:17: not JSON: ",
        ),
        (b"{\n  // note\n}", "project/.mcp.json:2:3: not JSON: "),
        (b"", "project/.mcp.json:1:1: the file is empty"),
        (
            b"[]",
            "project/.mcp.json: an object is expected, not a list",
        ),
        (
            b"{\"mcpServers\": []}",
            "project/.mcp.json: mcpServers: an object is expected",
        ),
        (
            b"{\"servers\": {}}",
            "project/.mcp.json: mcpServers: there is no \"mcpServers\"",
        ),
        (b"\xff\xfe{\0}\0", "project/.mcp.json: the file is UTF-16"),
        (
            b"{\"\xff\": 1}",
            "project/.mcp.json:1:3: the file is not UTF-8",
        ),
        (
            b"{\"mcpServers\": {\"a\": {\"command\": \"x\"}}, \"mcpServers\": {}}",
            "project/.mcp.json: mcpServers: the key is in the file twice",
        ),
    ];
    for (bytes, start) in broken {
        let fixture = Fixture::new(&[(".mcp.json", &file_with(&["works"], "x"))]);
        fixture.write("project/.mcp.json", bytes);
        let problems = fixture.problems();
        assert!(
            problems.len() == 1 && problems[0].starts_with(start),
            "{problems:?}"
        );
        assert!(names(&fixture.load()).contains(&"works"));
    }
}

#[test]
fn a_directory_in_place_of_a_file_is_a_problem() {
    let fixture = Fixture::new(&[(".mcp.json", &file_with(&["works"], "x"))]);
    fs::create_dir(fixture.path("project/.mcp.json")).unwrap();
    let expected = ["project/.mcp.json: this is a directory, not a file"];
    assert_eq!(fixture.problems(), expected);
    assert_eq!(names(&fixture.load()), ["works"]);
}

#[test]
fn a_byte_order_mark_does_no_harm() {
    let text = format!("\u{feff}{}", file_with(&["a"], "x"));
    let fixture = Fixture::new(&[("project/.mcp.json", &text)]);
    assert_eq!(names(&fixture.load()), ["a"]);
    assert_eq!(fixture.problems(), [""; 0]);
}

/// S004-K107.
#[test]
fn settings_files_need_not_name_servers() {
    let fixture = Fixture::new(&[
        (
            "project/.claude/settings.local.json",
            r#"{"permissions": {"allow": []}}"#,
        ),
        ("project/.mcp.json", "{}"),
        (".mcp.json", r#"{"mcpServers": null}"#),
    ]);
    assert_eq!(fixture.problems(), [""; 0]);
}

/// Problems name file, server and key, and never affect the other servers.
#[test]
fn a_broken_server_keeps_none_from_working() {
    let text = r#"{"mcpServers": {
        "typo": {"comand": "x"},
        "unset": {"command": "x", "env": {"TOKEN": "${NOT_SET}"}},
        "": {"command": "x"},
        "works": {"command": "${COMMAND}"}
    }}"#;
    let fixture = Fixture::new(&[("project/.mcp.json", text)]);
    let expected = [
        "project/.mcp.json: server \"typo\": command: there is neither a command nor a url; give the program to start as command, or a URL as url",
        "project/.mcp.json: server \"unset\": env.TOKEN: the environment variable NOT_SET is not set; set it, or write ${NOT_SET:-default}",
        "project/.mcp.json: server \"\": the name is empty",
    ];
    assert_eq!(fixture.problems(), expected);
    let loaded = fixture.load();
    assert_eq!(names(&loaded), ["works"]);
    assert_eq!(command(&loaded.servers[0]), "from environment");
}

#[test]
fn a_broken_server_is_not_replaced_by_one_of_the_same_name() {
    let fixture = Fixture::new(&[
        (
            "project/.mcp.json",
            r#"{"mcpServers": {"a": {"command": 1}}}"#,
        ),
        (".mcp.json", &file_with(&["a", "b"], "user")),
    ]);
    assert_eq!(names(&fixture.load()), ["b"]);
    assert_eq!(fixture.problems().len(), 1);
}

#[test]
fn a_name_that_stands_twice_is_refused_visibly() {
    let text = r#"{"mcpServers": {
        "GitHub": {"command": "first"},
        "github": {"command": "second"},
        "time": {"command": "first"},
        "time": {"command": "second"}
    }}"#;
    let fixture = Fixture::new(&[
        ("project/.mcp.json", text),
        (
            ".mcp.json",
            &file_with(&["TIME", "GitHub", "works"], "user"),
        ),
    ]);
    let loaded = fixture.load();
    assert_eq!(names(&loaded), ["GitHub", "time", "works"]);
    assert!(
        loaded.servers[..2]
            .iter()
            .all(|server| command(server) == "first")
    );
    let problems = fixture.problems();
    let expected = [
        "project/.mcp.json: server \"github\": the name differs only in case from \"GitHub\"",
        "project/.mcp.json: server \"time\": the name is in the file twice",
        ".mcp.json: server \"TIME\": the name differs only in case from \"time\"",
    ];
    assert_eq!(problems.len(), expected.len(), "{problems:?}");
    for (problem, start) in problems.iter().zip(expected) {
        assert!(problem.starts_with(start), "{problem}");
    }
}

#[test]
fn names_may_have_any_characters() {
    let odd = ["a b/c", "日本", "line\nbreak", "mcp__x__y", "\u{202e}x"];
    let fixture = Fixture::new(&[("project/.mcp.json", &file_with(&odd[..2], "x"))]);
    assert_eq!(names(&fixture.load()), odd[..2]);
    let text = r#"{"mcpServers": {"line\nbreak": {"command": 1}, "mcp__x__y": {"command": "x"}}}"#;
    let fixture = Fixture::new(&[("project/.mcp.json", text)]);
    assert_eq!(names(&fixture.load()), ["mcp__x__y"]);
    assert!(fixture.problems()[0].contains(r#"server "line\nbreak""#));
}

/// S004-K106.
#[test]
fn two_hundred_servers_are_loaded_in_order() {
    let expected: Vec<_> = (0..200).map(|index| format!("server-{index}")).collect();
    let expected: Vec<_> = expected.iter().map(String::as_str).collect();
    let fixture = Fixture::new(&[("project/.mcp.json", &file_with(&expected, "x"))]);
    let loaded = fixture.load();
    assert_eq!(names(&loaded), expected);
    assert_eq!(loaded.problems, []);
}

#[test]
fn environment_files_stand_beside_the_configuration_and_are_watched() {
    let text = r#"{"mcpServers": {"a": {"command": "${NAME}", "env_file": "secrets/.env"}}}"#;
    let fixture = Fixture::new(&[
        ("project/.mcp.json", text),
        ("project/secrets/.env", "NAME=found"),
    ]);
    let loaded = fixture.load();
    assert_eq!(command(&loaded.servers[0]), "found");
    assert!(loaded.files.contains(&fixture.path("project/secrets/.env")));
}

/// An approval stays valid while only variables change, or the layout of the file.
#[test]
fn an_approval_covers_the_written_definition() {
    let text = r#"{"mcpServers": {"a": {"command": "${NAME:-x}", "env_file": ".env"}}}"#;
    let fixture = Fixture::new(&[("project/.mcp.json", text), ("project/.env", "A=1")]);
    let entry = |name: &str| {
        let name = name.to_owned();
        let loaded = load(&fixture.locations, &|_| Some(name.clone()));
        loaded.servers[0].clone()
    };
    let first = entry("one");
    let second = entry("two");
    assert_eq!(first.approval(), second.approval());
    assert_ne!(first.fingerprint(), second.fingerprint());

    fixture.write("project/.mcp.json", text.replace(": ", ":\n  ").as_bytes());
    assert_eq!(entry("one").approval(), first.approval());
    fixture.write("project/.env", b"A=2");
    assert_ne!(entry("one").approval(), first.approval());
    fixture.write("project/.env", b"A=1");
    let trusted = text.replace("\"command\"", "\"trusted\": true, \"command\"");
    fixture.write("project/.mcp.json", trusted.as_bytes());
    assert_ne!(entry("one").approval(), first.approval());
    assert_eq!(entry("one").fingerprint(), first.fingerprint());
}

#[test]
fn settings_are_loaded_with_the_servers() {
    let fixture = Fixture::new(&[(".config/plexus/plexus.toml", "[hub]\nstart = \"lazy\"")]);
    assert_eq!(
        fixture.load().settings.hub.start,
        super::settings::Start::Lazy
    );
}

#[test]
fn a_file_that_cannot_be_read_is_a_problem() {
    let mut fixture = Fixture::new(&[(".mcp.json", &file_with(&["works"], "x"))]);
    fixture.locations.explicit = vec![fixture.path(&"x".repeat(300))];
    let problems = fixture.problems();
    assert!(
        problems[0].contains(": the file cannot be read: "),
        "{problems:?}"
    );
    assert_eq!(names(&fixture.load()), ["works"]);
}

/// A definition is validated before a command writes it.
#[test]
fn a_definition_is_checked_before_it_is_written() {
    let fixture = Fixture::new(&[("project/.env", "A=b")]);
    let source = Source::new(Scope::Project, fixture.path("project/.mcp.json"));
    let check = |name: &str, definition: &'static str| {
        let definition = Raw::parse(definition.into(), &json::LIMITS).unwrap();
        super::check(name, &definition, &source, &fixture.locations, &|_| None)
    };
    let entry = check("a", r#"{"command": "x", "env_file": ".env"}"#).unwrap();
    assert!(matches!(entry.kind, Kind::Stdio { env, .. } if env.len() == 1));
    for definition in [
        r#"{"command": "${NONE}"}"#,
        r#"{"command": "x", "env_file": "none"}"#,
    ] {
        let problem = check("a", definition).unwrap_err();
        assert!(problem.is_about_environment(), "{problem}");
    }
    for (name, definition) in [("a", "{}"), ("a", "[]"), ("", r#"{"command": "x"}"#)] {
        let problem = check(name, definition).unwrap_err();
        assert!(!problem.is_about_environment(), "{problem}");
        assert_eq!(problem.file, source.file);
    }
}
