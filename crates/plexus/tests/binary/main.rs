//! The program itself, as clients and people start it.

#[cfg(all(test, unix))]
mod asking;
#[cfg(test)]
mod auth;
#[cfg(test)]
mod bash;
#[cfg(test)]
mod call;
#[cfg(test)]
mod cone;
#[cfg(all(test, unix))]
mod doctor;
#[cfg(all(test, unix))]
mod gateway;
#[cfg(test)]
mod home;
#[cfg(test)]
mod http;
#[cfg(test)]
mod import;
#[cfg(test)]
mod mcp;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod probe;
#[cfg(test)]
mod process;
#[cfg(all(test, unix))]
mod reload;
#[cfg(test)]
mod resources;
#[cfg(test)]
mod servers;
#[cfg(all(test, unix))]
mod status;
#[cfg(test)]
mod stdio;
#[cfg(test)]
mod task;
#[cfg(all(test, unix))]
mod terminal;
#[cfg(all(test, unix))]
mod trust;
#[cfg(test)]
mod usage;
#[cfg(test)]
mod warnings;
