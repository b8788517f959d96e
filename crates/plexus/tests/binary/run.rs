//! `plexus run`: an agent with a scripted model, real servers and no user.

use std::fs;
use std::process::Stdio;

use plexus_testkit::model::{Dialect, ScriptedModel, Turn};
use serde_json::{Value, json};

use crate::home::Home;
use crate::process::ProcessOutput;
use crate::servers::{fixture, home};

/// Runs the program with this model, both of its APIs. Standard input is empty.
fn run(home: &Home, model: &ScriptedModel, arguments: &[&str]) -> ProcessOutput {
    let [anthropic, openai] = Dialect::ALL.map(|dialect| model.base_url(dialect));
    let variables = [
        ("ANTHROPIC_BASE_URL", anthropic.as_str()),
        ("OPENAI_BASE_URL", openai.as_str()),
        ("PLEXUS_DATA_DIR", &home.path("data").display().to_string()),
    ];
    home.run_with(&[&["run"], arguments].concat(), &variables)
}

fn tool_names(question: &Value) -> Vec<&str> {
    let tools = question["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap()).collect()
}

/// The text of the first result in the last message of a request to Anthropic's API.
fn first_result(question: &Value) -> &Value {
    let last = question["messages"].as_array().unwrap().last().unwrap();
    &last["content"][0]
}

/// S001-80, S001-04, S001-39: the answer alone is on standard output; the model is shown the tools of
/// the host, of servers, for resources, and `Agent`, in this order.
#[tokio::test(flavor = "multi_thread")]
async fn the_answer_is_printed() {
    let model = ScriptedModel::start([
        Turn::calls(&[("mcp__all__test_simple_text", json!({}))]),
        Turn::says(&["The server ", "answered."]),
    ])
    .await;
    let home = home(&json!({"all": fixture("legacy")}));
    let ended = run(
        &home,
        &model,
        &[
            "-p",
            "Ask the server",
            "--allowed-tools",
            "mcp__all__*",
            "--model",
            "anthropic/x",
        ],
    );
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.stdout, ["The server answered."]);
    assert!(ended.stderr.is_empty(), "{ended:?}");
    let questions = model.questions();
    let names = tool_names(&questions[0].body);
    assert_eq!(
        names[..6],
        ["Read", "Write", "Edit", "Glob", "Grep", "Bash"]
    );
    assert!(names[6].starts_with("mcp__all__"), "{names:?}");
    let end = ["UnsubscribePolling", "Agent"];
    assert_eq!(names[names.len() - 2..], end);
    assert_eq!(
        tool_names(&questions[1].body),
        names,
        "the same tools in every request"
    );
    let system = questions[0].body["system"].as_str().unwrap();
    assert!(
        system.contains("These MCP servers are configured: all (connected)."),
        "{system}"
    );
    let result = first_result(&questions[1].body)["content"][0]["text"]
        .as_str()
        .unwrap();
    assert!(result.contains("simple text"), "{result}");
}

/// C26: without a user, a call that would be asked about is refused; the model and standard error read
/// what would allow it, and the run goes on.
#[tokio::test(flavor = "multi_thread")]
async fn calls_that_need_the_user_are_refused() {
    let model = ScriptedModel::start([
        Turn::calls(&[("Bash", json!({"command": "touch made"}))]),
        Turn::says(&["I may not."]),
    ])
    .await;
    let home = Home::with(&[]);
    let ended = run(&home, &model, &["-p", "Make a file", "--model", "openai/x"]);
    assert_eq!(
        (ended.code, ended.stdout.as_slice()),
        (Some(0), &["I may not.".to_owned()][..])
    );
    let said = ended.stderr.join("\n");
    assert!(said.contains("--allowed-tools Bash"), "{said}");
    assert!(!home.path("project/made").exists());
    let told = model.questions()[1].text.clone();
    assert!(told.contains("--allowed-tools Bash"), "{told}");
}

/// S001-79: everything is allowed but what a rule denies. Files are edited in the project.
#[tokio::test(flavor = "multi_thread")]
async fn permissions_can_be_skipped() {
    let edit = json!({"file_path": "a.txt", "old_string": "bee", "new_string": "wasp"});
    let model = ScriptedModel::start([
        Turn::calls(&[
            ("Write", json!({"file_path": "a.txt", "content": "a bee\n"})),
            ("Edit", edit),
            ("Bash", json!({"command": "cat a.txt; echo to stderr >&2"})),
            ("Grep", json!({"pattern": "wasp"})),
        ]),
        Turn::says(&["Done."]),
    ])
    .await;
    let home = Home::with(&[]);
    let skip = [
        "-p",
        "Go",
        "--dangerously-skip-permissions",
        "--disallowed-tools",
        "Grep",
    ];
    let ended = run(&home, &model, &skip);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(
        fs::read_to_string(home.path("project/a.txt")).unwrap(),
        "a wasp\n"
    );
    let last = model.questions()[1].body["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone();
    let text = |index: usize| {
        last["content"][index]["content"][0]["text"]
            .as_str()
            .unwrap()
    };
    assert!(
        text(2).contains("a wasp") && text(2).contains("to stderr"),
        "{last}"
    );
    assert!(text(3).contains("denied by"), "{last}");
}

/// Rules for the agent's tools in Claude Code's lists hold. What a project's file allows does not count,
/// and a path outside of the project is not read without asking.
#[tokio::test(flavor = "multi_thread")]
async fn rules_for_the_agents_tools_hold() {
    let model = ScriptedModel::start([
        Turn::calls(&[
            ("Read", json!({"file_path": ".env"})),
            (
                "Grep",
                json!({"pattern": "s3cret", "output_mode": "content"}),
            ),
            ("Bash", json!({"command": "git --version && rm x"})),
            ("Bash", json!({"command": "git --version"})),
            ("Bash", json!({"command": "ls"})),
            ("Read", json!({"file_path": "../outside"})),
        ]),
        Turn::says(&["Done."]),
    ])
    .await;
    let users = json!({"permissions": {
        "deny": ["Read(./.env)", "Bash(rm:*)"], "allow": ["Bash(git:*)"],
    }});
    let projects = json!({"permissions": {"allow": ["Bash(ls)"]}});
    let home = Home::with(&[
        (".claude/settings.json", &users.to_string()),
        ("project/.claude/settings.json", &projects.to_string()),
        ("project/.env", "s3cret"),
        ("outside", "s3cret"),
    ]);
    let ended = run(&home, &model, &["-p", "Go"]);
    let said = ended.stderr.join("\n");
    assert!(
        said.contains("does not count, because it is a file of the project"),
        "{said}"
    );
    let last = model.questions()[1].body["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone();
    assert!(!last.to_string().contains("\ns3cret"), "{last}");
    let text = |index: usize| {
        let result = &last["content"][index];
        let text = result["content"][0]["text"].as_str().unwrap().to_owned();
        (text, result["is_error"] == true)
    };
    assert!(
        text(0).0.contains("denied by the rule Read(./.env)"),
        "{last}"
    );
    assert_eq!(text(1), ("[nothing matches]".to_owned(), false));
    assert!(
        text(2).0.contains("denied by the rule Bash(rm:*)"),
        "{last}"
    );
    assert!(text(3).0.contains("git version") && !text(3).1, "{last}");
    assert!(text(4).1 && text(4).0.contains("--allowed-tools"), "{last}");
    assert!(text(5).1 && text(5).0.contains("--allowed-tools"), "{last}");
}

/// An agent does not start without the rules of a file that cannot be read, and the mode `dont-ask` of
/// the settings has precedence.
#[tokio::test(flavor = "multi_thread")]
async fn settings_are_respected() {
    const SETTINGS: &str = ".config/plexus/plexus.toml";
    let model = ScriptedModel::start([
        Turn::calls(&[("Read", json!({"file_path": "a.txt"}))]),
        Turn::says(&["Done."]),
    ])
    .await;
    let broken = Home::with(&[(SETTINGS, "[policy")]);
    let ended = run(
        &broken,
        &model,
        &["-p", "Go", "--dangerously-skip-permissions"],
    );
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(model.questions().is_empty());
    let strict = Home::with(&[(SETTINGS, "[policy]\nmode = \"dont-ask\"\n")]);
    run(
        &strict,
        &model,
        &["-p", "Go", "--dangerously-skip-permissions"],
    );
    let told = model.questions()[1].text.clone();
    assert!(told.contains("dontAsk"), "{told}");
}

/// A conversation goes on with `--resume`, by its id or as the last one of the directory.
#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_is_resumed() {
    let model =
        ScriptedModel::start(["One.", "Two.", "Three."].map(|text| Turn::says(&[text]))).await;
    let home = Home::with(&[]);
    let first = run(&home, &model, &["-p", "First", "--output-format", "json"]);
    let first: Value = serde_json::from_str(&first.stdout.join("\n")).unwrap();
    assert_eq!(
        (&first["result"], &first["is_error"]),
        (&json!("One."), &json!(false))
    );
    assert_eq!(
        first["usage"],
        json!({"input_tokens": 7, "output_tokens": 3})
    );
    let id = first["session_id"].as_str().unwrap();
    run(&home, &model, &["-p", "Second", "--resume", id]);
    let third = run(&home, &model, &["-p", "Third", "--resume"]);
    assert_eq!(third.stdout, ["Three."]);
    let said = model.questions()[2].text.clone();
    for text in ["First", "One.", "Second", "Two.", "Third"] {
        assert!(said.contains(text), "{said}");
    }
    let none = run(&home, &model, &["-p", "x", "--resume", "nonesuch"]);
    assert_eq!(none.code, Some(1), "{none:?}");
    assert!(
        none.stderr
            .join(" ")
            .contains("there is no conversation \"nonesuch\""),
        "{none:?}"
    );
}

/// Each event is a line, also those of sub-agents.
#[tokio::test(flavor = "multi_thread")]
async fn events_are_printed_as_lines() {
    let task = json!({"description": "Look", "prompt": "Look around."});
    let model = ScriptedModel::start([
        Turn::calls(&[("Agent", task)]),
        Turn::calls(&[("Glob", json!({"pattern": "*"}))]),
        Turn::says(&["Nothing there."]),
        Turn::says(&["There is nothing."]),
    ])
    .await;
    let home = Home::with(&[]);
    let ended = run(
        &home,
        &model,
        &["-p", "Look", "--output-format", "stream-json"],
    );
    let lines: Vec<Value> = ended
        .stdout
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let kinds: Vec<_> = lines
        .iter()
        .map(|line| line["type"].as_str().unwrap())
        .collect();
    let expected = [
        "init",
        "tool_call",
        "tool_call",
        "tool_result",
        "text",
        "tool_result",
        "text",
        "result",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(
        (&lines[2]["agent"], &lines[2]["name"]),
        (&json!("Look"), &json!("Glob"))
    );
    assert_eq!(lines[7]["result"], "There is nothing.");
}

/// S001-61 to S001-63: what is wrong with servers and files is a warning, and the run goes on.
#[tokio::test(flavor = "multi_thread")]
async fn broken_servers_are_warnings() {
    let model = ScriptedModel::start([Turn::says(&["Fine."])]).await;
    let home = home(&json!({
        "gone": {"command": "no-such-program"},
        "exits": {"command": "sh", "args": ["-c", "echo my last words >&2; exit 3"]},
    }));
    home.write("project/.claude.json.bak", "not read");
    let ended = run(&home, &model, &["-p", "Hello"]);
    assert_eq!(
        (ended.code, ended.stdout.as_slice()),
        (Some(0), &["Fine.".to_owned()][..])
    );
    let said = ended.stderr.join("\n");
    assert!(
        said.contains("Warning: MCP startup error: gone: "),
        "{said}"
    );
    assert!(
        said.contains("Warning: MCP startup error: exits: "),
        "{said}"
    );

    let model = ScriptedModel::start([Turn::says(&["Fine."])]).await;
    let home = Home::with(&[(".mcp.json", "{\"mcpServers\": ")]);
    let ended = run(&home, &model, &["-p", "Hello"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.stderr[0].starts_with("Warning: MCP config error: "),
        "{ended:?}"
    );
}

/// Every mistake has a message that says what to do.
#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_explained() {
    let home = Home::with(&[]);
    let no_key = home.run(&["run", "-p", "Hello"]);
    assert_eq!(no_key.code, Some(1), "{no_key:?}");
    assert!(
        no_key.stderr.join(" ").contains("ANTHROPIC_API_KEY"),
        "{no_key:?}"
    );
    let no_prompt = home.run(&["run"]);
    assert_eq!(no_prompt.code, Some(2), "{no_prompt:?}");

    let model = ScriptedModel::start([
        Turn::Refuses(404, "model: x".to_owned()),
        Turn::calls(&[("Glob", json!({"pattern": "*"}))]),
    ])
    .await;
    let unknown = run(&home, &model, &["-p", "Hello", "--model", "anthropic/x"]);
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    assert!(unknown.stderr.join(" ").contains("model: x"), "{unknown:?}");
    let endless = run(&home, &model, &["-p", "Hello", "--max-turns", "1"]);
    assert_eq!(endless.code, Some(4), "{endless:?}");
    let wrong = run(&home, &model, &["-p", "Hello", "--permission-mode", "yolo"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.stderr.join(" ").contains("acceptEdits"), "{wrong:?}");
}

/// After a signal, standard error says how to go on.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_run_can_be_resumed() {
    let (held, _stream) = Turn::held();
    let model = ScriptedModel::start([held]).await;
    let home = Home::with(&[]);
    let mut command = home.command(&["run", "-p", "Hello"]);
    command
        .env("ANTHROPIC_BASE_URL", model.base_url(Dialect::Anthropic))
        .stdin(Stdio::null());
    let mut plexus = crate::process::Plexus::spawn(&mut command);
    model.asked().await;
    plexus.signal(rustix::process::Signal::INT);
    let ended = plexus.end();
    assert_eq!(
        (ended.code, ended.stdout.len()),
        (Some(130), 0),
        "{ended:?}"
    );
    let said = ended.stderr.join("\n");
    assert!(said.contains("to go on: plexus run --resume "), "{said}");
}

/// A server that does not answer is named, and the run goes on without it; an error of a connection is
/// told once.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_silent_or_away_is_named_once() {
    let home = home(&json!({
        "mute": {"command": "sleep", "args": ["600"], "startup_wait": 0.1},
    }));
    let variables = [("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")];
    let mut command = home.command(&["run", "-p", "Hello"]);
    command.envs(variables).stdin(Stdio::null());
    let mut plexus = crate::process::Plexus::spawn(&mut command);
    plexus.wait_for_stderr("Warning: MCP startup error: mute: it has not answered");
    let first = plexus.wait_for_stderr("anthropic did not answer: ");
    assert_eq!(first.matches("Connection refused").count(), 1, "{first}");
    plexus.signal(rustix::process::Signal::TERM);
    assert_eq!(plexus.end().code, Some(143));
}

/// What is on standard input follows the prompt.
#[tokio::test(flavor = "multi_thread")]
async fn standard_input_is_part_of_the_prompt() {
    let model = ScriptedModel::start([Turn::says(&["A diff."])]).await;
    let home = Home::with(&[("input", "the diff")]);
    let mut command = home.command(&["run", "-p", "What is this?"]);
    command
        .env("ANTHROPIC_BASE_URL", model.base_url(Dialect::Anthropic))
        .stdin(Stdio::from(fs::File::open(home.path("input")).unwrap()));
    let ended = crate::process::Plexus::spawn(&mut command).end();
    assert_eq!(ended.stdout, ["A diff."]);
    let asked = model.questions()[0].text.clone();
    assert!(asked.contains("What is this?\\n\\nthe diff"), "{asked}");
}
