//! The cost of policy rules: `plexus serve` with and without them.

use std::fmt::Write as _;

use plexus_mcp_protocol::Era;

use super::gateway::target;
use crate::bench::Bench;
use crate::launcher::ListeningProcess;
use crate::load::{READY_TIMEOUT, http};
use crate::message::{Call, Job, SIZES, TOOL};
use crate::placement::Seat;
use crate::results::Figures;
use crate::serve;
use crate::servers::{self, PATH, SERVE};

pub(crate) const PART: &str = "policy";

/// The numbers of rules that are compared.
pub(crate) const RULE_COUNTS: [usize; 2] = [0, 1000];

/// How often both are measured in a round. The difference that is looked for is small.
const REPETITIONS: usize = 3;

pub(crate) const POINT: &str = "HTTP upstream, 2025-11-25, c=16";

pub(crate) fn subject(rules: usize) -> String {
    format!("{SERVE}, rules: {rules}")
}

/// Runs one round.
pub(crate) fn round(bench: &mut Bench) {
    let upstream = servers::upstream(&bench.paths);
    let upstream = bench.launcher.listen(&upstream.json, Seat::Upstream);
    let gateways = RULE_COUNTS.map(|rules| {
        let upstream = upstream
            .as_ref()
            .map_err(|error| anyhow::anyhow!("{error:#}"))?;
        let servers = serve::definitions(upstream, 1);
        serve::start(bench, servers, &settings(rules))
    });
    for _ in 0..REPETITIONS {
        for (rules, up) in RULE_COUNTS.into_iter().zip(&gateways) {
            bench.measure(PART, POINT, &subject(rules), |bench| {
                let up = up.as_ref().map_err(|error| anyhow::anyhow!("{error:#}"))?;
                measure(bench, up)
            });
        }
    }
}

fn measure(bench: &Bench, up: &ListeningProcess) -> anyhow::Result<Figures> {
    let target = target(up, PATH, Era::Handshake);
    let job = Job::Call(Call::new(format!("up0__{TOOL}"), SIZES[0]));
    http::await_answer(&target, &job, READY_TIMEOUT)?;
    bench.load(&target, &job, 16)
}

/// Settings with this many rules, of which only the last one matches the tool: half of the others
/// name a tool, and half all tools of a server.
fn settings(rules: usize) -> String {
    let mut text = "[policy]\nrules = [\n".to_owned();
    for number in 1..rules {
        let tool = if number % 2 == 0 {
            format!("server{number}__*")
        } else {
            format!("server{number}__delete")
        };
        add(&mut text, &tool, "deny");
    }
    if rules > 0 {
        add(&mut text, &format!("up0__{TOOL}"), "allow");
    }
    text.push_str("]\n");
    text
}

fn add(text: &mut String, tool: &str, action: &str) {
    // Writing to a string cannot fail.
    writeln!(text, "  {{ tool = \"{tool}\", action = \"{action}\" }},").unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_rule_matches_the_tool() {
        let settings: toml::Table = settings(1000).parse().unwrap();
        let rules = settings["policy"]["rules"].as_array().unwrap();
        assert_eq!(rules.len(), 1000);
        let (last, others) = rules.split_last().unwrap();
        assert_eq!(last["tool"].as_str(), Some("up0__repeat"));
        assert_eq!(last["action"].as_str(), Some("allow"));
        let names_another_server = |rule: &toml::Value| {
            let tool = rule["tool"].as_str();
            tool.is_some_and(|tool| tool.starts_with("server"))
        };
        assert!(others.iter().all(names_another_server));
    }

    #[test]
    fn without_rules_there_is_an_empty_list() {
        let settings: toml::Table = settings(0).parse().unwrap();
        assert!(settings["policy"]["rules"].as_array().unwrap().is_empty());
    }
}
