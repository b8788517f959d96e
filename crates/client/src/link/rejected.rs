//! Messages of the server that are not decoded: above a limit, or not valid.
//!
//! A peer waits for each of them. If the message was a response, the request that it answers fails
//! with an error that names the limit; if it was a request, the server gets an error as its answer.
//! The connection goes on.

use plexus_mcp_protocol::{Fault, Revision};
use plexus_mcp_wire::{DecodeError, Id, Malformed, RpcError, SkimmedEnvelope, skim};

use super::{Incoming, LinkError, UndecodableMessage};

/// Rejects a message that was discarded because it has more than `limit` bytes.
pub(crate) fn too_large(
    size: u64,
    limit: usize,
    envelopes: Vec<SkimmedEnvelope>,
    mut take: impl FnMut(Incoming),
) {
    let answer = LinkError::TooLarge { size, limit };
    let request = Fault::TooLarge { limit };
    reject(envelopes, &answer, &request, &mut take);
    take(Incoming::UndecodableMessage(UndecodableMessage::TooLong));
}

/// Rejects input that is no message and no batch, as `error` says. `shown` gives its beginning.
pub(crate) fn undecodable(
    input: &[u8],
    error: &DecodeError,
    shown: impl FnOnce() -> String,
    mut take: impl FnMut(Incoming),
) {
    let request = match *error {
        DecodeError::TooLarge { limit } => {
            return too_large(input.len() as u64, limit, skim(input), take);
        }
        DecodeError::NotUtf8 | DecodeError::Syntax { .. } => Fault::Parse(error.to_string()),
        DecodeError::TooDeep { .. }
        | DecodeError::BatchTooLong { .. }
        | DecodeError::EmptyBatch => Fault::InvalidRequest(error.to_string()),
    };
    reject(skim(input), &unreadable(error), &request, &mut take);
    take(Incoming::UndecodableMessage(match error {
        DecodeError::TooDeep { .. } | DecodeError::BatchTooLong { .. } => {
            UndecodableMessage::TooLong
        }
        _ => UndecodableMessage::NotJson(shown()),
    }));
}

/// Rejects one message of `input` that is JSON, but no JSON-RPC message.
pub(crate) fn malformed(input: &[u8], malformed: &Malformed, take: &mut impl FnMut(Incoming)) {
    let Malformed { id, reason } = malformed;
    let Some(id) = id else {
        return;
    };
    let envelopes = skim(input);
    let envelope = envelopes.into_iter().find(|envelope| {
        let (SkimmedEnvelope::Request(found) | SkimmedEnvelope::Response(found)) = envelope;
        found == id
    });
    let answer = LinkError::InvalidAnswer(format!(
        "the server's answer is not a JSON-RPC response: {reason}"
    ));
    let request = Fault::InvalidRequest(reason.to_string());
    reject(envelope, &answer, &request, take);
}

/// The error of a request whose answer cannot be decoded.
pub(crate) fn unreadable(error: &DecodeError) -> LinkError {
    LinkError::InvalidAnswer(match error {
        DecodeError::TooDeep { limit } => {
            format!("the server's answer is nested too deep: the limit is {limit} levels")
        }
        DecodeError::BatchTooLong { limit } => {
            format!(
                "the server's answer is in a batch that is too long: the limit is {limit} messages"
            )
        }
        other => format!("the server's answer cannot be read: {other}"),
    })
}

/// Fails the requests whose responses are among `envelopes`, and refuses the server's requests.
fn reject(
    envelopes: impl IntoIterator<Item = SkimmedEnvelope>,
    answer: &LinkError,
    request: &Fault,
    take: &mut impl FnMut(Incoming),
) {
    for envelope in envelopes {
        match envelope {
            SkimmedEnvelope::Response(id) => {
                // Our requests have numbers for ids.
                if let Some(request) = id.as_i64() {
                    let error = answer.clone();
                    take(Incoming::Failed { request, error });
                }
            }
            SkimmedEnvelope::Request(id) => take(refused(id, request)),
        }
    }
}

fn refused(id: Id, fault: &Fault) -> Incoming {
    // Only servers of the handshake era send requests; these codes are the same in all revisions.
    let error: RpcError = fault.to_error(Revision::V2025_11_25);
    Incoming::Refused { id, error }
}
