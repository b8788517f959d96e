//! Tests of trees through their tools and resources, as clients use them.

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
