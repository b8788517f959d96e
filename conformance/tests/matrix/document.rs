//! Checks that the tables in `docs/protocol.md` are equal to the matrix that the tests check.

use std::fmt::Write;
use std::path::Path;

use plexus_mcp_protocol::Revision;

use crate::verdict::{Feature, Verdict, verdict};

const BEGIN: &str = "<!-- matrix: begin -->";
const END: &str = "<!-- matrix: end -->";

/// If `PLEXUS_WRITE_MATRIX` is set, this writes the tables instead of checking them.
#[test]
fn the_document_shows_the_matrix_that_is_tested() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/protocol.md");
    let document = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = document.split_once(BEGIN).expect("where the matrix begins");
    let (shown, after) = rest.split_once(END).expect("where the matrix ends");
    let matrix = matrix();
    if std::env::var_os("PLEXUS_WRITE_MATRIX").is_some() {
        let document = format!("{before}{BEGIN}\n\n{matrix}\n{END}{after}");
        std::fs::write(&path, document).unwrap();
        return;
    }
    assert!(
        shown.trim() == matrix.trim(),
        "docs/protocol.md shows another matrix; write it anew with \
         PLEXUS_WRITE_MATRIX=1 cargo test -p plexus-conformance --test matrix document"
    );
}

/// A list of the features that are lossless in every pair, and a table for each other feature.
fn matrix() -> String {
    let mut text = String::new();
    let everywhere: Vec<_> = Feature::ALL
        .into_iter()
        .filter(|feature| cells(*feature).all(|cell| cell == Verdict::Lossless))
        .map(Feature::name)
        .collect();
    writeln!(text, "Lossless in every pair: {}.", everywhere.join(", ")).unwrap();
    for feature in Feature::ALL {
        if cells(feature).any(|cell| cell != Verdict::Lossless) {
            text.push_str(&table(feature));
        }
    }
    text
}

fn cells(feature: Feature) -> impl Iterator<Item = Verdict> {
    let pairs = Revision::ALL
        .into_iter()
        .flat_map(|client| Revision::ALL.map(|server| (client, server)));
    pairs.map(move |(client, server)| verdict(feature, client, server))
}

fn table(feature: Feature) -> String {
    let mut text = format!("\n**{}**\n\n| client \\ server |", feature.name());
    for server in Revision::ALL {
        write!(text, " {server} |").unwrap();
    }
    text.push_str("\n|---|---|---|---|---|---|\n");
    let mut notes: Vec<(&str, &str)> = Vec::new();
    for client in Revision::ALL {
        write!(text, "| {client} |").unwrap();
        for server in Revision::ALL {
            let word = match verdict(feature, client, server) {
                Verdict::Lossless => "lossless",
                Verdict::Lossy(how) => {
                    notes.push(("Lossy", how));
                    "lossy"
                }
                Verdict::Impossible(why) => {
                    notes.push(("Impossible", why));
                    "impossible"
                }
            };
            write!(text, " {word} |").unwrap();
        }
        text.push('\n');
    }
    notes.sort_unstable();
    notes.dedup();
    for (kind, note) in notes {
        write!(text, "\n{kind}: {note}.\n").unwrap();
    }
    text
}
