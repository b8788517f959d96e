//! 100 to 100,000 tasks: pending ones, and ones whose claims have expired.

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use plexus_mcp_builtins::task::{MIGRATIONS, NewTask, Tasks};
use plexus_mcp_store::{FILE_NAME, Store};
use serde_json::json;

use super::client::Client;
use super::gateway::Gateways;
use super::report::Report;
use super::series::{Cost, Series};

const SIZES: [u32; 4] = [100, 1_000, 10_000, 100_000];
const CALLS: u32 = 40;

/// The state of all tasks in a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Pending,
    /// Claimed by an agent that is gone: ready again, but still with the claim.
    ClaimExpired,
}

pub(super) fn measure(gateways: &Gateways, report: &mut Report) -> anyhow::Result<()> {
    let (next, claim) = measure_in(gateways, State::Pending, ["task_next", "task_claim"])?;
    report.bound("task_next at 100,000 tasks", next.at(100_000), 2.0, "ms");
    report.bound("task_claim at 100,000 tasks", claim.at(100_000), 2.0, "ms");
    report.add(next);
    report.add(claim);
    let names = ["task_next, expired claims", "task_claim, expired claims"];
    let (next, claim) = measure_in(gateways, State::ClaimExpired, names)?;
    let figures = (next.at(100_000), claim.at(100_000));
    report.bound("task_next at 100,000 expired claims", figures.0, 2.0, "ms");
    report.bound("task_claim at 100,000 expired claims", figures.1, 2.0, "ms");
    report.add(next);
    report.add(claim);
    Ok(())
}

/// Measures `task_next` and `task_claim` in a gateway of their own.
fn measure_in(
    gateways: &Gateways,
    state: State,
    names: [&'static str; 2],
) -> anyhow::Result<(Series, Series)> {
    let [mut next, mut claim] =
        names.map(|name| Series::new(name, "tasks", "ms", Cost::Whole, 0.2));
    let home = gateways.home("")?;
    let mut stored = 0;
    for size in gateways.sizes(&SIZES) {
        std::fs::create_dir_all(home.data())?;
        fill(&home.data().join(FILE_NAME), stored..size, state)?;
        stored = size;
        let gateway = gateways.start(&home)?;
        let mut client = Client::open(gateway.address, "bench")?;
        client.call("task_next_tasks", &json!({}))?;
        let time = client.time_calls(CALLS, |_| ("task_next_tasks".to_owned(), json!({})))?;
        next.add(size, time / 1e3);
        let time = client.time_calls(CALLS, |_| {
            ("task_claim_task".to_owned(), json!({"owner": "bench"}))
        })?;
        claim.add(size, time / 1e3);
    }
    Ok((next, claim))
}

/// Creates tasks as the gateway would.
fn fill(path: &Path, numbers: Range<u32>, state: State) -> anyhow::Result<()> {
    let tasks = Tasks::new(Store::open(path, &[MIGRATIONS])?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        for number in numbers {
            let task = NewTask {
                description: format!("Check the invoice number {number}"),
                parent_id: None,
                priority: u8::try_from(number % 5)? + 1,
                context: None,
            };
            let task = tasks.create(task).await?;
            if state == State::ClaimExpired {
                tasks.claim(Some(task.id), "gone", Duration::ZERO).await?;
            }
        }
        Ok(())
    })
}
