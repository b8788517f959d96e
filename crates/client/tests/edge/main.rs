//! The client edge, against servers that do what a test says, and against our own fixture server.

#[cfg(test)]
mod asking;
#[cfg(test)]
mod asking_stateless;
#[cfg(test)]
mod attribution;
#[cfg(test)]
mod auth;
#[cfg(test)]
mod auth_bad_input;
#[cfg(test)]
mod auth_fixture;
#[cfg(test)]
mod auth_identity;
#[cfg(test)]
mod auth_inviting;
#[cfg(test)]
mod auth_rotation;
#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod cancelling;
#[cfg(test)]
mod changes;
#[cfg(test)]
mod checklist;
#[cfg(test)]
mod closing;
#[cfg(test)]
mod coming_back;
#[cfg(test)]
mod correlation;
#[cfg(test)]
mod crashing;
#[cfg(test)]
mod ended_calls;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod http;
#[cfg(test)]
mod http_stateless;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod listing;
#[cfg(test)]
mod matching;
#[cfg(test)]
mod probing_http;
#[cfg(test)]
mod probing_stdio;
#[cfg(test)]
mod processes;
#[cfg(test)]
mod quarantine;
#[cfg(test)]
mod relaying;
#[cfg(test)]
mod resubscribing;
#[cfg(test)]
mod session_loss;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod sse;
#[cfg(test)]
mod status;
#[cfg(test)]
mod support;
#[cfg(test)]
mod timing;
#[cfg(test)]
mod traps;
#[cfg(test)]
mod visiting;
#[cfg(test)]
mod watching;
