//! `plexus resources`, `read`, `subscribe`, `prompts`, `prompt` and `explain`.

use std::process::Stdio;

use serde_json::json;

use crate::home::Home;
use crate::process::{Plexus, plexus};
use crate::servers::{fixture, fixture_over_http, home};

fn home_with_both_eras() -> Home {
    home(&json!({"old": fixture("legacy"), "new": fixture("modern")}))
}

#[test]
fn resources_are_listed_and_read() {
    let home = home(&json!({"s": fixture("legacy")}));
    let listed = home.succeeds(&["resources"]).join("\n");
    assert!(listed.contains("test://static-text"), "{listed}");
    assert!(listed.contains("test://template/{id}/data"), "{listed}");
    let listed = home.json_output(&["resources", "--json", "--server", "s"]);
    assert_eq!(listed["resources"][0]["server"], "s");

    let read = home.succeeds(&["read", "test://static-text"]);
    assert_eq!(read, ["This is the content of the static text resource."]);
    let read = home.json_output(&["read", "test://template/7/data", "--json"]);
    assert!(
        read["contents"][0]["text"].as_str().unwrap().contains('7'),
        "{read}"
    );

    let said = home.fails(&["read", "test://static-txt"]);
    assert!(said.contains("did you mean test://static-text"), "{said}");
}

/// Binary contents are written to a file unchanged.
#[test]
fn bytes_stay_bytes() {
    let home = home(&json!({"s": fixture("modern")}));
    let file = std::fs::File::create(home.path("picture")).unwrap();
    let mut command = plexus(&["read", "test://static-binary"]);
    command.env("HOME", home.path("")).stdout(Stdio::from(file));
    assert_eq!(Plexus::spawn(&mut command).end().code, Some(0));
    let picture = std::fs::read(home.path("picture")).unwrap();
    assert!(picture.starts_with(b"\x89PNG"));
}

#[test]
fn prompts_are_listed_and_got() {
    let home = home_with_both_eras();
    let listed = home.succeeds(&["prompts", "--server", "new"]).join("\n");
    assert!(
        listed.contains("new__test_prompt_with_arguments"),
        "{listed}"
    );
    assert!(!listed.contains("old__"), "{listed}");
    for server in ["old", "new"] {
        let name = format!("{server}__test_prompt_with_arguments");
        let got = home.succeeds(&["prompt", &name, "arg1=a", "arg2=b=c"]);
        assert_eq!(got, ["Prompt with arguments: arg1='a', arg2='b=c'"]);
        for (arguments, expected) in [
            (&["arg1=a"][..], "missing: arg2"),
            (&["arg1=a", "arg3=b"], "did you mean arg1"),
            (&["arg1"], "write key=value"),
        ] {
            let ended = home.run(&[&["prompt", name.as_str()], arguments].concat());
            assert_eq!(ended.code, Some(2), "{ended:?}");
            assert!(ended.stderr.concat().contains(expected), "{ended:?}");
        }
    }
    let said = home.fails(&["prompt", "new__test_simple_promt"]);
    assert!(
        said.contains("did you mean new__test_simple_prompt"),
        "{said}"
    );
}

#[test]
fn explain_shows_the_source_and_the_policy_decision() {
    let mut filtered = fixture("modern");
    filtered["deny"] = json!(["test_image*"]);
    let home = home(&json!({
        "s": filtered,
        "off": {"command": "x", "disabled": true},
        "gone": {"command": "/no/such/program"},
    }));
    let rules = "[policy]\nrules = [\n\
        { tool = \"s__test_simple_text\", action = \"deny\" },\n\
        { tool = \"echo_*\", pattern = \"rm *\", action = \"ask\" },\n\
        { tool = \"echo_*\", action = \"allow\" },\n]\n";
    std::fs::create_dir_all(home.path(".config/plexus")).unwrap();
    std::fs::write(home.path(".config/plexus/plexus.toml"), rules).unwrap();

    let explained = home.json_output(&["explain", "s.test_simple_text", "--json"]);
    assert_eq!(explained["name"], "s__test_simple_text");
    assert_eq!(explained["tool"], "test_simple_text");
    assert_eq!(explained["source"]["file"], json!(home.path(".mcp.json")));
    assert_eq!(explained["source"]["line"], 1);
    assert_eq!(explained["policy"]["decision"], "deny");
    assert!(
        explained["policy"]["reason"]
            .as_str()
            .unwrap()
            .contains("plexus.toml")
    );

    let decision = |arguments: &[&str]| {
        let explained =
            home.json_output(&[&["explain", "--json", "echo_once"], arguments].concat());
        explained["policy"]["decision"].as_str().unwrap().to_owned()
    };
    assert_eq!(decision(&["message=ls"]), "allow");
    assert_eq!(decision(&["message=rm -r ."]), "ask");
    let text = home.succeeds(&["explain", "echo_once"]).join("\n");
    assert!(text.contains("with other arguments, the rule"), "{text}");
    assert!(text.contains("message (string, required)"), "{text}");

    for (tool, why) in [
        (
            "s__test_image_content",
            "the filter of its server leaves it out",
        ),
        ("off__x", "it is disabled in"),
        ("gone__x", "there is no such file"),
    ] {
        let ended = home.run(&["explain", tool]);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        let text = ended.stdout.join("\n");
        assert!(text.contains("no: ") && text.contains(why), "{text}");
    }
    let said = home
        .run(&["explain", "s__test_simple_tex"])
        .stderr
        .join("\n");
    assert!(said.contains("did you mean s__test_simple_text?"), "{said}");
}

/// A change by one client is reported to another.
#[test]
fn changes_are_printed_as_they_come() {
    // Both commands must reach the same server process, so it is served over HTTP.
    let server = Plexus::spawn(&mut fixture_over_http());
    let address = server.wait_for_stderr("listening on ");
    let url = address.trim().trim_end_matches('/').to_owned();
    let home = home(&json!({"s": {"type": "http", "url": url}}));
    let mut command = plexus(&["subscribe", "--once", "--json", "test://watched-resource"]);
    command
        .env("HOME", home.path(""))
        .current_dir(home.path("project"));
    let mut watching = Plexus::spawn(&mut command);
    // There is no sign that the subscription is active; a change before that is not reported.
    let changed = std::thread::scope(|scope| {
        let ended = scope.spawn(|| watching.wait());
        while !ended.is_finished() {
            home.succeeds(&["call", "s__test_touch_watched_resource"]);
        }
        ended.join().unwrap()
    });
    assert_eq!(changed.code, Some(0), "{changed:?}");
    assert_eq!(
        changed.stdout,
        [r#"{"uri":"test://watched-resource","server":"s"}"#]
    );
    for unknown in ["test://unknown", "nosuch://x"] {
        let said = home.fails(&["subscribe", unknown]);
        assert!(said.contains("there is no resource"), "{said}");
    }
    drop(server);
}
