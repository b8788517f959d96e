//! A server that requires tokens, with a real authorization server and real clients.

#[cfg(test)]
mod challenges;
#[cfg(test)]
mod forgeries;
#[cfg(test)]
mod introspection;
#[cfg(test)]
mod isolation;
#[cfg(test)]
mod proofs;
#[cfg(test)]
mod rotation;
#[cfg(test)]
mod world;
