//! Trees as their clients see them: tools, results, errors, resources.

#[cfg(test)]
mod life;
#[cfg(test)]
mod resources;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tools;
#[cfg(test)]
mod trouble;
