//! Tests of the `plexus` binary, as clients and users start it.

#[cfg(test)]
mod access;
#[cfg(test)]
mod ad_hoc;
#[cfg(test)]
mod auth;
#[cfg(test)]
mod auth_concurrent;
#[cfg(test)]
mod auth_grants;
#[cfg(test)]
mod bash;
#[cfg(unix)]
#[cfg(test)]
mod broken_settings;
#[cfg(test)]
mod call;
#[cfg(unix)]
#[cfg(test)]
mod capabilities;
#[cfg(test)]
mod cone;
#[cfg(test)]
mod config;
#[cfg(unix)]
#[cfg(test)]
mod deadlines;
#[cfg(unix)]
#[cfg(test)]
mod doctor;
#[cfg(unix)]
#[cfg(test)]
mod edge;
#[cfg(unix)]
#[cfg(test)]
mod edge_limits;
#[cfg(unix)]
#[cfg(test)]
mod extensions;
#[cfg(unix)]
#[cfg(test)]
mod gateway;
#[cfg(test)]
mod healthcheck;
#[cfg(test)]
mod home;
#[cfg(test)]
mod http;
#[cfg(test)]
mod import;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod kills;
#[cfg(unix)]
#[cfg(test)]
mod limits;
#[cfg(test)]
mod manage;
#[cfg(test)]
mod mcp;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod native;
#[cfg(test)]
mod native_http;
#[cfg(unix)]
#[cfg(test)]
mod permissions;
#[cfg(test)]
mod probe;
#[cfg(test)]
mod process;
#[cfg(test)]
mod profiles;
#[cfg(unix)]
#[cfg(test)]
mod questions;
#[cfg(unix)]
#[cfg(test)]
mod reload;
#[cfg(unix)]
#[cfg(test)]
mod reload_under_load;
#[cfg(test)]
mod resources;
#[cfg(unix)]
#[cfg(test)]
mod returning;
#[cfg(test)]
mod run;
#[cfg(test)]
mod servers;
#[cfg(unix)]
#[cfg(test)]
mod setup;
#[cfg(unix)]
#[cfg(test)]
mod shared_stdio;
#[cfg(unix)]
#[cfg(test)]
mod status;
#[cfg(test)]
mod stdio;
#[cfg(test)]
mod store;
#[cfg(test)]
mod task;
#[cfg(unix)]
#[cfg(test)]
mod terminal;
#[cfg(unix)]
#[cfg(test)]
mod tool_selection;
#[cfg(unix)]
#[cfg(test)]
mod tracing;
#[cfg(unix)]
#[cfg(test)]
mod trust;
#[cfg(unix)]
#[cfg(test)]
mod unavailable;
#[cfg(unix)]
#[cfg(test)]
mod unseen_characters;
#[cfg(test)]
mod usage;
#[cfg(test)]
mod warnings;
