//! Services of handlers, as an edge sees them: the catalogue, calls, and what happens on their way.

#![cfg(test)]

mod asking;
mod catalogue;
mod completion;
mod definitions;
mod editing;
mod events;
mod prompts;
mod resources;
mod support;
mod tools;
mod updates;
