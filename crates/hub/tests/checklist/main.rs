//! The hub with real programs as members: `docs/checklist.md`.

#[cfg(test)]
mod defects;
#[cfg(test)]
mod lifecycle;
#[cfg(test)]
mod registry;
#[cfg(test)]
mod support;
#[cfg(test)]
mod traps;
