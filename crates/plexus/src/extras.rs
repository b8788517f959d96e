//! What is built in that not everybody is offered.

use plexus_activations::Extras;
use plexus_activations::claudecode::Settings;

use crate::surroundings::environment;

/// Names the agent.
pub(crate) const AGENT_VARIABLE: &str = "PLEXUS_CLAUDE";
/// The agent, unless another is named.
pub(crate) const AGENT: &str = "claude";

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
