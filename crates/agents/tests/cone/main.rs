//! Tests of cones through their tools, with a scripted HTTP server as the model.

#[cfg(test)]
mod chat;
#[cfg(test)]
mod cones;
#[cfg(test)]
mod model_errors;
#[cfg(test)]
mod prompts;
#[cfg(test)]
mod sampling;
#[cfg(test)]
mod support;
