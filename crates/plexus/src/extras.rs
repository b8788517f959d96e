//! What is built in that not everybody is offered.

use clap::Args;
use plexus_activations::claudecode::Settings;
use plexus_activations::{Choice, Extras};

use crate::surroundings::environment;

/// Names the agent.
pub(crate) const AGENT_VARIABLE: &str = "PLEXUS_CLAUDE";
/// The agent, unless another is named.
pub(crate) const AGENT: &str = "claude";

/// What of all that is built in is offered.
#[derive(Debug, Clone, Args)]
pub(crate) struct BuiltinArgs {
    /// Offer these built-in services: their names with commas between, all, or none.
    ///
    /// There are health, echo, task, context, arbor, cone, bash, loopback and claudecode. The first
    /// four are offered if nothing else is said, here or by `builtin = ["task", …]` under `[hub]` in
    /// plexus.toml.
    #[arg(
        long,
        value_name = "LIST",
        env = "PLEXUS_BUILTIN",
        hide_env_values = true
    )]
    builtin: Option<Choice>,
}

impl BuiltinArgs {
    /// What is chosen, if anything is.
    pub(crate) fn choice(&self) -> Option<Choice> {
        self.builtin.clone()
    }
}

/// All of it, for somebody who may do on this machine what we may; with this agent, or with the one
/// that the environment names.
pub(crate) fn all(agent: Option<&str>) -> Extras {
    let agent = agent.map(str::to_owned);
    let agent = agent.or_else(|| environment(AGENT_VARIABLE));
    let agent = agent.unwrap_or_else(|| AGENT.to_owned());
    let mut extras = Extras::default();
    extras.bash = true;
    extras.claudecode = Some(Settings::new(agent, std::env::var_os("PATH")));
    extras
}
