//! Conversations as their clients see them, with a model that is a real server of its API.

#[cfg(test)]
mod chat;
#[cfg(test)]
mod cones;
#[cfg(test)]
mod prompts;
#[cfg(test)]
mod sampling;
#[cfg(test)]
mod support;
#[cfg(test)]
mod trouble;
