use std::fs;

use super::*;

/// The problems of a file in a project, without the path.
fn problems(name: &str, text: &str) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(name);
    fs::write(&file, text).unwrap();
    let locations = Locations::of(directory.path(), &|_| None);
    let found = check_file(&file, &locations, &|_| None).unwrap();
    let folder = format!("{}/", directory.path().display());
    found
        .iter()
        .map(|problem| problem.to_string().replace(&folder, ""))
        .collect()
}

#[test]
fn problems_of_settings_have_a_line_and_the_nearest_key() {
    let cases = [
        (
            "[hub]\nstrat = \"lazy\"\n",
            "my.toml:2:1: unknown field `strat`, expected one of `start`",
            "; did you mean start?",
        ),
        ("[hub]\nstart = 1\n", "my.toml:2:9: start: ", ""),
        (
            "[limits]\nmax_batch_messages = 5\nmax_sessions = 0\n",
            "my.toml:3:1: limits.max_sessions: it is 0",
            "from 1 to 1000000",
        ),
        (
            "[policy]\nrules = [\n  { tool = \"a\", action = \"ask\" },\n  { tool = \"[\", action = \"ask\" },\n]\n",
            "my.toml:4:5: policy.rules[1].tool: ",
            "",
        ),
        (
            "\n[clients.\"a.b\"]\ntools = { deny = [\"[\"] }\n",
            "my.toml:3:1: clients.a.b.tools: ",
            "",
        ),
    ];
    for (text, begin, part) in cases {
        let found = problems("my.toml", text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(begin), "{found:?}");
        assert!(found[0].contains(part), "{found:?}");
    }
    assert_eq!(problems("my.toml", "[hub]\nstart = \"lazy\"\n"), [""; 0]);
}

/// Only the file of the project itself is limited.
#[test]
fn the_file_of_a_project_is_checked_as_such() {
    let text = "[hub]\nstart = \"lazy\"\npage_size = 5\n";
    let found = problems("plexus.toml", text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("plexus.toml:3:1: hub.page_size: "),
        "{found:?}"
    );
    assert_eq!(problems("other.toml", text), [""; 0]);
}

#[test]
fn problems_of_servers_have_a_line_and_the_nearest_key() {
    let text = r#"
{
  "mcpServers": {
    "good": { "command": "x", "_note": "of another client" },
    "slip": {
      "command": "x",
      "timeoutMs": 5
    },
    "wrong": {
      "command": "x",
      "env": {
        "A.B": ["c"]
      }
    },
    "unset": {
      "command": "x",
      "args": ["a", "${NO_SUCH_VARIABLE}"]
    },
    "empty": {},
    "Good": { "command": "y" }
  }
}
"#;
    let found = problems("servers.json", text);
    let expected = [
        "servers.json:7:20: server \"slip\": timeoutMs: the key is unknown; did you mean timeout_ms?",
        "servers.json:12:16: server \"wrong\": env.A.B: ",
        "servers.json:17:15: server \"unset\": args[1]: ",
        "servers.json:19:14: server \"empty\": command: ",
        "servers.json:20:13: server \"Good\": ",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}");
    }
    let broken = problems("servers.json", "{\n  \"mcpServers\": {,}\n}");
    assert!(
        broken[0].starts_with("servers.json:2:18: not JSON"),
        "{broken:?}"
    );
}

#[test]
fn a_file_that_is_none_is_an_error() {
    let locations = Locations::of("/", &|_| None);
    let check = |file: &str| check_file(Path::new(file), &locations, &|_| None).unwrap_err();
    assert!(matches!(check("/no/such.toml"), CheckError::Missing));
    assert!(matches!(check("/no/such.yaml"), CheckError::UnknownKind));
}
