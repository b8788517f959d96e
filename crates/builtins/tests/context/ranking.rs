//! Search quality: mean reciprocal rank and recall for a small set of queries with known answers.

use std::collections::HashMap;

use plexus_mcp_builtins::context::{Link, NewNode, Search};

use crate::support::Fixture;

/// Notes such as agents store, with their keys.
const NOTES: [(&str, &str); 30] = [
    (
        "auth-flow",
        "Users sign in through OAuth 2.1 with PKCE. The gateway exchanges the code and stores a session cookie.",
    ),
    (
        "auth-tokens",
        "Access tokens live five minutes. Refresh tokens rotate on every use and are revoked together if one is replayed.",
    ),
    (
        "auth-patterns",
        "Authentication patterns we accept: bearer header, mutual TLS between services, never basic auth.",
    ),
    (
        "auth-incident",
        "Incident of 12 March: expired signing key made every login fail for forty minutes.",
    ),
    (
        "db-choice",
        "We use PostgreSQL 17 for shared data and SQLite on a single node.",
    ),
    (
        "db-migrations",
        "Database migrations run at start-up in one transaction. Never edit a migration that was released.",
    ),
    (
        "db-pool",
        "Connection pool: 20 connections per node, a statement timeout of 30 seconds.",
    ),
    (
        "db-backup",
        "Nightly backups go to object storage and are restored into a scratch database every Sunday.",
    ),
    (
        "cache-policy",
        "Catalogue responses may be cached for 60 seconds; tool results are never cached.",
    ),
    (
        "cache-bug",
        "The stale list after reconnect was a cache key that lacked the tenant.",
    ),
    (
        "deploy-steps",
        "Deployment: build the image, run the smoke tests, shift ten percent of traffic, wait, shift the rest.",
    ),
    (
        "deploy-rollback",
        "To roll back, point the load balancer at the previous release; migrations are backwards compatible.",
    ),
    (
        "deploy-freeze",
        "No releases on Fridays or in the last week of December.",
    ),
    (
        "rust-errors",
        "Errors are thiserror enums per operation; anyhow is for binaries only.",
    ),
    (
        "rust-style",
        "Files stay under 300 lines. Comments say why. No unwrap on input.",
    ),
    (
        "rust-async",
        "Never hold a std mutex guard across an await point; use message passing or a scoped block.",
    ),
    (
        "http-limits",
        "Requests larger than one megabyte are refused with 413 before their body is read.",
    ),
    (
        "http-sse",
        "Server-sent events carry an id so that a client can resume with Last-Event-ID.",
    ),
    (
        "http-cors",
        "Origin and Host headers are checked before anything is parsed, against DNS rebinding.",
    ),
    (
        "search-ranking",
        "Search fuses BM25, trigram similarity and graph distance with reciprocal ranks.",
    ),
    (
        "search-latency",
        "Median latency of a search over a hundred thousand nodes must stay below 20 milliseconds.",
    ),
    (
        "team-oncall",
        "On-call rotates weekly, handover on Monday at ten. Escalate to Mara after fifteen minutes.",
    ),
    (
        "team-reviews",
        "Every change needs one review; changes to the wire format need two.",
    ),
    (
        "ui-dark-mode",
        "Dark mode follows the system preference unless the user chose otherwise.",
    ),
    (
        "ui-shortcuts",
        "Keyboard shortcuts: slash opens search, question mark shows help.",
    ),
    (
        "billing-plan",
        "Invoices are issued on the first of the month in euros; the provider is Stripe.",
    ),
    (
        "logging",
        "Logs are structured JSON on standard error, with a request id and without secrets.",
    ),
    (
        "metrics",
        "Prometheus scrapes /metrics every 15 seconds; alerts fire after three missed scrapes.",
    ),
    (
        "parser-code",
        "fn parseFrame(bytes: &[u8]) -> Result<Frame, FrameError> splits at newlines and rejects embedded ones.",
    ),
    (
        "keycloak",
        "Realm export and client secrets live in the vault under identity/production.",
    ),
];

/// Queries, each with the notes that answer it, best first.
const QUESTIONS: [(&str, &[&str]); 20] = [
    ("authentication patterns", &["auth-patterns"]),
    ("how long do access tokens live", &["auth-tokens"]),
    ("refresh token rotation", &["auth-tokens"]),
    ("why did logins fail in March", &["auth-incident"]),
    ("which database do we use", &["db-choice", "db-migrations"]),
    ("edit a released migration", &["db-migrations"]),
    ("conection pool size", &["db-pool"]),
    ("restoring backups", &["db-backup"]),
    ("are tool results cached", &["cache-policy", "cache-bug"]),
    ("how to roll back a release", &["deploy-rollback"]),
    ("can I deploy on Friday", &["deploy-freeze", "deploy-steps"]),
    ("error handling thiserror", &["rust-errors"]),
    ("mutex across await", &["rust-async"]),
    ("maximum request size megabyte", &["http-limits"]),
    ("resume event stream", &["http-sse"]),
    ("DNS rebinding protection", &["http-cors"]),
    ("reciprocal rank fusion", &["search-ranking"]),
    ("parse frame", &["parser-code"]),
    ("who is on call", &["team-oncall"]),
    ("PKCE sign in session", &["auth-flow", "keycloak"]),
];

async fn notes() -> Fixture {
    let fixture = Fixture::new();
    let mut ids = HashMap::new();
    for (key, content) in NOTES {
        let id = fixture.put_node(NewNode::new(content).key(key)).await;
        ids.insert(key, id);
    }
    for (source, target) in [
        ("auth-flow", "keycloak"),
        ("deploy-rollback", "db-migrations"),
    ] {
        let link = Link::new(&ids[source], &ids[target]);
        fixture.graph.link(link, "test").await.unwrap();
    }
    fixture
}

/// The best answer is nearly always the first hit, and nearly every answer is among the first ten.
///
/// One answer is known to be missed: "cached" and "cache" are different words, and the other words
/// have too few trigrams in common.
#[tokio::test]
async fn known_answers_rank_high() {
    let fixture = notes().await;
    let mut reciprocal_ranks = Vec::new();
    let mut recalled = Vec::new();
    for (question, answers) in QUESTIONS {
        let found = fixture.graph.search(Search::new(question)).await.unwrap();
        let keys: Vec<&str> = found
            .results
            .iter()
            .map(|hit| hit.node.key.as_deref().unwrap())
            .collect();
        let rank = |answer: &str| (1_u32..).zip(&keys).find(|(_, key)| **key == answer);
        let best = rank(answers[0]);
        reciprocal_ranks.push(best.map_or(0.0, |(rank, _)| 1.0 / f64::from(rank)));
        recalled.extend(
            answers
                .iter()
                .map(|answer| f64::from(u8::from(rank(answer).is_some()))),
        );
    }
    let (rank, recall) = (mean(&reciprocal_ranks), mean(&recalled));
    println!("mean reciprocal rank {rank:.3}, recall {recall:.3}");
    assert!(rank >= 0.95, "mean reciprocal rank {rank:.3}");
    assert!(recall >= 0.95, "recall {recall:.3}");
}

fn mean(values: &[f64]) -> f64 {
    let count = u32::try_from(values.len()).unwrap();
    values.iter().sum::<f64>() / f64::from(count)
}

/// A query that is unrelated to all notes finds at most two.
#[tokio::test]
async fn questions_about_nothing_find_little() {
    let fixture = notes().await;
    for question in ["volcano xylophone", "zebra quartz vibraphone"] {
        let mut search = Search::new(question);
        search.breakdown = true;
        let found = fixture.graph.search(search).await.unwrap();
        assert!(found.count <= 2, "{question}: {found:?}");
    }
}
