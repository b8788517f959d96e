//! The agent host, with a scripted model.

mod agent_loop;
mod permissions;
mod servers;
mod sub_agents;
mod support;
mod transcripts;
