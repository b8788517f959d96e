//! The activation `claudecode`, with an agent that is a script.

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
