//! Tests of the service `claudecode`, with a shell script as the agent.

#[cfg(target_os = "linux")]
#[cfg(test)]
mod background;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod chat;
#[cfg(test)]
mod permissions;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod support;
