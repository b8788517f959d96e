//! The context graph, through its tools and through its handle.

#[cfg(test)]
mod curation;
#[cfg(test)]
mod links;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod ranking;
#[cfg(test)]
mod scale;
#[cfg(test)]
mod search;
#[cfg(test)]
mod sharing;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tools;
