//! `plexus config`: the settings in effect, and the check of files.

use serde_json::{Value, json};

use crate::home::Home;
use crate::process::{Plexus, plexus};

const USER: &str = ".config/plexus/plexus.toml";
const PROJECT: &str = "project/plexus.toml";

/// The shown setting with this key.
fn setting<'a>(shown: &'a Value, key: &str) -> &'a Value {
    let settings = shown["settings"].as_array().unwrap();
    let found = settings.iter().find(|setting| setting["key"] == key);
    found.unwrap_or_else(|| panic!("{key} is not shown"))
}

#[test]
fn each_setting_is_shown_with_its_file() {
    let home = Home::with(&[
        (
            USER,
            "[hub]\nstart = \"lazy\"\nstartup_wait = 2\n[serve]\nsse = true\n",
        ),
        (
            PROJECT,
            "[hub]\nstart = \"eager\"\n[policy]\nmode = \"dont-ask\"\n",
        ),
    ]);
    let shown = home.json_output(&["config", "show", "--json"]);
    let (user, project) = (home.path(USER), home.path(PROJECT));
    for (key, value, file) in [
        ("hub.start", json!("eager"), Some(&project)),
        ("hub.startup_wait", json!(2), Some(&user)),
        ("serve.sse", json!(true), Some(&user)),
        ("policy.mode", json!("dont-ask"), Some(&project)),
        ("hub.page_size", json!(1000), None),
        ("limits.shutdown_drain_seconds", json!(0.7), None),
    ] {
        let setting = setting(&shown, key);
        assert_eq!(setting["value"], value, "{key}");
        let source = if file.is_some() { "file" } else { "default" };
        assert_eq!(setting["source"], source, "{key}");
        assert_eq!(
            setting.get("file"),
            file.map(|file| json!(file)).as_ref(),
            "{key}"
        );
    }

    let lines = home.succeeds(&["config", "show"]);
    let expected = format!("hub.start = \"eager\"  # {}", project.display());
    assert!(lines.contains(&expected), "{lines:?}");
    assert!(
        lines.contains(&"serve.path = \"/mcp\"  # default".to_owned()),
        "{lines:?}"
    );
}

/// The reference names the defaults that the program has.
#[test]
fn the_reference_has_the_defaults_of_the_program() {
    let schema = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/schemas/plexus.schema.json"
    );
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
    let home = Home::with(&[]);
    let mut command = plexus(&["config", "show", "--json"]);
    command
        .current_dir(home.path("project"))
        .env("HOME", home.path(""))
        .env_remove("PLEXUS_BUILTIN");
    let shown: Value = serde_json::from_str(&Plexus::spawn(&mut command).end().stdout[0]).unwrap();
    for setting in shown["settings"].as_array().unwrap() {
        let key = setting["key"].as_str().unwrap();
        let place = key
            .split('.')
            .fold(&schema, |schema, part| &schema["properties"][part]);
        let expected = &place["default"];
        // Numbers are compared by value: `30` is `30.0`.
        let same = match (expected.as_f64(), setting["value"].as_f64()) {
            (Some(a), Some(b)) => (a - b).abs() < 1e-9,
            _ => *expected == setting["value"],
        };
        assert!(
            same,
            "{key}: {} is shown, and documented is {expected}",
            setting["value"]
        );
    }
}

#[test]
fn the_environment_selects_built_in_services() {
    let home = Home::with(&[(USER, "[hub]\nbuiltin = [\"cone\"]\n")]);
    let mut command = plexus(&["config", "show", "--json"]);
    command
        .current_dir(home.path("project"))
        .env("HOME", home.path(""))
        .env("PLEXUS_BUILTIN", "echo");
    let shown = Plexus::spawn(&mut command).end();
    let shown: Value = serde_json::from_str(&shown.stdout[0]).unwrap();
    let builtin = setting(&shown, "hub.builtin");
    assert_eq!(
        *builtin,
        json!({"key": "hub.builtin", "value": "echo", "source": "PLEXUS_BUILTIN"})
    );
}

#[test]
fn a_file_with_a_problem_is_reported() {
    let home = Home::with(&[(USER, "[hub]\nstrat = \"lazy\"\n")]);
    let ended = home.run(&["config", "show"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended.stderr.concat().contains("plexus.toml:2:1"),
        "{ended:?}"
    );
}

#[test]
fn checking_names_the_line_and_the_nearest_key() {
    let home = Home::with(&[
        ("project/my.toml", "[hub]\nstrat = \"lazy\"\n"),
        (
            "project/my.json",
            "{\"$schema\": \"x\", \"mcpServers\": {\n  \"a\": {\"command\": \"x\", \"comand\": 1}\n}}",
        ),
        (
            "project/good.json",
            "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}",
        ),
        ("project/good.toml", "[hub]\nstart = \"lazy\"\n"),
        ("project/other.yaml", "a: b\n"),
    ]);
    let ended = home.run(&["config", "check", "my.toml", "my.json", "good.json"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(ended.stdout.len(), 3, "{ended:?}");
    assert!(ended.stdout[0].starts_with("my.toml:2:1: "), "{ended:?}");
    assert!(ended.stdout[0].contains("did you mean start?"), "{ended:?}");
    assert!(
        ended.stdout[1].starts_with("my.json:2:35: server \"a\": comand: "),
        "{ended:?}"
    );
    assert!(
        ended.stdout[1].ends_with("did you mean command?"),
        "{ended:?}"
    );
    assert_eq!(ended.stdout[2], "good.json: valid");

    let ended = home.run(&["config", "check", "my.toml", "--json"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let output: Value = serde_json::from_str(&ended.stdout[0]).unwrap();
    let problem = &output["problems"][0];
    assert_eq!(
        (&problem["line"], &problem["column"]),
        (&json!(2), &json!(1))
    );

    assert_eq!(
        home.succeeds(&["config", "check", "good.toml"]),
        ["good.toml: valid"]
    );
    for missing in ["no-such.toml", "other.yaml"] {
        let ended = home.run(&["config", "check", missing]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.concat().contains(missing), "{ended:?}");
    }
}
