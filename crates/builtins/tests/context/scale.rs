//! Measures search times among many nodes.

use plexus_mcp_builtins::context::{NewNode, Search};
use plexus_mcp_store::StoreError;
use tokio::time::Instant;

use crate::support::Fixture;

/// The default number of nodes; `PLEXUS_CONTEXT_NODES` overrides it.
const NODES: u64 = 500;
const WORDS: u64 = 20_000;

/// A pseudo-random number generator (xorshift) with a fixed seed.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }

    /// A random word. Words with small numbers are more frequent, as in natural language.
    fn word(&mut self) -> String {
        let magnitude = self.next(10);
        let number = self.next((WORDS >> magnitude).max(1));
        let mut rest = number.wrapping_mul(2_654_435_761) % 1_000_003;
        let mut word = String::new();
        for _ in 0..3 {
            for letters in ["bcdfghklmnprstvw", "aeiou"] {
                let count = letters.len() as u64;
                let at = usize::try_from(rest % count).unwrap();
                word.extend(letters.chars().nth(at));
                rest /= count;
            }
        }
        word
    }

    fn words(&mut self, count: u64) -> String {
        let words: Vec<String> = (0..count).map(|_| self.word()).collect();
        words.join(" ")
    }
}

/// Most searches find a node while other nodes are stored. The test prints the search times. To
/// measure an optimised build with many nodes:
/// `PLEXUS_CONTEXT_NODES=100000 cargo test --release -p plexus-mcp-builtins --test context -- scale --nocapture`
#[tokio::test(flavor = "multi_thread")]
async fn searches_find_something_among_many_nodes() {
    let nodes = std::env::var_os("PLEXUS_CONTEXT_NODES")
        .and_then(|nodes| nodes.to_str()?.parse().ok())
        .unwrap_or(NODES);
    let fixture = Fixture::new();
    let template = fixture.put("template").await;
    let fill = move |db: &plexus_mcp_store::rusqlite::Transaction<'_>| {
        let mut numbers = Numbers(88_172_645_463_325_252);
        let mut insert = db.prepare(
            "INSERT INTO context_nodes (id, namespace, content, modality, importance, tags,
                 created_at, updated_at, state, revision)
             SELECT ?2, namespace, ?3, modality, importance, tags, created_at, updated_at, state,
                 ?4 FROM context_nodes WHERE id = ?1",
        )?;
        for n in 2..=nodes {
            let revision = i64::try_from(n).unwrap_or_default();
            insert.execute((
                &template,
                format!("ctx_{n:032x}"),
                numbers.words(60),
                revision,
            ))?;
        }
        db.execute(
            "UPDATE context_revision SET revision = ?1",
            [i64::try_from(nodes).unwrap_or_default()],
        )?;
        Ok::<_, StoreError>(())
    };
    fixture.store().write(fill).await.unwrap();
    let started = Instant::now();
    fixture.find("first").await;
    println!(
        "the first search, which makes vectors and indexes all: {:?}",
        started.elapsed()
    );
    let another = fixture.another();
    let started = Instant::now();
    another.search(Search::new("first")).await.unwrap();
    println!(
        "the first search of another process: {:?}",
        started.elapsed()
    );

    let mut numbers = Numbers(4_711);
    let mut times = Vec::new();
    let mut found_some = 0;
    for n in 0..200 {
        let query = numbers.words(2 + n % 5);
        // Each search has a new node to index first.
        fixture.put_node(NewNode::new(numbers.words(60))).await;
        let started = Instant::now();
        let found = fixture.graph.search(Search::new(query)).await.unwrap();
        times.push(started.elapsed());
        found_some += usize::from(found.count > 0);
    }
    times.sort_unstable();
    let [median, high] = [times[times.len() / 2], times[times.len() * 95 / 100]];
    println!(
        "median {median:?}, 95 of 100 {high:?}, worst {:?}",
        times[times.len() - 1]
    );
    // Rare words may occur in no node.
    assert!(found_some > times.len() / 2, "{found_some}");
}
