//! The ids that are found in discarded input are those that the decoder finds, however the input is
//! split.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use plexus_fuzz::Cuts;
use plexus_mcp_wire::{EnvelopeSkimmer, Id, Incoming, Limits, Message, SkimmedEnvelope, decode, skim};

/// The skimmer drops ids that are longer than this.
const MAX_ID_BYTES: usize = 500;

fuzz_target!(|input: &[u8]| {
    let Some(input) = Cuts::read(input) else {
        return;
    };
    let found = skim(input.stream);
    let mut skimmer = EnvelopeSkimmer::default();
    input.pieces().for_each(|piece| skimmer.feed(piece));
    assert_eq!(skimmer.finish(), found);

    let decoded = decode(Bytes::copy_from_slice(input.stream), &Limits::default());
    let Ok(Incoming::Single(Ok(message))) = decoded else {
        return;
    };
    let (id, envelope): (_, fn(Id) -> SkimmedEnvelope) = match message {
        Message::Request(request) => (Some(request.id), SkimmedEnvelope::Request),
        Message::Response(response) => (response.id, SkimmedEnvelope::Response),
        Message::Notification(_) => (None, SkimmedEnvelope::Request),
    };
    // The JSON text of an id with escapes is up to six times as long as the id.
    if id
        .as_ref()
        .is_none_or(|id| id.to_string().len() * 6 < MAX_ID_BYTES)
    {
        let expected: Vec<_> = id.map(envelope).into_iter().collect();
        assert_eq!(found, expected);
    }
});
