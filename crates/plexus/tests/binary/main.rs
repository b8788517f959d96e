//! The program itself, as clients and people start it.

#[cfg(test)]
mod auth;
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
mod stdio;
#[cfg(test)]
mod task;
#[cfg(test)]
mod usage;
