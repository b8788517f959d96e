//! 100 to 1,000 busy connections.

use anyhow::Context as _;
use serde_json::json;

use super::client::{Client, Connection, message};
use super::gateway::Gateways;
use super::report::Report;
use super::series::{Cost, Series};

const SIZES: [u32; 4] = [100, 300, 600, 1_000];
/// The calls on each connection. In each round, all connections have one in flight.
const ROUNDS: u32 = 10;

pub(super) fn measure(gateways: &Gateways, report: &mut Report) -> anyhow::Result<()> {
    let name = "Memory of each busy connection";
    let mut memory = Series::new(name, "connections", "KiB", Cost::Each, 1.0);
    let params = json!({"name": "echo_echo", "arguments": {"message": "x".repeat(100)}});
    for size in gateways.sizes(&SIZES) {
        let home = gateways.home("")?;
        let gateway = gateways.start(&home)?;
        // What the first calls load is not memory of the connections.
        let mut warm = Client::open(gateway.address, "bench")?;
        warm.time_calls(200, |_| {
            ("echo_echo".to_owned(), json!({"message": "hello"}))
        })?;
        let session = warm.session.clone();
        let before = gateway.memory_kib()?;
        let mut connections = Vec::new();
        // Other ids than those of the first calls.
        let mut ids = 1_000_000..;
        for _ in 0..size {
            connections.push(Connection::open(gateway.address)?);
        }
        for _ in 0..ROUNDS {
            for connection in &mut connections {
                let id = ids.next().unwrap_or_default();
                connection.send(Some(&session), &message(id, "tools/call", &params))?;
            }
            for connection in &mut connections {
                connection.receive().context("a busy connection")?;
            }
        }
        memory.add(size, (gateway.memory_kib()? - before) / f64::from(size));
    }
    let most = memory.at(1_000);
    report.bound("Memory of a busy connection, of 1,000", most, 40.0, "KiB");
    report.add(memory);
    Ok(())
}
