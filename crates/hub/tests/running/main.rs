//! The hub with servers that are processes.

#[cfg(test)]
mod lifecycle;
#[cfg(test)]
mod reload;
#[cfg(test)]
mod servers;
#[cfg(test)]
mod starting;
