//! `plexus setup`: puts Plexus in front of the servers of agents, and undoes it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::home::Home;
use crate::process::ProcessOutput;
use crate::terminal::TerminalSession;

const USER: &str = ".config/plexus/servers.json";
const RECORD: &str = ".config/plexus/setup.json";

macro_rules! sample {
    ($name:literal) => {
        include_str!(concat!("../../../config/src/clients/samples/", $name))
    };
}

/// The file of each client, with a text that has comments where the client allows them.
fn samples() -> Vec<(String, &'static str)> {
    let application_data = if cfg!(target_os = "macos") {
        "Library/Application Support"
    } else {
        ".config"
    };
    let desktop = format!("{application_data}/Claude/claude_desktop_config.json");
    let vscode = format!("{application_data}/Code/User/mcp.json");
    let files = [
        (".claude.json", sample!("claude-code.json")),
        (&desktop, sample!("claude-desktop.json")),
        (".cursor/mcp.json", sample!("cursor.json")),
        (&vscode, sample!("vscode.json")),
        (
            ".codeium/windsurf/mcp_config.json",
            sample!("windsurf.json"),
        ),
        (".codex/config.toml", sample!("codex.toml")),
        (".gemini/settings.json", sample!("gemini.json")),
        (".config/zed/settings.json", sample!("zed.json")),
        (".config/opencode/opencode.json", sample!("opencode.json")),
        (".config/goose/config.yaml", sample!("goose.yaml")),
        (
            ".cline/data/settings/cline_mcp_settings.json",
            sample!("cline.json"),
        ),
        (".copilot/mcp-config.json", sample!("copilot-cli.json")),
        (".continue/config.yaml", sample!("continue.yaml")),
        (".junie/mcp/mcp.json", sample!("junie.json")),
        (".kiro/settings/mcp.json", sample!("kiro.json")),
        (".qwen/settings.json", sample!("qwen-code.json")),
        (".config/amp/settings.json", sample!("amp.json")),
        (".lmstudio/mcp.json", sample!("lm-studio.json")),
        (".warp/.mcp.json", sample!("warp.json")),
    ];
    files.map(|(file, text)| (file.to_owned(), text)).into()
}

fn home_with(files: &[(String, &str)]) -> Home {
    let files: Vec<_> = files
        .iter()
        .map(|(file, text)| (file.as_str(), *text))
        .collect();
    Home::with(&files)
}

/// Runs setup. No agent is in `PATH` but those in the folder `bin`.
fn setup(home: &Home, arguments: &[&str]) -> ProcessOutput {
    let path = home.path("bin");
    let arguments = [&["setup"], arguments].concat();
    home.run_with(&arguments, &[("PATH", path.to_str().unwrap())])
}

/// Sets up without a question; returns the report.
fn set_up(home: &Home, further: &[&str]) -> Value {
    let ended = setup(home, &[&["--yes", "--offline", "--json"], further].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    serde_json::from_str(&ended.stdout[0]).unwrap()
}

fn undo(home: &Home, further: &[&str]) -> String {
    let ended = setup(home, &[&["--undo"], further].concat());
    assert_eq!((ended.code, ended.stderr.as_slice()), (Some(0), &[][..]));
    ended.stdout.join("\n")
}

fn agent<'a>(report: &'a Value, client: &str) -> &'a Value {
    let agents = report["agents"].as_array().unwrap();
    agents
        .iter()
        .find(|agent| agent["client"] == client)
        .unwrap()
}

/// Writes an agent's program.
fn program(home: &Home, name: &str, script: &str) {
    fs::create_dir_all(home.path("bin")).unwrap();
    let file = home.path("bin").join(name);
    fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Every client gets Plexus, a second run changes nothing more, and undoing restores every file.
#[test]
fn every_file_is_restored_to_the_byte() {
    let files = samples();
    let home = home_with(&files);
    let report = set_up(&home, &[]);
    assert_eq!(report["agents"].as_array().unwrap().len(), files.len());
    let command = env!("CARGO_BIN_EXE_plexus");
    assert_eq!(report["command"], json!([command, "serve", "--stdio"]));
    assert!(
        report["doctor"]["servers"].as_u64().unwrap() > 20,
        "{report}"
    );
    assert!(!report.to_string().contains("hunter2"), "{report}");
    let written: Vec<_> = files.iter().map(|(file, _)| home.read(file)).collect();
    for ((file, before), written) in files.iter().zip(&written) {
        assert_ne!(written, before, "{file}");
        assert!(written.contains(command), "{file}");
    }
    let own = home.read(USER);

    let again = set_up(&home, &[]);
    assert_eq!(again["written"], false, "{again}");
    for ((file, _), written) in files.iter().zip(&written) {
        assert_eq!(home.read(file), *written, "{file}");
    }
    assert_eq!(home.read(USER), own);

    let said = undo(&home, &[]);
    assert_eq!(said.lines().count(), files.len() + 1, "{said}");
    assert!(
        said.lines().all(|line| line.starts_with("restored: ")),
        "{said}"
    );
    for (file, before) in &files {
        assert_eq!(home.read(file), *before, "{file}");
    }
    assert!(!home.path(USER).exists() && !home.path(RECORD).exists());
    let ended = setup(&home, &["--undo"]);
    assert_eq!(ended.stderr, ["error: there is no setup to undo"]);
}

/// A file that was edited after setup keeps that edit, and gets back its servers.
#[test]
fn a_file_edited_since_loses_nothing() {
    let files = samples();
    let home = home_with(&files);
    set_up(&home, &[]);
    for (file, _) in &files {
        let text = home.read(file);
        let edited = match file.rsplit('.').next() {
            Some("toml") => format!("later = 7\n{text}"),
            Some("yaml") => format!("later: 7\n{text}"),
            _ => text.replacen('{', "{\n  \"later\": 7,", 1),
        };
        home.write(file, &edited);
    }
    home.succeeds(&["mcp", "add", "mine", "-s", "user", "--", "x"]);
    let said = undo(&home, &[]);
    assert_eq!(
        said.matches("changed since, and kept: the key later")
            .count(),
        files.len(),
        "{said}"
    );
    assert!(!said.contains("restored"), "{said}");
    for (file, before) in &files {
        let text = home.read(file);
        assert!(text.contains("later"), "{file}");
        assert!(
            !text.contains(env!("CARGO_BIN_EXE_plexus")),
            "{file}: {text}"
        );
        let comments = |text: &str| text.matches("// ").count() + text.matches("# ").count();
        assert_eq!(comments(&text), comments(before), "{file}: {text}");
    }
    let servers = home.json(USER);
    assert_eq!(
        servers,
        json!({"mcpServers": {"mine": {"type": "stdio", "command": "x"}}})
    );

    // All servers are there again, as they were.
    let untouched = home_with(&files);
    for home in [&home, &untouched] {
        let path = home.path(USER);
        drop(fs::remove_file(path));
        home.run(&["import", "--yes"]);
    }
    assert_eq!(home.json(USER), untouched.json(USER));
}

/// Edits of servers are kept, whether setup had turned them off or not; an edit of the entry of
/// Plexus goes with that entry, and is named.
#[test]
fn edits_of_servers_are_kept_and_named() {
    let codex = "[mcp_servers.one]\ncommand = \"x\"\n\n[mcp_servers.two]\ncommand = \"x\"\n";
    let gemini = r#"{"mcpServers": {"three": {"command": "x"}}}"#;
    let (toml, json) = (".codex/config.toml", ".gemini/settings.json");
    let home = Home::with(&[(toml, codex), (json, gemini)]);
    set_up(&home, &[]);
    let written = home.read(toml);
    assert_eq!(written.matches("enabled = false").count(), 2, "{written}");
    let edited = written
        .replacen("command = \"x\"", "command = \"y\"", 1)
        .replace("\"--stdio\"]", "\"--stdio\", \"--tool-search\"]");
    assert_ne!(edited, written);
    home.write(toml, &edited);
    // A server that setup removed was added again with another definition.
    let mut edited = home.json(json);
    assert!(edited["mcpServers"]["three"].is_null(), "{edited}");
    edited["mcpServers"]["three"] = json!({"command": "z"});
    home.write(json, &edited.to_string());

    let said = undo(&home, &[]);
    for line in [
        "  changed since, and kept: the key mcp_servers.one.command",
        "  changed since, and removed: the key mcp_servers.plexus.args",
        "  changed since, and kept: three",
    ] {
        assert!(said.lines().any(|other| other == line), "{line} in {said}");
    }
    assert_eq!(home.read(toml), codex.replacen("\"x\"", "\"y\"", 1));
    let expected = json!({"mcpServers": {"three": {"command": "z"}}});
    assert_eq!(home.json(json), expected);
}

#[test]
fn one_agent_alone_is_set_up_and_undone() {
    let files = samples();
    let home = home_with(&files);
    let report = set_up(&home, &["--client", "warp", "--client", "codex"]);
    assert_eq!(report["changed"].as_array().unwrap().len(), 3, "{report}");
    let changed = |file: &str| {
        let (_, before) = files.iter().find(|(other, _)| other == file).unwrap();
        home.read(file) != *before
    };
    assert!(changed(".warp/.mcp.json") && changed(".codex/config.toml"));
    assert!(!changed(".cursor/mcp.json"));
    let said = undo(&home, &["--client", "warp"]);
    assert!(said.contains("the servers stay in Plexus"), "{said}");
    assert!(!changed(".warp/.mcp.json") && changed(".codex/config.toml"));
    assert!(home.path(USER).exists());
    let ended = setup(&home, &["--undo", "--client", "warp"]);
    assert_eq!(ended.stderr, ["error: setup has changed nothing at warp"]);
    undo(&home, &[]);
    assert!(!changed(".codex/config.toml") && !home.path(USER).exists());
}

/// Claude Code's own command adds Plexus. The record is written before it runs.
#[test]
fn the_command_of_an_agent_is_used() {
    const BEFORE: &str = r#"{"mcpServers": {"files": {"command": "x"}}, "numStartups": 1}"#;
    let home = Home::with(&[(".claude.json", BEFORE)]);
    let program_script = r#"
        echo "$*" "${CLAUDE_CONFIG_DIR-unset}" > "$HOME/arguments"
        read -r line < "$HOME/.config/plexus/setup.json"; printf '%s' "$line" > "$HOME/seen"
        echo '{"mcpServers": {"files": {"command": "x"}, "plexus": {"command": "'"$7"'", "args": ["serve", "--stdio"]}}, "numStartups": 2}' > "$HOME/.claude.json"
    "#;
    program(&home, "claude", program_script);
    let report = set_up(&home, &[]);
    assert_eq!(agent(&report, "claude-code")["registration"], "command");
    let command = env!("CARGO_BIN_EXE_plexus");
    let arguments = format!("mcp add --scope user plexus -- {command} serve --stdio unset\n");
    assert_eq!(home.read("arguments"), arguments);
    assert!(
        home.json("seen").to_string().contains("numStartups"),
        "no record before the change"
    );
    let written = home.json(".claude.json");
    assert_eq!(written["numStartups"], 2);
    assert_eq!(
        written["mcpServers"],
        json!({"plexus": {"command": command, "args": ["serve", "--stdio"]}})
    );
    undo(&home, &[]);
    assert_eq!(home.read(".claude.json"), BEFORE);
}

/// A command that loses comments does not make them lost.
#[test]
fn comments_survive_the_command_of_an_agent() {
    let before = sample!("codex.toml");
    let home = Home::with(&[(".codex/config.toml", before)]);
    program(
        &home,
        "codex",
        r#"printf '[mcp_servers.plexus]\ncommand = "plexus"\nargs = ["serve"]\n' > "$HOME/.codex/config.toml""#,
    );
    let report = set_up(&home, &[]);
    assert_eq!(agent(&report, "codex")["registration"], "command");
    let written = home.read(".codex/config.toml");
    assert!(
        written.contains("# a comment in a list") && written.contains("future = ["),
        "{written}"
    );
    assert!(written.contains(env!("CARGO_BIN_EXE_plexus")), "{written}");
    undo(&home, &[]);
    assert_eq!(home.read(".codex/config.toml"), before);
}

/// If the command of an agent fails, its file is edited, and the failure is told.
#[test]
fn a_command_that_fails_is_told() {
    let home = Home::with(&[]);
    program(&home, "gemini", "echo no such option >&2; exit 3");
    let report = set_up(&home, &[]);
    let note = report["notes"][0].as_str().unwrap();
    assert!(
        note.contains("`gemini mcp add` failed") && note.contains("no such option"),
        "{note}"
    );
    assert!(home.read(".gemini/settings.json").contains("plexus"));
    undo(&home, &[]);
    assert!(!home.path(".gemini/settings.json").exists());
}

#[test]
fn without_a_terminal_it_is_only_shown() {
    const BEFORE: &str =
        r#"{"mcpServers": {"files": {"command": "x", "env": {"TOKEN": "hunter2"}}}}"#;
    let home = Home::with(&[(".cursor/mcp.json", BEFORE)]);
    for (arguments, code) in [(&[][..], 1), (&["--dry-run"], 0)] {
        let ended = setup(&home, arguments);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        let shown = ended.stdout.join("\n");
        for expected in [
            "+ files  stdio  x  (cursor, ",
            "Cursor: ",
            &format!("+ plexus  {} serve --stdio", env!("CARGO_BIN_EXE_plexus")),
            "- files  Plexus has it",
            "nothing was written; with --yes, all of this would be done",
        ] {
            assert!(shown.contains(expected), "{expected} in {shown}");
        }
        assert!(!shown.contains("hunter2"), "{shown}");
        assert_eq!(home.read(".cursor/mcp.json"), BEFORE);
        assert!(!home.path(USER).exists() && !home.path(RECORD).exists());
    }
    for wrong in [
        &["--dry-run", "--yes"][..],
        &["--undo", "--yes"],
        &["--client", "emacs"],
    ] {
        assert_eq!(setup(&home, wrong).code, Some(2), "{wrong:?}");
    }
    let ended = setup(&home, &["--client", "warp"]);
    assert!(
        ended.stderr[0].contains("warp is not configured here; looked for /"),
        "{ended:?}"
    );
    let ended = setup(&Home::with(&[]), &[]);
    assert_eq!(ended.stdout, ["no agent was found on this machine"]);
}

#[test]
fn an_answer_at_the_terminal_counts() {
    let home = Home::with(&[(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"files": {"command": "x"}}}"#,
    )]);
    for (answer, is_written) in [("n\n", false), ("y\n", true)] {
        let mut session =
            TerminalSession::start(&home, 120, &["setup", "--client", "cursor", "--offline"]);
        session.shows("do this? [y/N]");
        session.types(answer);
        let (code, shown) = session.end();
        assert_eq!(code, Some(i32::from(!is_written)), "{shown}");
        assert_eq!(home.path(USER).exists(), is_written);
        assert_eq!(
            shown.contains("to undo all of this: plexus setup --undo"),
            is_written,
            "{shown}"
        );
    }
}

/// What cannot be edited safely is left out and named, and all others are set up.
#[test]
fn a_file_that_cannot_be_edited_is_left_out() {
    const NAMESAKE: &str = r#"{"mcpServers": {"plexus": {"command": "another"}}}"#;
    const ALIAS: &str = "extensions: &all\n  a: {type: stdio, cmd: x, enabled: true}\ncopy: *all\n";
    let (kiro, goose) = (".kiro/settings/mcp.json", ".config/goose/config.yaml");
    let home = Home::with(&[
        (kiro, NAMESAKE),
        (goose, ALIAS),
        (".junie/mcp/mcp.json", r#"{"mcpServers": {}}"#),
    ]);
    let ended = setup(&home, &["--yes", "--offline"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let shown = ended.stdout.join("\n");
    for expected in [
        "mcp.json: server \"plexus\": there is another server of this name",
        "config.yaml: the file cannot be edited without changing the rest of it",
    ] {
        assert!(shown.contains(expected), "{expected} in {shown}");
    }
    assert_eq!(shown.matches("! left out: ").count(), 2, "{shown}");
    assert!(!shown.contains("failed: "), "{shown}");
    assert_eq!([home.read(kiro), home.read(goose)], [NAMESAKE, ALIAS]);
    assert!(home.read(".junie/mcp/mcp.json").contains("plexus"));
}

/// A server with the name of Plexus is no obstacle where it is removed.
#[test]
fn a_server_with_the_name_of_plexus_makes_room() {
    const NAMESAKE: &str = r#"{"mcpServers": {"plexus": {"command": "another"}}}"#;
    let home = Home::with(&[(".cursor/mcp.json", NAMESAKE)]);
    set_up(&home, &[]);
    let server = &home.json(".cursor/mcp.json")["mcpServers"]["plexus"];
    assert_eq!(server["command"], env!("CARGO_BIN_EXE_plexus"));
    home.write(
        ".cursor/mcp.json",
        &format!("{} ", home.read(".cursor/mcp.json")),
    );
    undo(&home, &[]);
    let restored = home.json(".cursor/mcp.json");
    assert_eq!(restored, serde_json::from_str::<Value>(NAMESAKE).unwrap());
}

/// A server that two agents have is turned off in both; one that only has the same name stays on, and
/// so does one that cannot work yet.
#[test]
fn only_servers_that_plexus_has_are_turned_off() {
    let home = Home::with(&[
        (
            ".cursor/mcp.json",
            r#"{"mcpServers": {"same": {"type": "stdio", "command": "x", "args": []}, "other": {"command": "x"}}}"#,
        ),
        (
            ".junie/mcp/mcp.json",
            r#"{"mcpServers": {"same": {"command": "x"}, "other": {"command": "y"}}}"#,
        ),
        (
            ".kiro/settings/mcp.json",
            r#"{"mcpServers": {"unset": {"command": "x", "env": {"KEY": "${NOT_SET_ANYWHERE}"}}}}"#,
        ),
    ]);
    let report = set_up(&home, &[]);
    assert_eq!(
        agent(&report, "cursor")["turned_off"],
        json!(["same", "other"])
    );
    assert_eq!(agent(&report, "junie")["turned_off"], json!(["same"]));
    let kept = &agent(&report, "junie")["stays_on"][0];
    assert_eq!(kept["name"], "other");
    assert!(
        kept["reason"]
            .as_str()
            .unwrap()
            .contains("has another server of this name"),
        "{kept}"
    );
    let kept = &agent(&report, "kiro")["stays_on"][0];
    assert!(
        kept["reason"]
            .as_str()
            .unwrap()
            .contains("NOT_SET_ANYWHERE is not set"),
        "{kept}"
    );
    assert_eq!(
        home.json(".kiro/settings/mcp.json")["mcpServers"]["unset"].get("disabled"),
        None
    );

    // Once the variable is set, the next run turns it off.
    let path = home.path("bin");
    let variables = [("PATH", path.to_str().unwrap()), ("NOT_SET_ANYWHERE", "x")];
    home.run_with(&["setup", "--yes", "--offline"], &variables);
    assert_eq!(
        home.json(".kiro/settings/mcp.json")["mcpServers"]["unset"]["disabled"],
        true
    );
    undo(&home, &[]);
    assert_eq!(
        home.json(".kiro/settings/mcp.json")["mcpServers"]["unset"].get("disabled"),
        None
    );
}

/// The record has the texts of files, with their secrets.
#[test]
fn the_record_is_for_its_owner_only() {
    let home = Home::with(&[(".warp/.mcp.json", sample!("warp.json"))]);
    set_up(&home, &[]);
    let metadata = fs::metadata(home.path(RECORD)).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
}
