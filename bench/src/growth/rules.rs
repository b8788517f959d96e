//! 0 to 1,000 policy rules, none of which matches.

use serde_json::json;

use super::client::{Client, median};
use super::gateway::Gateways;
use super::report::Report;
use super::series::{Cost, Series};

const SIZES: [u32; 4] = [0, 10, 100, 1_000];
/// Processes of the same program differ by some percent, so each size has several.
const INSTANCES: usize = 4;
/// Calls are made in turns, so that all gateways meet the same disturbances.
const TURNS: u32 = 30;
const CALLS: u32 = 60;

pub(super) fn measure(gateways: &Gateways, report: &mut Report) -> anyhow::Result<()> {
    let mut called = Series::new("A call under many rules", "rules", "µs", Cost::Whole, 20.0);
    let mut measured = Vec::new();
    for _ in 0..INSTANCES {
        for size in gateways.sizes(&SIZES) {
            let rules: Vec<String> = (0..size)
                .map(|number| format!(r#"{{ tool = "other_*_{number}", action = "deny" }}"#))
                .collect();
            let rules = rules.join(",\n");
            let home = gateways.home(&format!("[policy]\nrules = [\n{rules}\n]\n"))?;
            let gateway = gateways.start(&home)?;
            let client = Client::open(gateway.address, "bench")?;
            measured.push((size, gateway, client, Vec::new()));
        }
    }
    let arguments = json!({"message": "hello"});
    for turn in 0..=TURNS {
        // No gateway always comes after the same one.
        let first = usize::try_from(turn)? * 7 % measured.len();
        measured.rotate_left(first);
        for (_, _, client, times) in &mut measured {
            let call = |_| ("echo_echo".to_owned(), arguments.clone());
            let time = client.time_calls(CALLS, call)?;
            // The first turn is for warming up.
            if turn > 0 {
                times.push(time);
            }
        }
    }
    for size in gateways.sizes(&SIZES) {
        let of_size = measured.iter().filter(|(other, ..)| *other == size);
        called.add(size, median(of_size.flat_map(|it| it.3.clone()).collect())?);
    }
    let ratio = called.at(0).zip(called.at(1_000));
    let more = ratio.map(|(none, many)| (many / none - 1.0) * 100.0);
    report.bound("What 1,000 rules add to a call", more, 10.0, "%");
    report.add(called);
    Ok(())
}
