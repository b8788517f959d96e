//! The agent host, with a scripted model.

#[cfg(test)]
mod agent_loop;
#[cfg(test)]
mod permissions;
#[cfg(test)]
mod servers;
#[cfg(test)]
mod sub_agents;
#[cfg(test)]
mod support;
#[cfg(test)]
mod transcripts;
