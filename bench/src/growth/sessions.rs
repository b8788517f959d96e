//! 1 to 50,000 sessions of 2025-11-25.

use serde_json::json;
use tokio::time::Instant;

use super::client::{Connection, median, micros};
use super::gateway::Gateways;
use super::report::Report;
use super::series::{Cost, Series};

const SIZES: [u32; 6] = [1, 10, 100, 1_000, 10_000, 50_000];
const CALLS: usize = 500;

pub(super) fn measure(gateways: &Gateways, report: &mut Report) -> anyhow::Result<()> {
    let new = |name, unit, cost, noise| Series::new(name, "sessions", unit, cost, noise);
    let mut opened = new("Opening, for each session", "µs", Cost::Each, 20.0);
    let mut called = new("A call in one of many sessions", "µs", Cost::Whole, 40.0);
    // The memory of few sessions disappears in what the allocator keeps.
    let mut memory = new("Memory of each session", "KiB", Cost::Each, 0.5);
    let home = gateways.home("")?;
    let gateway = gateways.start(&home)?;
    let mut connection = Connection::open(gateway.address)?;
    let mut sessions = vec![connection.open_session("bench")?];
    let before = gateway.memory_kib()?;
    let ping = json!({"name": "echo_ping", "arguments": {}});
    for size in gateways.sizes(&SIZES) {
        let count = usize::try_from(size)?;
        let new = count.saturating_sub(sessions.len());
        let began = Instant::now();
        for _ in 0..new {
            sessions.push(connection.open_session("bench")?);
        }
        let elapsed = micros(began.elapsed());
        if new > 0 {
            opened.add(size, elapsed / f64::from(u32::try_from(new)?));
        }
        if size >= 1_000 {
            memory.add(size, (gateway.memory_kib()? - before) / f64::from(size));
        }
        let mut times = Vec::new();
        for session in sessions
            .iter()
            .step_by(count.div_ceil(CALLS))
            .cycle()
            .take(CALLS)
        {
            let began = Instant::now();
            connection.request(session, "tools/call", &ping)?;
            times.push(micros(began.elapsed()));
        }
        called.add(size, median(times)?);
    }
    for series in [opened, called, memory] {
        report.add(series);
    }
    Ok(())
}
