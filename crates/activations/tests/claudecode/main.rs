//! The activation `claudecode`, with an agent that is a script.

#[cfg(test)]
mod background;
#[cfg(test)]
mod chat;
#[cfg(test)]
mod permissions;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod support;
