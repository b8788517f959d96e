//! 1 to 300 servers in one gateway.

use serde_json::json;

use super::client::Client;
use super::gateway::Gateways;
use super::report::Report;
use super::series::{Cost, Series};
use super::upstream::tool_name;

const SIZES: [u32; 6] = [1, 3, 10, 30, 100, 300];
const CALLS: u32 = 600;

pub(super) fn measure(gateways: &Gateways, report: &mut Report) -> anyhow::Result<()> {
    let new = |name, unit, noise| Series::new(name, "servers", unit, Cost::Whole, noise);
    let mut connected = new("Start until all servers are connected", "s", 0.05);
    let mut called = new("A call to one of many servers", "µs", 40.0);
    for size in gateways.sizes(&SIZES) {
        let home = gateways.home("")?;
        let gateway = gateways.start_with(&home, size, 1)?;
        let mut client = Client::open(gateway.address, "bench")?;
        connected.add(size, gateway.wait_for_tools(&mut client, size)?);
        let arguments = json!({"message": "hello"});
        let tool = |number: u32| format!("up{}__{}", number % size, tool_name(0));
        let time = client.time_calls(CALLS, |number| (tool(number), arguments.clone()))?;
        called.add(size, time);
    }
    report.add(connected);
    report.add(called);
    Ok(())
}
