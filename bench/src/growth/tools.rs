//! 10 to 50,000 tools of one server.

use anyhow::ensure;
use serde_json::json;
use tokio::time::Instant;

use super::client::{Client, median, micros};
use super::gateway::Gateways;
use super::report::Report;
use super::series::{Cost, Series};
use super::upstream::tool_name;

const SIZES: [u32; 6] = [10, 100, 1_000, 10_000, 20_000, 50_000];
const CALLS: u32 = 300;
const SEARCHES: u32 = 60;
const LISTINGS: u32 = 3;

/// A client of this name finds tools instead of listing them.
const SEARCHER: &str = "searcher";

/// Words of the descriptions; the first two queries are of common words, the others of rarer ones.
const QUERIES: [&str; 6] = [
    "list invoice",
    "export customer report",
    "region 7 payment",
    "schedule shipment number 77",
    "recipe",
    "archive the calendar of a branch",
];

pub(super) fn measure(gateways: &Gateways, report: &mut Report) -> anyhow::Result<()> {
    let new = |name, unit, cost, noise| Series::new(name, "tools", unit, cost, noise);
    let mut taken_in = new("Start until all tools are listed", "s", Cost::Whole, 0.2);
    let mut listed = new("Listing, for each tool", "µs", Cost::Each, 2.0);
    let mut called = new("A call of one of many tools", "µs", Cost::Whole, 40.0);
    let mut first_searched = new("The first tool search", "ms", Cost::Whole, 2.0);
    let mut searched = new("A tool search", "ms", Cost::Whole, 0.1);
    for size in gateways.sizes(&SIZES) {
        let home = gateways.home(&format!("[clients.{SEARCHER}]\nsearch = true\n"))?;
        let gateway = gateways.start_with(&home, 1, size)?;
        let mut client = Client::open(gateway.address, "bench")?;
        taken_in.add(size, gateway.wait_for_tools(&mut client, size)?);

        let mut times = Vec::new();
        for _ in 0..LISTINGS {
            let began = Instant::now();
            let tools = client.count_tools()?;
            ensure!(tools == size, "{tools} tools");
            times.push(micros(began.elapsed()));
        }
        listed.add(size, median(times)? / f64::from(size));

        let arguments = json!({"message": "hello"});
        let tool = |number: u32| format!("up0__{}", tool_name(number * 7919 % size));
        let time = client.time_calls(CALLS, |number| (tool(number), arguments.clone()))?;
        called.add(size, time);

        let mut searcher = Client::open(gateway.address, SEARCHER)?;
        let mut queries = QUERIES.iter().cycle();
        let mut search = |_| {
            let query = queries.next().copied().unwrap_or_default();
            ("SearchTools".to_owned(), json!({"query": query}))
        };
        // It builds the index.
        first_searched.add(size, searcher.time_calls(1, &mut search)? / 1e3);
        let time = searcher.time_calls(SEARCHES, search)?;
        searched.add(size, time / 1e3);
    }
    let search = searched.at(20_000);
    report.bound("A tool search at 20,000 tools", search, 1.0, "ms");
    for series in [taken_in, listed, called, first_searched, searched] {
        report.add(series);
    }
    Ok(())
}
