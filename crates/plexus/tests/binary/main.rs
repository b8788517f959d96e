//! The program itself, as clients and people start it.

#[cfg(test)]
mod asking;
#[cfg(test)]
mod call;
#[cfg(test)]
mod doctor;
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
#[cfg(test)]
mod resources;
#[cfg(test)]
mod servers;
#[cfg(test)]
mod stdio;
#[cfg(test)]
mod task;
#[cfg(test)]
mod terminal;
#[cfg(test)]
mod usage;
