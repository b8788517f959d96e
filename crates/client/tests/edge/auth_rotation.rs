//! Token rotation with many sessions in several processes; old tokens are invalidated at once.

use std::collections::HashSet;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use http::HeaderValue;
use plexus_mcp_client::auth::{FileVault, OAuth, OAuthOptions, VaultKey};
use plexus_mcp_client::{Target, Upstream};
use plexus_mcp_oauth::Challenges;
use plexus_testkit::authorization_server::{Behaviour, TokenRequirements};
use plexus_testkit::server::{Received, Reply};
use serde_json::json;
use tokio::sync::watch;

use crate::auth_fixture::{Protected, by_a_user, offer};
use crate::support::{Caller, STATELESS, connected, minimal, target, value};

const PROCESSES: usize = 4;
const SESSIONS: usize = 50;
const ROUNDS: usize = 5;
/// Set in the child processes of this test; holds the parameters of the process as JSON.
const ROLE: &str = "PLEXUS_TEST_SESSIONS";

/// The sessions that were served in the current round, and whether the test is over.
#[derive(Debug, Default)]
struct Round {
    served: HashSet<String>,
    over: bool,
}

/// 50 sessions in 4 processes: no session is logged out, and there is exactly one
/// renewal for each expiry (TRAP-32).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn token_rotation_logs_out_no_session() {
    let round = Arc::new(Mutex::new(Round::default()));
    let progress = Arc::new(watch::Sender::new(0));
    let mut progressed = progress.subscribe();
    let (seen, counted) = (Arc::clone(&round), Arc::clone(&progress));
    let protected = Protected::answering(
        Behaviour::default(),
        TokenRequirements::default(),
        move |request| {
            let is_over = note(&seen, &counted, request);
            match request.mcp() {
                "tools/call" => {
                    let text = if is_over { "over" } else { "go on" };
                    let content = json!([{"type": "text", "text": text}]);
                    Reply::json(
                        &request.result(&json!({"resultType": "complete", "content": content})),
                    )
                }
                _ => request.reply_from(&offer()),
            }
        },
    )
    .await;

    let folder = tempfile::tempdir().unwrap();
    let mut options = protected.options();
    options.vault = Arc::new(vault(folder.path().to_str().unwrap()));
    by_a_user(options)
        .sign_in(Challenges::default())
        .await
        .unwrap();

    let processes: Vec<_> = (0..PROCESSES)
        .map(|number| {
            let role = json!({
                "url": protected.server.url(),
                "folder": folder.path(),
                "first": number * SESSIONS / PROCESSES,
                "after": (number + 1) * SESSIONS / PROCESSES,
            });
            start(&role.to_string())
        })
        .collect();

    for renewals in 0..=ROUNDS {
        let all = plexus_testkit::within("all sessions", progressed.wait_for(|n| *n == SESSIONS));
        drop(all.await.unwrap());
        let counts = protected.issuer.counts();
        assert_eq!(usize::try_from(counts.renewals).unwrap(), renewals);
        if renewals < ROUNDS {
            let mut round = round.lock().unwrap();
            protected.issuer.expire();
            round.served.clear();
            progress.send_replace(0);
        }
    }
    round.lock().unwrap().over = true;
    for process in processes {
        let ended = plexus_testkit::within("a process", process.wait_with_output()).await;
        let ended = ended.unwrap();
        let said = String::from_utf8_lossy(&ended.stdout).into_owned();
        assert!(ended.status.success(), "{said}");
    }
    let counts = protected.issuer.counts();
    assert_eq!(usize::try_from(counts.renewals).unwrap(), ROUNDS);
    assert_eq!((counts.replays, counts.sign_ins), (0, 1));
}

/// Not a test by itself: the main function of each child process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_in_a_child_process() {
    let Some(role) = std::env::var_os(ROLE) else {
        return;
    };
    let role: serde_json::Value = serde_json::from_str(role.to_str().unwrap()).unwrap();
    let number = |name: &str| role[name].as_u64().unwrap();
    let sessions = (number("first")..number("after")).map(|name| {
        let url = role["url"].as_str().unwrap();
        // The sessions share nothing but the token files.
        let mut options = OAuthOptions::new(url.parse().unwrap());
        options.vault = Arc::new(vault(role["folder"].as_str().unwrap()));
        let mut target = target(url);
        let name = HeaderValue::try_from(name.to_string()).unwrap();
        target.headers.insert("x-session", name);
        target.authorizer = Some(Arc::new(OAuth::new(options)));
        let mut definition = minimal(Target::Http(target));
        definition.era = Some(STATELESS.era());
        async move {
            let upstream = connected(definition).await;
            while works_on(&upstream).await {}
        }
    });
    futures_util::future::join_all(sessions).await;
}

async fn works_on(upstream: &Upstream) -> bool {
    let params = json!({"name": "work", "arguments": {}});
    let (outcome, _events) = Caller::default().call(upstream, "tools/call", &params);
    let outcome = outcome
        .await
        .unwrap_or_else(|fault| panic!("logged out: {fault}"));
    value(&outcome)["content"][0]["text"] == "go on"
}

fn note(round: &Mutex<Round>, progress: &watch::Sender<usize>, request: &Received) -> bool {
    let mut round = round.lock().unwrap();
    if let Some(session) = request.header("x-session")
        && request.mcp() == "tools/call"
    {
        round.served.insert(session.to_owned());
        progress.send_replace(round.served.len());
    }
    round.over
}

fn vault(folder: &str) -> FileVault {
    FileVault::new(folder, VaultKey::new([7; 32]))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test itself is the program, and ends its processes when it ends"
)]
fn start(role: &str) -> tokio::process::Child {
    let test = std::env::current_exe().unwrap();
    tokio::process::Command::new(test)
        .args([
            "--exact",
            "auth_rotation::sessions_in_a_child_process",
            "--nocapture",
        ])
        .env(ROLE, role)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}
