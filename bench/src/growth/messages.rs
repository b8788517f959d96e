//! Messages of 100 B to 16 MiB, to a built-in tool and to a server on stdio.

use serde_json::json;

use super::client::Client;
use super::gateway::Gateways;
use super::report::Report;
use super::series::{Cost, Series};
use super::upstream::tool_name;

const MEBIBYTE: u32 = 1024 * 1024;
/// The last is the default limit of what a server may send, less room for the rest of the message.
const SIZES: [u32; 7] = [
    100,
    1_000,
    10_000,
    100_000,
    MEBIBYTE,
    4 * MEBIBYTE,
    16 * MEBIBYTE - 1_000,
];
/// Few calls of large messages, which take long.
const MAX_BYTES: u32 = 64 * MEBIBYTE;
const MAX_CALLS: u32 = 300;

pub(super) fn measure(gateways: &Gateways, report: &mut Report) -> anyhow::Result<()> {
    let new = |name| Series::new(name, "bytes", "MiB/s", Cost::Rate, 0.0);
    let mut built_in = (new("Text echoed by Plexus"), "echo_echo".to_owned());
    let upstream = format!("up0__{}", tool_name(0));
    let mut forwarded = (new("Text echoed by a server on stdio"), upstream);
    let bytes = 16 * MEBIBYTE;
    let home = gateways.home(&format!(
        "[limits]\nmax_message_bytes = {bytes}\nmax_answer_bytes = {}\n",
        // The result has the text twice: as content and as structured content.
        3 * bytes
    ))?;
    let gateway = gateways.start_with(&home, 1, 1)?;
    let mut client = Client::open(gateway.address, "bench")?;
    gateway.wait_for_tools(&mut client, 1)?;
    for size in gateways.sizes(&SIZES) {
        let calls = (MAX_BYTES / size).clamp(3, MAX_CALLS);
        let text = "x".repeat(usize::try_from(size)?);
        for (rate, tool) in [&mut built_in, &mut forwarded] {
            let call = |_| (tool.clone(), json!({"message": text}));
            let micros = client.time_calls(calls, call)?;
            rate.add(size, f64::from(size) / f64::from(MEBIBYTE) / (micros / 1e6));
        }
    }
    report.add(built_in.0);
    report.add(forwarded.0);
    Ok(())
}
