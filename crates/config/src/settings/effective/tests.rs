use std::fs;

use super::*;
use crate::reference::setting_keys;

/// The locations of a project and a user with these settings.
fn locations(directory: &tempfile::TempDir, project: &str, user: &str) -> Locations {
    let (project_dir, config_dir) = (directory.path().join("p"), directory.path().join("c"));
    for (folder, text) in [(&project_dir, project), (&config_dir, user)] {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("plexus.toml"), text).unwrap();
    }
    let mut locations = Locations::of(project_dir, &|_| None);
    locations.config_dir = Some(config_dir);
    locations
}

/// The value of a key, and the folder of the file that sets it.
fn shown(keys: &[EffectiveKey], key: &str) -> (Option<Value>, Option<String>) {
    let found = keys.iter().find(|effective| effective.key == key).unwrap();
    let folder = found
        .file
        .as_ref()
        .and_then(|file| file.parent()?.file_name());
    let folder = folder.map(|folder| folder.to_str().unwrap().to_owned());
    (found.value.clone(), folder)
}

#[test]
fn every_key_of_the_reference_is_shown() {
    let directory = tempfile::tempdir().unwrap();
    let user = "policy = { rules = [{ tool = \"x\", action = \"ask\" }] }\n[clients.NAME]\n";
    let (keys, problems) = effective_settings(&locations(&directory, "", user));
    assert_eq!(problems, []);
    let shown: Vec<_> = keys
        .iter()
        .map(|effective| effective.key.as_str())
        .collect();
    // The order is shown with each rule.
    for key in setting_keys()
        .into_iter()
        .filter(|key| key != "policy.order")
    {
        let key = key.replace("policy.rules", "policy.rules[0]");
        assert!(shown.contains(&key.as_str()), "{key} is not in {shown:?}");
    }
}

#[test]
fn each_value_has_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let project = r#"
serve = { sse = true }
hub = { start = "lazy", page_size = 5 }
policy = { mode = "dont-ask", rules = [{ tool = "p", action = "deny" }] }
"#;
    let user = r#"
serve.http = "localhost:8080"
hub = { start = "eager", startup_wait = 2.5, builtin = ["task", "cone"] }
clients."a.b".search = true
limits.max_sessions = 7
policy.rules = [{ tool = "u", action = "allow" }]
"#;
    let (keys, problems) = effective_settings(&locations(&directory, project, user));
    assert_eq!(problems.len(), 2, "{problems:?}");
    let (project, user) = (|| Some("p".to_owned()), || Some("c".to_owned()));
    let cases = [
        ("hub.start", Some(json!("lazy")), project()),
        ("hub.startup_wait", Some(json!(2.5)), user()),
        ("hub.builtin", Some(json!(["task", "cone"])), user()),
        // A project cannot set these two.
        ("hub.page_size", None, None),
        ("serve.sse", Some(json!(false)), None),
        ("serve.http", Some(json!("127.0.0.1:8080")), user()),
        ("clients.a.b.search", Some(json!(true)), user()),
        ("clients.a.b.tools.deny", Some(json!([])), None),
        ("limits.max_sessions", Some(json!(7)), user()),
        ("limits.shutdown_drain_seconds", Some(json!(0.7)), None),
        ("limits.max_parked_calls", Some(json!(10_000)), None),
        ("policy.mode", Some(json!("dont-ask")), project()),
        (
            "policy.rules[0]",
            Some(json!({"tool": "p", "action": "deny"})),
            project(),
        ),
        (
            "policy.rules[1]",
            Some(json!({"tool": "u", "action": "allow"})),
            user(),
        ),
    ];
    for (key, value, file) in cases {
        assert_eq!(shown(&keys, key), (value, file), "{key}");
    }
}

#[test]
fn references_to_secrets_are_shown_as_they_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let user = r#"
[[access.issuers]]
issuer = "https://as.example"
introspection = { client_id = "p", client_secret = { command = ["pass", "show", "p"] } }
"#;
    let (keys, _) = effective_settings(&locations(&directory, "", user));
    let expected = json!([{
        "issuer": "https://as.example",
        "introspection": {"client_id": "p", "client_secret": {"command": ["pass", "show", "p"]}},
    }]);
    assert_eq!(shown(&keys, "access.issuers").0, Some(expected));
}
