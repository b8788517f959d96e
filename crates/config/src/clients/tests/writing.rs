//! Edits of the files of other clients.

use std::path::Path;

use plexus_mcp_wire::Raw;

use super::{Client, sample_text};
use crate::clients::{ClientFile, PLEXUS, TakenBack, read};

fn file(client: Client) -> &'static Path {
    let is_yaml = matches!(client, Client::Goose | Client::Continue);
    Path::new(if is_yaml { "sample.yaml" } else { "sample" })
}

fn command() -> Vec<String> {
    ["/opt/plexus dir/plexus", "serve", "--stdio"]
        .map(str::to_owned)
        .into()
}

fn open(client: Client, text: &str) -> ClientFile {
    ClientFile::of(client, file(client), text).unwrap()
}

/// The names of the servers that a client would start.
fn turned_on(client: Client, text: &str) -> Vec<String> {
    let read = read(client, file(client), text.trim_start_matches('\u{feff}'));
    assert_eq!(read.problems, [], "{client:?}: {text}");
    let servers = read.servers.into_iter();
    servers
        .filter(|server| server.project.is_none())
        .filter(|server| server.refused.is_none() || server.is_plexus)
        .filter(|server| server.definition.get("disabled").map(Raw::as_str) != Some("true"))
        .map(|server| server.name)
        .collect()
}

/// Registers Plexus and turns all others off.
fn set_up(client: Client, text: &str) -> ClientFile {
    let mut edited = open(client, text);
    edited.register(&command()).unwrap();
    for name in turned_on(client, text)
        .iter()
        .filter(|name| *name != PLEXUS)
    {
        edited.disable(name).unwrap();
    }
    edited
}

#[test]
fn only_plexus_is_left_turned_on_and_comments_stay() {
    for client in Client::ALL {
        let text = sample_text(client);
        for text in [
            text.to_owned(),
            format!("\u{feff}{}", text.replace('\n', "\r\n")),
        ] {
            let edited = set_up(client, &text);
            let written = edited.written();
            println!("--- {client:?}\n{written}");
            assert_eq!(turned_on(client, &written), [PLEXUS], "{client:?}");
            assert_eq!(written.contains('\r'), text.contains('\r'), "{client:?}");
            assert!(!written.replace("\r\n", "").contains('\r'), "{client:?}");
            assert_eq!(
                written.starts_with('\u{feff}'),
                text.starts_with('\u{feff}')
            );
            let comments = |text: &str| {
                let lines = text.lines().map(str::trim);
                lines
                    .filter(|line| line.starts_with(['#', '/']))
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            assert_eq!(comments(&written), comments(&text), "{client:?}");
            // A second time, there is nothing to do.
            assert_eq!(set_up(client, &written).edits(), [], "{client:?}");
        }
    }
}

#[test]
fn edits_are_taken_back_from_a_file_that_has_changed() {
    for client in Client::ALL {
        let text = sample_text(client);
        let edited = set_up(client, text);
        let mut later = open(client, &edited.written());
        for edit in edited.edits().iter().rev() {
            assert_eq!(
                later.take_back(edit).unwrap(),
                TakenBack::Done,
                "{client:?} {edit:?}"
            );
        }
        let mut before = turned_on(client, text);
        let mut after = turned_on(client, &later.written());
        before.sort();
        after.sort();
        assert_eq!(after, before, "{client:?}");
        let definitions = |text: &str| {
            let mut servers = read(client, file(client), text).servers;
            servers.sort_by(|a, b| a.name.cmp(&b.name));
            let definitions = servers.into_iter().map(|server| {
                (
                    server.name,
                    crate::json::compact(&server.definition.to_raw()),
                )
            });
            definitions.collect::<Vec<_>>()
        };
        assert_eq!(
            definitions(&later.written()),
            definitions(text),
            "{client:?}"
        );
        for edit in edited.edits() {
            assert_eq!(
                later.take_back(edit).unwrap(),
                TakenBack::Changed,
                "{client:?} {edit:?}"
            );
        }
    }
}

/// A file that does not exist, or has no servers, gets its first one.
#[test]
fn plexus_is_added_to_files_without_servers() {
    let yaml = [
        "",
        "a: 1\n",
        "extensions: {}\n",
        "extensions:\nb: 2\n",
        "extensions: {x: {type: stdio, cmd: y, enabled: false}}\n",
    ];
    let toml = ["", "# only a comment\n", "a = 1\n[mcp_servers]\n"];
    let json = [
        "",
        "{}",
        "{\"a\": 1}",
        "{\"mcpServers\": null}",
        "{\"mcpServers\": {}, \"a\": [1]}",
    ];
    let cases = [
        (Client::Goose, yaml.as_slice()),
        (Client::Codex, &toml),
        (Client::Cursor, &json),
    ];
    for (client, texts) in cases {
        for text in texts {
            let mut edited = open(client, text);
            assert_eq!(edited.register(&command()), Ok(()), "{client:?}: {text}");
            let written = edited.written();
            assert_eq!(turned_on(client, &written), [PLEXUS], "{client:?}: {text}");
            let mut later = open(client, &written);
            later.take_back(&edited.edits()[0]).unwrap();
            assert!(
                !later.written().contains("plexus"),
                "{client:?}: {}",
                later.written()
            );
        }
    }
}

/// What cannot be edited safely is refused, and the text stays.
#[test]
fn unsafe_edits_are_refused() {
    let cases = [
        (
            Client::Goose,
            "extensions: &x\n  a: {type: stdio, cmd: y, enabled: true}\nb: *x\n",
            "without changing the rest",
        ),
        (
            Client::Goose,
            "extensions:\n  a: {<<: {type: stdio}, cmd: y, enabled: yes please}\n",
            "without changing the rest",
        ),
        (
            Client::Cursor,
            "{\"mcpServers\": []}",
            "without changing the rest",
        ),
        (
            Client::Cursor,
            "{\"mcpServers\": {\"Plexus\": {\"command\": \"x\"}}}",
            "another server of this name",
        ),
        (
            Client::Cursor,
            "{\r\n\"a\": 1,\n\"b\": 2}",
            "some of its lines end with",
        ),
        (Client::Cursor, "[1]", "not an object"),
    ];
    for (client, text, expected) in cases {
        let edited = ClientFile::of(client, file(client), text).and_then(|mut edited| {
            edited.register(&command())?;
            edited.disable("a")?;
            Ok(edited)
        });
        let problem = edited.unwrap_err().to_string();
        assert!(problem.contains(expected), "{text}: {problem}");
    }
}

/// Neither a file nor an edit shows a secret in its debug form.
#[test]
fn debug_output_has_no_secrets() {
    let mut edited = open(Client::LmStudio, sample_text(Client::LmStudio));
    edited.disable("hf").unwrap();
    let shown = format!("{edited:?}");
    assert!(
        shown.contains("Removed(\"hf\")") && !shown.contains("hunter2"),
        "{shown}"
    );
}
