//! 100 to 100,000 memories.

use std::ops::Range;
use std::path::Path;

use plexus_mcp_builtins::context::{Graph, MIGRATIONS, NewNode};
use plexus_mcp_store::{FILE_NAME, Store};
use serde_json::json;
use tokio::time::Instant;

use super::client::{Client, median, micros};
use super::gateway::Gateways;
use super::report::Report;
use super::series::{Cost, Series};

const SIZES: [u32; 4] = [100, 1_000, 10_000, 100_000];
/// How many processes make a first search.
const PROCESSES: u32 = 5;
const SEARCHES: u32 = 60;
const WORDS_OF_A_NODE: u32 = 60;
const WORDS: u32 = 20_000;

pub(super) fn measure(gateways: &Gateways, report: &mut Report) -> anyhow::Result<()> {
    let new = |name, unit, cost, noise| Series::new(name, "memories", unit, cost, noise);
    let mut first = new(
        "The first memory search of a process",
        "ms",
        Cost::Whole,
        2.0,
    );
    let mut later = new("A later memory search", "ms", Cost::Whole, 1.0);
    let mut stored = new("Storing, for each memory", "µs", Cost::Each, 20.0);
    let home = gateways.home("")?;
    std::fs::create_dir_all(home.data())?;
    let path = home.data().join(FILE_NAME);
    let mut words = Words(88_172_645_463_325_252);
    let mut count = 0;
    for size in gateways.sizes(&SIZES) {
        let began = Instant::now();
        fill(&path, count..size, &mut words)?;
        stored.add(size, micros(began.elapsed()) / f64::from(size - count));
        count = size;
        let mut firsts = Vec::new();
        let mut laters = Vec::new();
        for _ in 0..PROCESSES {
            let gateway = gateways.start(&home)?;
            let mut client = Client::open(gateway.address, "bench")?;
            let mut search = || {
                let query = words.text(3);
                ("context_search".to_owned(), json!({"query": query}))
            };
            firsts.push(client.time_calls(1, |_| search())?);
            laters.push(client.time_calls(SEARCHES / PROCESSES, |_| search())?);
        }
        first.add(size, median(firsts)? / 1e3);
        later.add(size, median(laters)? / 1e3);
    }
    let figure = first.at(100_000);
    report.bound(
        "The first memory search at 100,000 nodes",
        figure,
        20.0,
        "ms",
    );
    for series in [first, later, stored] {
        report.add(series);
    }
    Ok(())
}

/// Stores nodes as the gateway would.
fn fill(path: &Path, numbers: Range<u32>, words: &mut Words) -> anyhow::Result<()> {
    let graph = Graph::new(Store::open(path, &[MIGRATIONS])?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        for _ in numbers {
            let node = NewNode::new(words.text(WORDS_OF_A_NODE));
            graph.store(node, "bench").await?;
        }
        Ok(())
    })
}

/// Words that look random and are the same in every run.
struct Words(u64);

impl Words {
    fn next(&mut self, below: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        u32::try_from(self.0 % u64::from(below.max(1))).unwrap_or_default()
    }

    /// A word, the more common the smaller its number, as in a language.
    fn word(&mut self) -> String {
        let magnitude = self.next(10);
        let number = self.next(WORDS >> magnitude);
        let mut rest = u64::from(number).wrapping_mul(2_654_435_761) % 1_000_003;
        let mut word = String::new();
        for _ in 0..3 {
            for letters in ["bcdfghklmnprstvw", "aeiou"] {
                let count = letters.len() as u64;
                let at = usize::try_from(rest % count).unwrap_or_default();
                word.extend(letters.chars().nth(at));
                rest /= count;
            }
        }
        word
    }

    fn text(&mut self, words: u32) -> String {
        let words: Vec<String> = (0..words).map(|_| self.word()).collect();
        words.join(" ")
    }
}
