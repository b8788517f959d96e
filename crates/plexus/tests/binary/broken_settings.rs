//! A `plexus.toml` with an error.

use serde_json::json;

use crate::gateway::{answer, call, control, definition, echoing, file, until_tools};
use crate::home::Home;

const USERS: &str = ".config/plexus/plexus.toml";
const PROJECTS: &str = "project/plexus.toml";

/// At start, nothing is served without the rules in the file: the place of the error and the nearest
/// valid key are named.
#[test]
fn nothing_starts_with_a_broken_file() {
    for (name, text, place, expected) in [
        (
            USERS,
            "[policy]\nmod = \"default\"\n",
            ":2:1",
            "did you mean mode?",
        ),
        (
            PROJECTS,
            "[policy]\nmode = \"defualt\"\n",
            ":2:8",
            "did you mean default?",
        ),
        (USERS, "[hub\n", ":1:5", ""),
        (
            USERS,
            "[hub]\npage_size = \"many\"\n",
            ":2:13",
            "hub.page_size",
        ),
    ] {
        let home = Home::with(&[(name, text)]);
        for command in [
            &["serve", "--stdio"][..],
            &["serve", "--http", "127.0.0.1:0"],
            &["tools"],
        ] {
            let ended = home.start(command).end();
            assert_eq!(ended.code, Some(1), "{command:?}: {ended:?}");
            let said = ended.stderr.join("\n");
            assert!(said.contains(&format!("plexus.toml{place}")), "{said}");
            assert!(
                expected == "hub.page_size" || said.contains(expected),
                "{said}"
            );
            assert!(said.contains("tip: correct the file"), "{said}");
        }
    }
}

/// While a gateway runs, the settings from before stay in force, and the problem is told on standard
/// error, in the status and in the instructions. The same holds for the file of a project.
#[tokio::test(flavor = "multi_thread")]
async fn a_running_gateway_keeps_its_settings() {
    for broken in [USERS, PROJECTS] {
        let server = echoing().await;
        let rules = "[policy]\nrules = [{ tool = \"*secret*\", action = \"deny\" }]\n";
        let home = Home::with(&[
            (
                ".mcp.json",
                &file(&[("a", definition(&server)), ("secret", definition(&server))]),
            ),
            (USERS, rules),
            (PROJECTS, ""),
        ]);
        let mut plexus = home.start(&["serve", "--stdio"]);
        plexus.initialize("2025-06-18");
        until_tools(&mut plexus, "a__", &["a__work"]);
        until_tools(&mut plexus, "secret__", &["secret__work"]);
        home.write(broken, "[policy]\nruels = []\n");
        let told = plexus.wait_for_stderr("plexus.toml:2:1: ");
        assert!(told.contains("did you mean rules?"), "{told}");
        assert!(told.contains("the settings from before apply"), "{told}");

        plexus.send(&call("a__work", 1));
        let allowed = answer(&plexus, &json!(1));
        assert_eq!(allowed["result"]["echo"]["arguments"]["n"], 1, "{allowed}");
        plexus.send(&call("secret__work", 2));
        let denied = answer(&plexus, &json!(2));
        assert_eq!(denied["result"]["isError"], true, "{denied}");

        let status = control::status(&home, &plexus);
        let problem = status["problems"][0].as_str().unwrap();
        assert!(
            problem.contains("the settings from before apply"),
            "{problem}"
        );
        let discover = r#"{"jsonrpc":"2.0","id":"d","method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
        let discovered = plexus.ask(discover).to_string();
        assert!(
            discovered.contains("A plexus.toml has an error"),
            "{discovered}"
        );
        let diagnosis = home.start(&["doctor", "--offline"]).end();
        assert_eq!(diagnosis.code, Some(1));
        assert!(
            diagnosis.stdout.join("\n").contains("did you mean rules?"),
            "{diagnosis:?}"
        );
        assert_eq!(plexus.end().code, Some(0));
    }
}
